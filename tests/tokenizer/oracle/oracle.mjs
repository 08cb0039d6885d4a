// Tokenizes texts with tiktoken's gpt2 encoding and writes what oracle_test.cc compares with heed:
//   OUT          records: u32 special tokens recognised (0 or 1), u32 bytes, the text in UTF-8,
//                u32 tokens, u32 ids
//   OUT.classes  one byte for each code point: the class that tiktoken's regular expressions give
//                it (0 other, 1 \p{L}, 2 \p{N}, 3 \s), so that a difference between two versions
//                of Unicode is not taken for a difference between two tokenizers
// Usage: node oracle.mjs DATA OUT
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import { performance } from "node:perf_hooks";
import { randomText } from "./random_text.mjs";

const RANDOM_TEXTS = 110000; // more than the 100,000 to be compared: some hold disputed characters

const require = createRequire(import.meta.url);
const { Tiktoken } = require("tiktoken");
const gpt2 = require("tiktoken/encoders/gpt2");
const encoder = new Tiktoken(gpt2.bpe_ranks, gpt2.special_tokens, gpt2.pat_str);

const [data, out] = process.argv.slice(2);
const file = fs.openSync(out, "w");

function u32(values) {
  return Buffer.from(Uint32Array.from(values).buffer);
}

function record(text, special) {
  const ids = special ? encoder.encode(text, "all") : encoder.encode_ordinary(text);
  const bytes = Buffer.from(text, "utf8");
  fs.writeSync(
    file,
    Buffer.concat([u32([special ? 1 : 0, bytes.length]), bytes, u32([ids.length]), u32(ids)]),
  );
  return bytes.length;
}

function englishFiles() {
  const names = ["tinyshakespeare.txt"];
  for (const folder of ["wikitext-2", "multi30k"]) {
    for (const name of fs.readdirSync(path.join(data, folder)).sort()) {
      if (name.endsWith(".txt") || name.endsWith(".en.gz")) names.push(path.join(folder, name));
    }
  }
  return names;
}

function readText(name) {
  const bytes = fs.readFileSync(path.join(data, name));
  return (name.endsWith(".gz") ? zlib.gunzipSync(bytes) : bytes).toString("utf8");
}

function writeClasses() {
  const classes = Buffer.alloc(0x110000);
  for (const [pattern, value] of [["\\p{L}", 1], ["\\p{N}", 2], ["\\s", 3]]) {
    const matcher = new Tiktoken(gpt2.bpe_ranks, {}, pattern);
    for (let point = 0; point < 0x110000; ++point) {
      if (point >= 0xd800 && point < 0xe000) continue;
      if (matcher.encode_ordinary(String.fromCodePoint(point)).length > 0) classes[point] = value;
    }
    matcher.free();
  }
  fs.writeFileSync(`${out}.classes`, classes);
}

function megabytesPerSecond(text, repeats) {
  const bytes = Buffer.byteLength(text);
  const seconds = [];
  for (let i = 0; i < repeats; ++i) {
    const start = performance.now();
    encoder.encode_ordinary(text);
    seconds.push((performance.now() - start) / 1000);
  }
  seconds.sort((left, right) => left - right);
  return bytes / seconds[repeats >> 1] / 1e6;
}

let bytes = 0;
const files = englishFiles();
for (const name of files) bytes += record(readText(name), true);
for (let i = 0; i < RANDOM_TEXTS; ++i) bytes += record(randomText(i), i % 2 === 0);
fs.closeSync(file);
writeClasses();
console.log(`tiktoken: ${files.length} files and ${RANDOM_TEXTS} random texts, ${bytes} bytes`);

const wikitext = files.filter((name) => name.startsWith("wikitext")).map(readText).join("");
const speed = megabytesPerSecond(wikitext, 5);
console.log(`tiktoken (WASM, one thread): ${speed.toFixed(1)} MB/s on wikitext-2, median of 5`);
