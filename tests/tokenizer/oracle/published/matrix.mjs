// Encodes texts around one added token that has every combination of lstrip, rstrip, single_word,
// normalized and special, in tokenizers of each way to put spaces before texts, with Hugging Face's
// `tokenizers` (the Rust library). Writes what added_matrix_test.cc compares with heed, as JSON:
//   {"texts": [...], "tokenizers": {NAME: {"document": a tokenizer.json without the token "<x>",
//    "id": that of "<x>", "ids": {FLAGS: for each text a list of ids}}}}
// FLAGS are letters: l, r, w, n and s, those that are set. "<x>" comes last in added_tokens.
// Usage: node matrix.mjs OUT RANDOM_TEXTS
// With 0 random texts it makes tests/golden/added_matrix.json.
import { createRequire } from "node:module";
import fs from "node:fs";
import { added, byteLevel, spaces, wordPiece } from "./documents.mjs";

const require = createRequire(import.meta.url);
const { Tokenizer } = require("@anush008/tokenizers");
const [out, randomTexts] = process.argv.slice(2);

const FLAGS = { l: "lstrip", r: "rstrip", w: "single_word", n: "normalized", s: "special" };

const specials = (...contents) => contents.map((content, id) => added(id, content, { special: true }));

// Characters, and some of them joined.
function joined(vocab, merges, pairs) {
  for (const [left, right] of pairs) {
    vocab[left + right] ??= Object.keys(vocab).length;
    merges.push(`${left} ${right}`);
  }
}

function metaspace(normalizer, pre_tokenizer) {
  const vocab = { "<unk>": 0, "<s>": 1, "</s>": 2 };
  const merges = [];
  for (const token of ["▁", "t", "h", "e", "c", "a", "<", "x", ">"]) vocab[token] = Object.keys(vocab).length;
  joined(vocab, merges, [["▁", "t"], ["h", "e"], ["▁t", "he"], ["c", "a"], ["▁", "ca"], ["▁", "▁"], ["e", "▁"]]);
  return {
    version: "1.0",
    added_tokens: specials("<unk>", "<s>", "</s>"),
    normalizer,
    pre_tokenizer,
    post_processor: null,
    decoder: spaces("always", true),
    model: {
      type: "BPE",
      dropout: null,
      unk_token: "<unk>",
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: true,
      byte_fallback: false,
      vocab,
      merges,
    },
  };
}

const replaced = { type: "Replace", pattern: { String: " " }, content: "▁" };
const prepended = {
  type: "Sequence",
  normalizers: [{ type: "Prepend", prepend: "▁" }, replaced],
};

// The letters that stand for bytes in byte-level BPE.
function byteLetters() {
  const letters = [];
  let next = 256;
  for (let byte = 0; byte < 256; ++byte) {
    const printable = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    letters.push(String.fromCodePoint(printable ? byte : next++));
  }
  return letters;
}

function lettersOfBytes(normalizer) {
  const vocab = { "<s>": 0 };
  const merges = [];
  for (const letter of byteLetters()) vocab[letter] = Object.keys(vocab).length;
  joined(vocab, merges, [["Ġ", "t"], ["h", "e"], ["Ġt", "he"], ["c", "a"], ["Ġ", "Ġ"]]);
  return byteLevel({ added_tokens: specials("<s>"), vocab, merges, normalizer });
}

function unigram(scheme, split) {
  const vocab = ["<unk>", "<s>", "▁the", "▁t", "he", "▁", "t", "h", "e", "c", "a", "ca", "▁ca", "<", ">"];
  return {
    version: "1.0",
    added_tokens: specials("<unk>", "<s>"),
    normalizer: null,
    pre_tokenizer: spaces(scheme, split),
    post_processor: null,
    decoder: spaces(scheme, split),
    model: { type: "Unigram", unk_id: 0, byte_fallback: false, vocab: vocab.map((text, id) => [text, -id / 4]) },
  };
}

function bert() {
  const tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "ca", "##t", "##the", "t", "x", "<", ">", "a"];
  return wordPiece({
    added_tokens: specials("[PAD]", "[UNK]", "[CLS]", "[SEP]"),
    vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
  });
}

const documents = {
  prepend: metaspace(prepended, null),
  replace: metaspace(replaced, null),
  always: metaspace(null, spaces("always", true)),
  first: metaspace(null, spaces("first", false)),
  never: metaspace(null, spaces("never", false)),
  byte_level: lettersOfBytes(null),
  byte_level_nfc: lettersOfBytes({ type: "NFC" }),
  unigram_always: unigram("always", true),
  unigram_first: unigram("first", false),
  bert: bert(),
};

const texts = [
  "<x>",
  "the<x>the",
  " the <x> the ",
  "  <x>  <x>\n\n<x>the",
  "the<x>_ <x>. a<x>",
  "<s>the <x>\nthe</s> <s><x> the",
  "the\u2581<x>\u2581the \u00a0<x>",
  "[CLS]the [SEP] <X> <x>",
];

// Small texts of the parts that matter, the same ones every time.
let state = 1;
function below(count) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * count);
}
const parts = ["<x>", "<x>", "the", "ca", " ", " ", "  ", "\n", "\u2581", "\u00a0", "<s>", "</s>", "x", "_", ".", "<", ">", "e\u0301", "[SEP]"];
for (let i = 0; i < Number(randomTexts ?? 0); ++i) {
  texts.push(Array.from({ length: 1 + below(9) }, () => parts[below(parts.length)]).join(""));
}

async function main() {
  const tokenizers = {};
  for (const [name, document] of Object.entries(documents)) {
    const vocab = document.model.vocab;
    const id = Array.isArray(vocab) ? vocab.length : Object.keys(vocab).length;
    const ids = {};
    for (let mask = 0; mask < 32; ++mask) {
      const letters = Object.keys(FLAGS).filter((_, bit) => (mask >> bit) & 1);
      const flags = Object.fromEntries(letters.map((letter) => [FLAGS[letter], true]));
      const made = { ...document, added_tokens: [...document.added_tokens, added(id, "<x>", flags)] };
      const tokenizer = Tokenizer.fromString(JSON.stringify(made));
      const encodings = await tokenizer.encodeBatch(texts, { addSpecialTokens: false });
      ids[letters.join("")] = encodings.map((encoding) => Array.from(encoding.getIds()));
    }
    tokenizers[name] = { document, id, ids };
  }
  fs.writeFileSync(out, JSON.stringify({ texts, tokenizers }));
}

await main();
