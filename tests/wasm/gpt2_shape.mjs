// A checkpoint of GPT-2's 124M shape with random weights, as f32 safetensors of 548 MB (masks, too), beside a tokenizer.
//   node gpt2_shape.mjs FOLDER
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../../src/wasm/engine.mjs';

export const shape = { layers: 12, channels: 768, heads: 12, positions: 1024, vocabulary: 50257 };

const deviation = 0.02;

/** Names, shapes and, of what is not random, the number that fills it. */
function tensors({ layers, channels: c, positions, vocabulary }) {
  const norm = (name) => [{ name: `${name}.weight`, shape: [c], fill: 1 }, { name: `${name}.bias`, shape: [c], fill: 0 }];
  const linear = (name, from, to) => [{ name: `${name}.weight`, shape: [from, to] }, { name: `${name}.bias`, shape: [to], fill: 0 }];
  return [
    { name: 'wte.weight', shape: [vocabulary, c] },
    { name: 'wpe.weight', shape: [positions, c] },
    ...Array.from({ length: layers }, (_, layer) => [
      { name: `h.${layer}.attn.bias`, shape: [1, 1, positions, positions], fill: 1 },
      ...norm(`h.${layer}.ln_1`), ...linear(`h.${layer}.attn.c_attn`, c, 3 * c), ...linear(`h.${layer}.attn.c_proj`, c, c),
      ...norm(`h.${layer}.ln_2`), ...linear(`h.${layer}.mlp.c_fc`, c, 4 * c), ...linear(`h.${layer}.mlp.c_proj`, 4 * c, c),
    ]).flat(),
    ...norm('ln_f'),
  ];
}

/** Uniform random numbers with this standard deviation, the same in every run. */
function randomNumbers() {
  let state = 1;
  const width = deviation * Math.sqrt(12);
  return (count) => Float32Array.from({ length: count }, () => {
    state ^= state << 13, state ^= state >>> 17, state ^= state << 5;
    return ((state >>> 0) / 2 ** 32 - 0.5) * width;
  });
}

export function writeGpt2Shape(folder) {
  mkdirSync(folder, { recursive: true });
  const { layers, channels, heads, positions, vocabulary } = shape;
  const config = {
    architectures: ['GPT2LMHeadModel'], model_type: 'gpt2', vocab_size: vocabulary, n_positions: positions, n_ctx: positions, n_embd: channels,
    n_layer: layers, n_head: heads, activation_function: 'gelu_new', layer_norm_epsilon: 1e-5,
  };
  writeFileSync(path.join(folder, 'config.json'), JSON.stringify(config));
  const tokenizer = JSON.parse(readFileSync(path.join(root, 'models/english/tokenizer.json')));
  const { vocab } = tokenizer.model;
  // Further tokens, which no text has: only those of the tokenizer are ever written.
  for (let id = Object.keys(vocab).length; id < vocabulary; ++id) vocab[`#${id}`] = id;
  writeFileSync(path.join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  const header = {};
  const all = tensors(shape);
  let end = 0;
  for (const { name, shape: extents } of all) {
    const begin = end;
    end += 4 * extents.reduce((product, extent) => product * extent, 1);
    header[name] = { dtype: 'F32', shape: extents, data_offsets: [begin, end] };
  }
  const text = JSON.stringify(header);
  const padded = text + ' '.repeat((8 - (text.length % 8)) % 8);
  const file = openSync(path.join(folder, 'model.safetensors'), 'w');
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  writeSync(file, length);
  writeSync(file, padded);
  const random = randomNumbers();
  for (const { shape: extents, fill } of all) {
    const count = extents.reduce((product, extent) => product * extent, 1);
    for (let at = 0; at < count; at += 1 << 20) {
      const size = Math.min(1 << 20, count - at);
      const numbers = fill === undefined ? random(size) : new Float32Array(size).fill(fill);
      writeSync(file, new Uint8Array(numbers.buffer));
    }
  }
  closeSync(file);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeGpt2Shape(process.argv[2]);
