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
// Of other tokenizers than GPT-2's, and what they treat in a way of their own.
const OTHER_SPECIALS = ["<s>", "</s>", "<unk>", "<s> ", " </s>", "<0x0A>", "<|im_start|>", "<think>",
  "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<left>", "<right>", "<both>", "alone",
  "normal é", "▁", " ▁", "▁▁", "▁the"];
const CASES = ["A", "B", "É", "a", "b", "é", "ß", "ǅ", "ʰ", "ª", "語", "\u0301", "\u0903", "1", "'s",
  "'LL", "’s", " ", "/", "\n", "\r", "-", "Ⅷ"];
// Marks of several combining classes, what composes with them, and characters that normalisation
// replaces or takes apart.
const COMBINING = ["\u0301", "\u0323", "\u0345", "\u0334", "\u0315", "\u3099", "\u0344", "\u093c", "a",
  "e", "か", "क", "q", "å", "ậ", "\u212b", "\u2126", "\u0958", "ᄒ", "ᅡ", "ᆫ", "하", "\u0b47\u0b3e",
  "\uf900", "\u{1d15e}", "\u{2f800}", "\u0f73", " "];

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
    () => pick(OTHER_SPECIALS),
    () => times(1 + below(8), () => pick(CASES)),
    () => times(1 + below(8), () => pick(COMBINING)),
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
