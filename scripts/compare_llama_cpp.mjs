// Compares heed with llama.cpp on files that heed writes: the same tokens of difficult texts, logits
// after 50 prompts within a tolerance, and the same greedy text of 64 tokens in f32 and Q8_0. Of an
// encoder (BERT): tokens, but for texts whose letters llama.cpp drops or that hold its mark of a
// beginning, and the hidden state of the last token of 50 texts.
//
//   npm install --prefix DIR node-llama-cpp        (a prebuilt llama.cpp for this processor)
//   node scripts/compare_llama_cpp.mjs DIR HEED MODEL…
//
// HEED is the program, a MODEL what its option -m takes. llama.cpp computes with keys and values in
// f32 here. Beside Q8_0 both round activations to 8 bits, with scales in f16 there, and its GELU is
// the tanh approximation for every family. Greedy texts may therefore diverge where heed's logits of the
// two tokens are within 0.2 of each other; the output says where they do.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, heed, ...models] = process.argv.slice(2);
if (models.length === 0) {
  console.error("usage: node scripts/compare_llama_cpp.mjs DIR HEED MODEL…");
  process.exit(2);
}
const entry = join(resolve(modules), "node_modules/node-llama-cpp/dist/index.js");
const { getLlama } = await import(pathToFileURL(entry).href);
const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, logLevel: "error" });

const generated = 64;
// Of the range of a prompt's logits. In f32, llama.cpp's GELU is a table of f16; beside f16 and bf16 it rounds rows of
// activations to the type of the weights; beside blocks both programs round them to 8 bits, in groups of 32, but llama.cpp
// in groups of 256 beside K-quants: of starter in Q4_K_M, heed's logits are at most 1.2e-2 from those of the restored
// weights in f32 and llama.cpp's 1.8e-2, on six prompts.
const tolerances = { f32: 2e-3, f16: 5e-3, bf16: 2e-2, q8_0: 3e-2, q4_0: 3e-2, q4_k_m: 6e-2 };

const run = (...options) =>
  execFileSync(heed, options, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "inherit"] });
const ids = (file, text) => JSON.parse(run("tokenize", "-m", file, "--no-special", "--json", "--", text)).ids;

// Texts of pieces that tokenizers treat in ways of their own, by a generator of its own seed.
function difficultTexts(count) {
  const pieces = [
    " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "a", "The", "the cat", "don't", "I'LL", "we've", "'s", "''",
    "1", "12", "123", "1234567", "3.14", "1,000", "é", "e\u0301", "ß", "Ǆ", "ﬁ", "İ", "naïve", "Привет", "мир", "你好",
    "世界", "こんにちは", "안녕", "مرحبا", "हिन्दी", "ไทย", "👍", "👨‍👩‍👧", "🇩🇪", "\u00a0", "\u2003", "\u200b", "\u2028", "\ufeff",
    "...", "!!!", "?!", "--", "—", "“q”", "(x)", "[y]", "{z}", "<b>", "</s", "<|", "|>", "#include", "foo_bar", "camelCase",
    "HTTPServer", "a/b\\c", "x=1;", "==", "\\n", "@@", "▁", "Ġ", "\u0001", "\u007f", "aaaaaaaaaaaaaaaa", "ABABABAB", "ⅷ", "²",
    "½", "𝒳", "\u{1d7d8}",
  ];
  let state = 88172645463325252n;
  const next = (below) => {
    state ^= (state << 13n) & 0xffffffffffffffffn;
    state ^= state >> 7n;
    state ^= (state << 17n) & 0xffffffffffffffffn;
    return Number(state % BigInt(below));
  };
  return Array.from({ length: count }, () =>
    Array.from({ length: 1 + next(9) }, () => pieces[next(pieces.length)]).join(""),
  );
}

async function llamaTokens(model, prompt) {
  const context = await model.createContext({
    contextSize: prompt.length + generated + 8,
    threads: 1,
    flashAttention: false,
    experimentalKvCacheKeyType: "F32",
    experimentalKvCacheValueType: "F32",
  });
  const tokens = [];
  for await (const token of context.getSequence().evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
    tokens.push(token);
    if (tokens.length === generated) break;
  }
  await context.dispose();
  return tokens;
}

// Each prompt's logits of the next token, by token.
async function llamaLogits(model, prompts) {
  const context = await model.createContext({
    contextSize: Math.max(...prompts.map(({ length }) => length)) + 8,
    threads: 1,
    flashAttention: false,
    experimentalKvCacheKeyType: "F32",
    experimentalKvCacheValueType: "F32",
  });
  const sequence = context.getSequence();
  const all = [];
  for (const prompt of prompts) {
    await sequence.clearHistory();
    const results = await sequence.controlledEvaluate([
      ...prompt.slice(0, -1),
      [prompt.at(-1), { generateNext: { logits: true } }],
    ]);
    all.push(results.at(-1).next.logits);
  }
  await context.dispose();
  return all;
}

function heedLogits(file, prompt) {
  const options = ["--tokens", prompt.join(","), "--full", "--json", "-t", "1"];
  return JSON.parse(run("predict", "-m", file, ...options)).logits;
}

// The largest difference of any prompt's logits, of the range of that prompt's.
async function differenceOfLogits(model, file, prompts) {
  const theirs = await llamaLogits(model, prompts);
  return Math.max(
    ...prompts.map((prompt, at) => {
      const ours = heedLogits(file, prompt);
      const range = Math.max(...ours) - Math.min(...ours);
      return Math.max(...ours.map((logit, token) => Math.abs(logit - theirs[at].get(token)))) / range;
    }),
  );
}

// llama.cpp gives that of the last token, where a file names no way to join them.
async function llamaStates(model, prompts) {
  const context = await model.createEmbeddingContext({ contextSize: 512, threads: 1 });
  const all = [];
  for (const prompt of prompts) all.push((await context.getEmbeddingFor(prompt)).vector);
  await context.dispose();
  return all;
}

function heedState(file, prompt, layers, directory) {
  const out = join(directory, "states.json");
  const point = `blocks.${layers - 1}.hook_normalized_resid_post`;
  run("trace", "-m", file, "--tokens", prompt.join(","), "--points", point, "--positions", "-1", "-o", out, "-t", "1");
  return JSON.parse(readFileSync(out, "utf8")).arrays[point].flat(2);
}

// The largest difference of any prompt's last state, of the range of that state.
async function differenceOfStates(model, file, prompts, directory) {
  const theirs = await llamaStates(model, prompts);
  return Math.max(
    ...prompts.map((prompt, at) => {
      const ours = heedState(file, prompt, model.fileInsights.totalLayers - 1, directory);
      const range = Math.max(...ours) - Math.min(...ours);
      return Math.max(...ours.map((value, channel) => Math.abs(value - theirs[at][channel]))) / range;
    }),
  );
}

function heedTokens(file, prompt) {
  const options = ["--tokens", prompt.join(","), "-n", String(generated), "--greedy", "--ignore-eos", "--json", "-t", "1"];
  return JSON.parse(run("generate", "-m", file, ...options)).tokens.map(({ id }) => id);
}

// By how much heed's logit of its own token is above that of another.
function lead(file, tokens, ours, theirs) {
  const options = ["--tokens", tokens.join(","), "--top", "50", "--json", "-t", "1"];
  const candidates = JSON.parse(run("predict", "-m", file, ...options)).candidates;
  const logit = (token) => candidates.find(({ id }) => id === token)?.logit ?? -Infinity;
  return logit(ours) - logit(theirs);
}

let failures = 0;
const check = (passed, text) => {
  console.log(`${passed ? "same     " : "DIFFERENT"} ${text}`);
  if (!passed) failures += 1;
};

const directory = mkdtempSync(join(tmpdir(), "heed-llama-cpp-"));
try {
  for (const name of models) {
    for (const type of ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_k_m"]) {
      const file = join(directory, `model-${type}.gguf`);
      run("convert", name, "--dtype", type, "--out", file, "--force");
      const model = await llama.loadModel({ modelPath: file });
      if (type === "f32") {
        const isEncoder = model.fileInfo.metadata.general.architecture === "bert";
        const texts = difficultTexts(500).filter((text) => !isEncoder || !/[▁\p{Mc}\p{Me}\uac00-\ud7a3]/u.test(text));
        const different = texts.filter(
          (text) => model.tokenize(text, false).join() !== ids(file, text).join(),
        );
        for (const text of different.slice(0, 5)) {
          const ours = ids(file, text).join(" ");
          console.log(`  ${JSON.stringify(text)}: llama.cpp ${model.tokenize(text, false).join(" ")}, heed ${ours}`);
        }
        check(different.length === 0, `${name}: tokens of ${texts.length - different.length} of ${texts.length} texts`);
      }
      const prompts = difficultTexts(200)
        .map((text) => ids(file, text))
        .filter(({ length }) => length > 1 && length < 60)
        .slice(0, 50);
      if (model.fileInfo.metadata.general.architecture === "bert") {
        // llama.cpp puts its own tokens around what it embeds.
        const { cls_token_id: first, seperator_token_id: last } = model.fileInfo.metadata.tokenizer.ggml;
        const whole = prompts.map((prompt) => [first, ...prompt, last]);
        const difference = await differenceOfStates(model, file, whole, directory);
        check(
          difference <= tolerances[type],
          `${name} in ${type}: states of ${whole.length} texts differ by at most ${difference.toExponential(1)} of their range`,
        );
        await model.dispose();
        rmSync(file);
        continue;
      }
      const difference = await differenceOfLogits(model, file, prompts);
      check(
        difference <= tolerances[type],
        `${name} in ${type}: logits after ${prompts.length} prompts differ by at most ${difference.toExponential(1)} of their range`,
      );
      const prompt = ids(file, "the cat sat on the mat and");
      const [theirs, ours] = [await llamaTokens(model, prompt), heedTokens(file, prompt)];
      let same = 0;
      while (same < generated && theirs[same] === ours[same]) same += 1;
      const parted = same < generated ? lead(file, prompt.concat(ours.slice(0, same)), ours[same], theirs[same]) : 0;
      const gap = same < generated ? `, then logits that differ by ${parted.toFixed(3)}` : "";
      const text = `${name} in ${type}: ${same} of ${generated} greedy tokens${gap}`;
      if (type === "f32" || type === "q8_0") check(parted < 0.2, text);
      else console.log(`          ${text}`);
      await model.dispose();
      rmSync(file);
    }
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
process.exit(failures === 0 ? 0 : 1);
