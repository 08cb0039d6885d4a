// GGUF files in the engine as WebAssembly, mounted as a reader's own: read in parts, with the native program's numbers.
//   node gguf.test.mjs HEED_JS HEED
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Engine } from '../../src/wasm/engine.mjs';
import { ggufBytes, ggufParts, readGguf } from './gguf_parts.mjs';

const [script, binary] = process.argv.slice(2).map((file) => path.resolve(file));
const scratch = mkdtempSync(path.join(tmpdir(), 'heed-gguf-'));
const prompt = 'It was a dark';
const heed = (...parameters) => execFileSync(binary, parameters, { encoding: 'utf8', env: { ...process.env, HEED_THREADS: '1' }, maxBuffer: 1 << 26 });

/** Opens a file of a folder. */
async function opened(folder, name) {
  const engine = await Engine.load(script);
  engine.mount('own', folder);
  engine.open(`/models/own/${name}`, { name: 'own' });
  return engine;
}

async function completion(engine) {
  const { status, bytes } = await engine.ask('POST', '/v1/completions', { prompt, max_tokens: 12, temperature: 0, ignore_eos: true, logprobs: 1 });
  assert.equal(status, 200, bytes.toString());
  const { text, logprobs } = JSON.parse(bytes).choices[0];
  return { text, logs: logprobs.token_logprobs };
}

/** What the native program writes. */
function nativeText(file) {
  return heed('generate', '-m', file, '-p', prompt, '-n', '12', '--temperature', '0', '--ignore-eos', '--no-prompt', '--json');
}

function folderOf(files) {
  const folder = mkdtempSync(path.join(scratch, 'm-'));
  for (const [name, bytes] of Object.entries(files)) writeFileSync(path.join(folder, name), bytes);
  return folder;
}

const whole = {};
for (const type of ['f32', 'f16', 'q8_0', 'q4_k_m']) {
  whole[type] = path.join(scratch, `english-${type}.gguf`);
  heed('convert', 'english', '--dtype', type, '--out', whole[type]);
}
const refused = (name, bytes, message) => assert.rejects(opened(folderOf({ [name]: bytes }), name), message);

const tests = {
  async 'a file of any type of weights writes what the native program writes'() {
    for (const [type, file] of Object.entries(whole)) {
      const ours = await completion(await opened(folderOf({ 'm.gguf': readFileSync(file) }), 'm.gguf'));
      assert.equal(ours.text, JSON.parse(nativeText(file)).text, type);
      console.log(`  ${type}: ${JSON.stringify(ours.text)}`);
    }
  },

  async 'a file in parts, and one with a header of 9 MB, are the same model'() {
    const all = await completion(await opened(folderOf({ 'm.gguf': readFileSync(whole.q8_0) }), 'm.gguf'));
    const parts = ggufParts(whole.q8_0, 'm');
    const names = Object.keys(parts);
    assert.deepEqual(await completion(await opened(folderOf(parts), names[0])), all);
    assert.deepEqual(await completion(await opened(folderOf(parts), names[1])), all);
    const long = ggufBytes(readGguf(whole.q8_0), { 'general.description': 'x'.repeat(9 << 20) });
    assert.deepEqual(await completion(await opened(folderOf({ 'm.gguf': long }), 'm.gguf')), all);
    await assert.rejects(opened(folderOf({ [names[0]]: parts[names[0]] }), names[0]), /is part 1 of 2: '.*00002-of-00002\.gguf' is missing/);
  },

  async 'a file is read in parts: its bytes are not in memory beside its numbers'() {
    const engine = await opened(folderOf({ 'm.gguf': readFileSync(whole.f32) }), 'm.gguf');
    // The numbers in f32, and one tensor while it is read: not the file beside them.
    const size = statSync(whole.f32).size;
    console.log(`  ${(size / 1e6).toFixed(0)} MB of weights, ${(engine.memoryBytes / 1e6).toFixed(0)} MB of memory`);
    assert.ok(engine.memoryBytes < 1.9 * size, `${engine.memoryBytes} bytes of memory for ${size} bytes`);
  },

  async 'large weights are held as int8'() {
    const engine = await Engine.load(script);
    engine.mount('own', folderOf({ 'm.gguf': readFileSync(whole.f32) }));
    engine.open('/models/own/m.gguf', { dtype: 'int8' });
    assert.equal((await completion(engine)).logs.length, 12);
  },

  async 'files that are not whole, or lie, are refused by name, and the model before stays'() {
    const good = readFileSync(whole.q8_0);
    await refused('m.gguf', good.subarray(0, good.length - 5000), /m\.gguf.*does not fit into the \d+ bytes of data/);
    await refused('m.gguf', good.subarray(0, 2000), /m\.gguf/);
    await refused('m.gguf', good.subarray(0, 3), /m\.gguf.*does not begin with 'GGUF'/);
    await refused('m.gguf', Buffer.alloc(0), /m\.gguf/);
    await refused('m.gguf', Buffer.from('GGUF'), /m\.gguf.*the version/);
    const many = Buffer.from(good);
    many.writeBigUInt64LE(2n ** 60n, 16);
    await refused('m.gguf', many, /m\.gguf.*says it holds 1152921504606846976 entries/);
    const old = Buffer.from(good);
    old.writeUInt32LE(1, 4);
    await refused('m.gguf', old, /m\.gguf.*version 1/);

    const engine = await opened(folderOf({ 'm.gguf': good }), 'm.gguf');
    const before = await completion(engine);
    engine.mount('bad', folderOf({ 'm.gguf': many }));
    assert.throws(() => engine.open('/models/bad/m.gguf'), /entries/);
    assert.deepEqual(await completion(engine), before);
  },

  async 'a header that has no end is not read to the file’s'() {
    const folder = folderOf({});
    mkdirSync(folder, { recursive: true });
    const file = path.join(folder, 'm.gguf');
    const key = Buffer.from('general.description');
    const begin = Buffer.alloc(24 + 8 + key.length + 4 + 8);
    begin.write('GGUF');
    begin.writeUInt32LE(3, 4);
    begin.writeBigUInt64LE(1n, 16);
    begin.writeBigUInt64LE(BigInt(key.length), 24);
    key.copy(begin, 32);
    begin.writeUInt32LE(8, 32 + key.length);
    begin.writeBigUInt64LE(1_000_000_000n, 36 + key.length);
    const descriptor = openSync(file, 'w');
    writeSync(descriptor, begin);
    closeSync(descriptor);
    truncateSync(file, 1_200_000_000); // of zeros, which take no space on a disk
    await assert.rejects(opened(folder, 'm.gguf'), /m\.gguf.*its header takes more than \d+ bytes/);
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    console.log(`ok: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`failed: ${name}\n${String(error.stack).slice(0, 2000)}`);
  }
}
rmSync(scratch, { recursive: true, force: true });
process.exit(failed === 0 ? 0 : 1);
