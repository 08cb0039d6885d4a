// A checkpoint of GPT-2's 124M shape, as the reader's own files: opens in int8, follows a text and writes, in little memory;
// as a GGUF file, whose blocks are used as they are, it takes a fraction of that.
//   node large_model.test.mjs HEED_JS HEED
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Engine } from '../../src/wasm/engine.mjs';
import { shape, writeGpt2Shape } from './gpt2_shape.mjs';

const folder = mkdtempSync(path.join(tmpdir(), 'heed-gpt2-'));
const weights = path.join(folder, 'model.safetensors');
try {
  writeGpt2Shape(folder);
  const blocks = path.join(folder, 'blocks');
  mkdirSync(blocks);
  execFileSync(path.resolve(process.argv[3]), ['convert', folder, '--dtype', 'q4_0', '--out', path.join(blocks, 'gpt2.gguf')], { stdio: 'ignore' });
  const packed = await Engine.load(path.resolve(process.argv[2]));
  packed.mount('blocks', blocks);
  const before = process.memoryUsage().rss;
  packed.open('/models/blocks/gpt2.gguf');
  const { bytes: written } = await packed.ask('POST', '/v1/completions', { prompt: 'The dog', max_tokens: 4, temperature: 0, ignore_eos: true });
  assert.equal(JSON.parse(written).usage.completion_tokens, 4);
  const taken = process.memoryUsage().rss - before;
  console.log(`  ${(statSync(path.join(blocks, 'gpt2.gguf')).size / 1e6).toFixed(0)} MB of blocks, ${(taken / 1e6).toFixed(0)} MB of memory`);
  assert.ok(taken < 0.3e9, `${taken} bytes`); // the parameters in f32, of which only addresses are needed, are 498 MB

  const engine = await Engine.load(path.resolve(process.argv[2]));
  engine.mount('gpt2', folder);
  engine.open('/models/gpt2', { dtype: 'int8' });
  const { id, tokens } = JSON.parse((await engine.ask('POST', '/api/traces', { text: 'The dog chased the cat over the fence.' })).bytes);
  const { bytes: pattern } = await engine.ask('GET', `/api/traces/${id}/arrays/blocks.${shape.layers - 1}.attn.hook_pattern`);
  assert.equal(pattern.length, 4 * shape.heads * tokens.length ** 2);
  const reply = await engine.ask('POST', '/v1/completions', { prompt: 'The dog', max_tokens: 4, temperature: 0, ignore_eos: true });
  assert.equal(JSON.parse(reply.bytes).usage.completion_tokens, 4);
  // The parameters in f32 (498 MB) and in int8 (131 MB) beside one tensor (154 MB) while it is read: not the file of 548 MB.
  console.log(`  ${(statSync(weights).size / 1e6).toFixed(0)} MB of weights, ${(engine.memoryBytes / 1e6).toFixed(0)} MB of memory`);
  assert.ok(engine.memoryBytes < 0.9e9, `${engine.memoryBytes} bytes`);

  const other = await Engine.load(path.resolve(process.argv[2]));
  truncateSync(weights, 100e6);
  other.mount('gpt2', folder);
  assert.throws(() => other.open('/models/gpt2', { dtype: 'int8' }), /model\.safetensors.*data ends at \d+, but the file holds \d+ bytes/);
  console.log('ok: a large checkpoint is read tensor by tensor');
} catch (error) {
  console.log(`failed: ${String(error.stack).slice(0, 2000)}`); // Emscripten prints its whole script for what nobody catches
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true });
}
process.exit();
