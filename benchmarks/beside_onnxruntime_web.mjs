// heed's WebAssembly beside onnxruntime-web (npm, WebAssembly with SIMD), one thread each, alternating in one process of
// Node.js: the same checkpoint (tests/wasm/gpt2_shape.mjs writes one of GPT-2's 124M shape), a prompt, and decoding.
//   node beside_onnxruntime_web.mjs FOLDER [--dtype f32] [--rounds 5] [--prompt 128] [--decode 16] [--engine build/wasm/bin/heed.js]
// Fetches nothing: `npm install onnxruntime-web` in a folder of NODE_MODULES or above this file. Prints medians of the processor's time.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Engine, root } from '../src/wasm/engine.mjs';
import { gpt2Onnx } from './gpt2_onnx.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    dtype: { type: 'string', default: 'f32' }, rounds: { type: 'string', default: '5' }, prompt: { type: 'string', default: '128' },
    decode: { type: 'string', default: '16' }, engine: { type: 'string', default: path.join(root, 'build/wasm/bin/heed.js') },
  },
});
const folder = path.resolve(positionals[0]);
const [rounds, promptLength, decoded] = [values.rounds, values.prompt, values.decode].map(Number);

const found = createRequire(path.join(process.env.NODE_MODULES ?? import.meta.dirname ?? '.', 'x.js')).resolve('onnxruntime-web');
const ort = await import(pathToFileURL(path.join(path.dirname(found), 'ort.node.min.mjs')));
ort.env.wasm.numThreads = 1;

/** Of the processor, not of the clock: one thread computes, and others may want its core meanwhile. */
const seconds = async (work) => {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
};

const heed = await Engine.load(path.resolve(values.engine));
heed.mount('gpt2', folder);
console.log(`heed (${values.dtype}): opened in ${(await seconds(() => heed.open('/models/gpt2', { dtype: values.dtype }))).toFixed(1)} s, ${(heed.memoryBytes / 1e6).toFixed(0)} MB`);
const session = await ort.InferenceSession.create(gpt2Onnx(folder), { executionProviders: ['wasm'], graphOptimizationLevel: 'all' });
const layers = session.inputNames.filter((name) => name.endsWith('.key')).length;
const [, heads, , size] = [1, 12, 0, 64];

/** Other tokens each time, so that nothing is remembered. */
const promptOf = (round) => Array.from({ length: promptLength }, (_, i) => ((i + 131 * round) * 7919) % 50000);

/** A prompt alone, and with tokens after it: other prompts, of the same length. */
async function heedTimes(round) {
  const complete = async (prompt, tokens) => {
    const reply = await heed.ask('POST', '/v1/completions', { prompt, max_tokens: tokens, temperature: 0, ignore_eos: true });
    if (reply.status !== 200 || JSON.parse(reply.bytes).usage.completion_tokens !== tokens) throw new Error(reply.bytes.toString());
  };
  const prompt = await seconds(() => complete(promptOf(2 * round), 1));
  const all = await seconds(() => complete(promptOf(2 * round + 1), 1 + decoded));
  return { prompt, step: (all - prompt) / decoded };
}

const pastNames = Array.from({ length: layers }, (_, layer) => ['key', 'value'].map((part) => `${layer}.${part}`)).flat();
const empty = () => Object.fromEntries(pastNames.map((name) => [`past.${name}`, new ort.Tensor('float32', new Float32Array(0), [1, heads, 0, size])]));

async function onnxStep(ids, first, past) {
  const all = first + ids.length;
  const mask = new Float32Array(ids.length * all);
  for (let t = 0; t < ids.length; ++t) mask.fill(-Infinity, t * all + first + t + 1, (t + 1) * all);
  const results = await session.run({
    ids: new ort.Tensor('int64', BigInt64Array.from(ids.map(BigInt)), [1, ids.length]),
    positions: new ort.Tensor('int64', BigInt64Array.from(ids, (_, i) => BigInt(first + i)), [1, ids.length]),
    mask: new ort.Tensor('float32', mask, [ids.length, all]),
    ...past,
  });
  const { data } = results.logits;
  let best = 0;
  for (let i = 1; i < data.length; ++i) if (data[i] > data[best]) best = i;
  return { logits: data, best, past: Object.fromEntries(pastNames.map((name) => [`past.${name}`, results[`present.${name}`]])) };
}

async function onnxTimes(round) {
  let state;
  const prompt = await seconds(async () => {
    state = await onnxStep(promptOf(round), 0, empty());
  });
  const all = await seconds(async () => {
    for (let i = 0; i < decoded; ++i) state = await onnxStep([state.best], promptLength + i, state.past);
  });
  return { prompt, step: all / decoded };
}

/** Both compute the same model: the log-probability of a prompt's likeliest next token. */
async function sameModel() {
  const reply = await heed.ask('POST', '/v1/completions', { prompt: promptOf(0), max_tokens: 1, temperature: 0, logprobs: 1 });
  const [ours] = JSON.parse(reply.bytes).choices[0].logprobs.token_logprobs;
  const { logits, best } = await onnxStep(promptOf(0), 0, empty());
  const theirs = -Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - logits[best]), 0));
  return `${ours} beside ${theirs.toFixed(6)}`;
}

const median = (numbers) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const runs = { heed: [], onnx: [] };
async function measure() {
  console.log(`log-probability of the first token: ${await sameModel()}`);
  for (let round = 0; round <= rounds; ++round) {
    const [ours, theirs] = [await heedTimes(round), await onnxTimes(round)];
    if (round > 0) runs.heed.push(ours), runs.onnx.push(theirs);
  }
  for (const part of ['prompt', 'step']) {
    const [ours, theirs] = [runs.heed, runs.onnx].map((all) => median(all.map((run) => run[part])));
    const ratios = runs.heed.map((run, i) => runs.onnx[i][part] / run[part]);
    console.log(`${part}: heed ${(ours * 1000).toFixed(1)} ms, onnxruntime-web ${(theirs * 1000).toFixed(1)} ms, ${median(ratios).toFixed(2)} times as fast`);
  }
}
// Emscripten prints its whole script for an error that nobody catches.
await measure().catch((error) => console.error(error.message.slice(0, 1000)));
process.exit(0);
