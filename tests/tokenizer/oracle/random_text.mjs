// Random texts that look for trouble: text i is a pure function of i.

// Mulberry32: a small generator with 32 bits of state.
function generator(seed) {
  let state = (seed * 0x9e3779b9 + 0x6d2b79f5) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return (value ^ (value >>> 14)) >>> 0;
  };
}

const WORDS = ["the", "of", "Attention", "is", "all", "you", "need", "it", "we", "don", "GPT", "x",
  "supercalifragilistic", "naïve", "Ærøskøbing", "straße", "привет", "γνῶθι", "こんにちは", "注意力",
  "안녕하세요", "مرحبا", "नमस्ते", "สวัสดี", "e\u0301", "ﬁ", "Ⅷ", "½", "²", "٣٤", "𝒜𝒷𝒸", "𒀀", "👩‍👩‍👧‍👦", "🏳️‍🌈"];
const CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'r", "'l", "'v", "''s",
  " 's", "’s", "'ſ", "'sa", "'ree"];
const SPACES = [" ", "  ", "\n", "\r\n", "\t", "\n\n", " \n", "\n ", "\v", "\f", "\u0085", "\u00a0",
  "\u1680", "\u2003", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u200b", "\ufeff", "\u180e",
  "\u001c", "\u001f"];
const SPECIALS = ["<|endoftext|>", "<|endoftext|", "<|", "|>", "<|endoftext|><|endoftext|>"];

export function randomText(index) {
  const next = generator(index);
  const below = (bound) => next() % bound;
  const pick = (list) => list[below(list.length)];
  const times = (count, make) => Array.from({ length: count }, make).join("");
  const point = (first, last) => String.fromCodePoint(first + below(last - first + 1));
  const anyPoint = () => {
    const value = below(0x110000 - 0x800);
    return String.fromCodePoint(value < 0xd800 ? value : value + 0x800);
  };
  // Mostly a few characters; now and then a run that is long enough for another algorithm.
  const runLength = () => (below(200) === 0 ? 100 + below(3000) : 1 + below(20));

  const pieces = [
    () => pick(WORDS),
    () => ` ${pick(WORDS)}`,
    () => pick(CONTRACTIONS),
    () => pick(SPACES),
    () => pick(SPACES).repeat(1 + below(6)),
    () => pick(SPECIALS),
    () => times(1 + below(8), () => pick(SPACES)),
    () => " ".repeat(runLength()),
    () => times(runLength(), () => point(0x30, 0x39)),
    () => times(runLength(), () => point(0x61, 0x7a)),
    () => pick(["a", "A", "é", "語", "7", "-", "=", "\n", "ab", "0"]).repeat(runLength()),
    () => times(1 + below(10), () => point(0x00, 0x1f)),
    () => times(1 + below(10), () => point(0x20, 0x7f)),
    () => times(1 + below(10), () => point(0x80, 0x24f)),
    () => times(1 + below(10), () => point(0x250, 0x1fff)),
    () => times(1 + below(10), () => point(0x2000, 0x303f)),
    () => times(1 + below(10), () => point(0x3040, 0xd7ff)),
    () => times(1 + below(5), () => point(0xe000, 0xffff)),
    () => times(1 + below(5), () => point(0x10000, 0x1ffff)),
    () => times(1 + below(5), () => point(0x20000, 0x2ffff)),
    () => times(1 + below(3), anyPoint),
  ];
  return times(1 + below(12), () => pick(pieces)());
}
