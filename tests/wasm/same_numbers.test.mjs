// The engine as WebAssembly beside the native program: every point of starter for 20 texts, texts, training, and
// what a page does beside. Exit 77 where it was not built.
//   node same_numbers.test.mjs HEED_JS HEED [THREADS]      THREADS: of a module that has them (build/wasm-threads)
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Engine, root } from '../../src/wasm/engine.mjs';

const [script = path.join(root, 'build/wasm/bin/heed.js'), binary = path.join(root, 'build/release/bin/heed'), threads] = process.argv.slice(2);
const settings = threads === undefined ? {} : { threads: Number(threads) };
if (!existsSync(script) || !existsSync(binary)) {
  console.log(`skipped: ${existsSync(script) ? binary : script} is missing`);
  process.exit(77);
}

// Of an array's largest number: some roundings of 2^-24, added up in another order. A row may be small beside its terms:
// a score is a sum of products that cancel, and the first position has one score alone.
const tolerance = 2e-6;
// What softmax makes of scores that are as far apart: p·Δs, of scores up to the largest of the layer.
const patternTolerance = (largestScore) => tolerance * Math.max(1, largestScore);
const lossTolerance = 1e-5;
const trainingSteps = 50;

const texts = [
  'Once upon a time there was a girl named Lily.', 'Tom went to the park with his dog.', 'The cat sat on the mat because it was tired.',
  'Mia gave the ball to Ben, and', 'One day, the sun was very hot.', 'She said, "I am happy!"', 'Ben and Anna played. Ben and', 'The bird',
  'Sam had a red car and a blue', 'A', 'The key to the cabinets', 'In the morning, mum made a cake for the', 'He wanted to go home, but he',
  'The big bear was sad. The big', 'naïve café — “quotes”', '12 + 30 =', 'the the the the', 'Lily lost her doll.\nShe looked for', 'Yes', 'It was raining, so they took an',
];
const outer = ['hook_embed', 'hook_pos_embed', 'ln_final.hook_scale', 'ln_final.hook_normalized', 'unembed.hook_in', 'unembed.hook_out'];
const inner = [
  'hook_resid_pre', 'hook_attn_in', 'hook_q_input', 'hook_k_input', 'hook_v_input', 'ln1.hook_scale', 'ln1.hook_normalized', 'attn.hook_q',
  'attn.hook_k', 'attn.hook_v', 'attn.hook_rot_q', 'attn.hook_rot_k', 'attn.hook_attn_scores', 'attn.hook_pattern', 'attn.hook_z',
  'attn.hook_result', 'hook_attn_out', 'hook_resid_mid', 'hook_mlp_in', 'ln2.hook_scale', 'ln2.hook_normalized', 'mlp.hook_pre',
  'mlp.hook_pre_linear', 'mlp.hook_post', 'hook_mlp_out', 'hook_resid_post', 'hook_normalized_resid_post',
];

const runs = mkdtempSync(path.join(tmpdir(), 'heed-runs-'));
const children = [];

/** `heed explore` with a model, one thread. */
async function startNative(model) {
  const child = spawn(binary, ['explore', '-m', model, '--port', '0', '--live-runs', runs, '--no-downloads'], { env: { ...process.env, HEED_THREADS: '1' }, stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  const address = await new Promise((resolve, reject) => {
    let output = '';
    const read = (chunk) => {
      output += chunk;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(output);
      if (found) resolve(found[0]);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('close', () => reject(new Error(output)));
  });
  return {
    async ask(method, target, body) {
      // The server closes connections that nobody uses for seconds, while the engine computes in this thread.
      const headers = { Connection: 'close', ...(body && { 'Content-Type': 'application/json' }) };
      const response = await fetch(address + target, { method, headers, ...(body && { body: JSON.stringify(body) }) });
      return { status: response.status, headers: Object.fromEntries([...response.headers].map(([name, value]) => [name, value])), bytes: Buffer.from(await response.arrayBuffer()) };
    },
  };
}

const jsonOf = ({ status, bytes }) => {
  assert.ok(status < 300, `${status}: ${bytes}`);
  return JSON.parse(bytes);
};
const floats = (bytes) => new Float32Array(new Uint8Array(bytes).buffer);
const header = (reply, name) => Object.entries(reply.headers).find(([key]) => key.toLowerCase() === name)?.[1];

const largestOf = (array) => array.reduce((largest, value) => (Number.isFinite(value) ? Math.max(largest, Math.abs(value)) : largest), 0);

/** The largest difference of two arrays, relative to their largest number. */
function difference(ours, theirs) {
  assert.equal(ours.length, theirs.length);
  let apart = 0;
  for (let i = 0; i < ours.length; ++i) {
    if (ours[i] === theirs[i]) continue;
    assert.ok(Number.isFinite(ours[i]) && Number.isFinite(theirs[i]), `${ours[i]} beside ${theirs[i]}`);
    apart = Math.max(apart, Math.abs(ours[i] - theirs[i]));
  }
  return apart > 0 ? apart / largestOf(theirs) : 0;
}

async function comparePoints(engine, native) {
  const layers = jsonOf(await native.ask('GET', '/api/model')).dimensions.layers;
  const points = [...outer, ...Array.from({ length: layers }, (_, layer) => inner.map((name) => `blocks.${layer}.${name}`)).flat()];
  let compared = 0;
  let worst = { apart: 0, point: '' };
  let largestScore = 0;
  for (const text of texts) {
    const body = { text };
    const ids = [jsonOf(await engine.ask('POST', '/api/traces', body)).id, jsonOf(await native.ask('POST', '/api/traces', body)).id];
    for (const point of points) {
      const [ours, theirs] = [await engine.ask('GET', `/api/traces/${ids[0]}/arrays/${point}`), await native.ask('GET', `/api/traces/${ids[1]}/arrays/${point}`)];
      assert.equal(ours.status, theirs.status, point);
      if (theirs.status !== 200) continue;
      const shape = header(theirs, 'x-heed-shape');
      assert.equal(header(ours, 'x-heed-shape'), shape, point);
      if (point.endsWith('hook_attn_scores')) largestScore = largestOf(floats(theirs.bytes));
      const apart = difference(floats(ours.bytes), floats(theirs.bytes));
      assert.ok(apart <= (point.endsWith('hook_pattern') ? patternTolerance(largestScore) : tolerance), `${point} of ${JSON.stringify(text)}: ${apart}`);
      if (apart > worst.apart) worst = { apart, point: `${point} of ${JSON.stringify(text)}` };
      compared += 1;
    }
    await engine.ask('DELETE', `/api/traces/${ids[0]}`);
    await native.ask('DELETE', `/api/traces/${ids[1]}`);
  }
  console.log(`  ${compared} arrays, at most ${worst.apart.toExponential(1)} apart (${worst.point})`);
  assert.ok(compared >= 20 * (4 + 20 * layers), `${compared} arrays`);
}

const events = (bytes) => bytes.toString().split('\n\n').filter((event) => event.startsWith('event: ')).map((event) => {
  const [name, data] = event.split('\n');
  return { name: name.slice(7), data: JSON.parse(data.slice(6)) };
});

const native = await startNative('starter');
const begun = performance.now();
const engine = await Engine.load(script, settings);
const loaded = performance.now();
engine.put('starter', path.join(root, 'models/starter'));
engine.open('starter');
const opened = performance.now();

const tests = {
  async 'the model is the same'() {
    const [ours, theirs] = [jsonOf(await engine.ask('GET', '/api/model')), jsonOf(await native.ask('GET', '/api/model'))];
    // The native one has no run here, or the recorded one.
    for (const each of [ours, theirs]) delete each.runs, delete each.limits;
    assert.deepEqual(ours, theirs);
    const shown = performance.now();
    const trace = jsonOf(await engine.ask('POST', '/api/traces', { text: texts[0] }));
    assert.equal((await engine.ask('GET', `/api/traces/${trace.id}/arrays/blocks.0.attn.hook_pattern`)).status, 200);
    console.log(`  load ${(loaded - begun).toFixed(0)} ms, open ${(opened - loaded).toFixed(0)} ms, first attention ${(performance.now() - shown).toFixed(0)} ms`);
    assert.equal(jsonOf(await engine.ask('GET', '/api/status')).local, false);
    assert.equal(jsonOf(await native.ask('GET', '/api/status')).local, true);
  },

  async 'every point of 20 texts is the same'() {
    await comparePoints(engine, native);
    const trace = jsonOf(await engine.ask('POST', '/api/traces', { text: texts[0] })).id;
    const logits = `/api/traces/${trace}/arrays/unembed.hook_out`;
    const written = JSON.parse((await engine.ask('GET', `${logits}?format=json`)).bytes).values.flat(Infinity).map(Math.fround);
    assert.deepEqual(written, [...floats((await engine.ask('GET', logits)).bytes)], 'numbers as text');
  },

  async 'starter as the page stores it: the same file, and the same numbers'() {
    const folder = mkdtempSync(path.join(tmpdir(), 'heed-stored-'));
    execFileSync(binary, ['convert', 'starter', '--dtype', 'int8', '--embedding', '--compute-f32', '-o', path.join(folder, 'starter')], { stdio: 'ignore' });
    const claims = JSON.parse(readFileSync(path.join(root, 'models/starter/claims.json')));
    engine.convert('starter', '/stored', { dtype: 'int8', embedding: true, compute_f32: true, claims });
    const written = engine.files('/stored');
    for (const name of ['config.json', 'model.safetensors']) assert.ok(written.get(name).equals(readFileSync(path.join(folder, 'starter', name))), name);
    assert.equal(JSON.parse(written.get('examples.json')).length, claims.length);
    const page = await Engine.load(script, settings);
    page.put('stored', path.join(folder, 'starter'));
    page.open('/models/stored');
    await comparePoints(page, await startNative(path.join(folder, 'starter')));
    rmSync(folder, { recursive: true });
  },

  async 'mounted files are read as written ones'() {
    const text = async (name, place) => {
      const other = await Engine.load(script, settings);
      other[place](name, path.join(root, 'models/english'));
      other.open(`/models/${name}`, { dtype: 'int8' });
      return jsonOf(await other.ask('POST', '/v1/completions', { prompt: texts[0], temperature: 0, max_tokens: 16 })).choices[0].text;
    };
    assert.equal(await text('own', 'mount'), await text('own', 'put'));
  },

  async 'greedy texts are equal'() {
    for (const text of texts) {
      const body = { text, temperature: 0, max_new_tokens: 24 };
      const drawn = async (side) => events((await side.ask('POST', '/api/generate', body)).bytes).filter(({ name }) => name === 'token').map(({ data }) => data.token);
      const ours = await drawn(engine);
      assert.ok(ours.length > 0);
      assert.deepEqual(ours, await drawn(native), text);
    }
    const body = { prompt: texts[0], temperature: 0, max_tokens: 16 };
    const text = async (side) => jsonOf(await side.ask('POST', '/v1/completions', body)).choices[0].text;
    assert.equal(await text(engine), await text(native));
    const streamed = (await engine.ask('POST', '/v1/completions', { ...body, stream: true })).bytes.toString();
    const pieces = streamed.split('\n\n').filter((event) => event.startsWith('data: {')).map((event) => JSON.parse(event.slice(6)).choices[0]?.text ?? '');
    assert.equal(pieces.join(''), await text(native));
    assert.ok(streamed.endsWith('data: [DONE]\n\n'));
  },

  async 'a reply is stopped between two pieces'() {
    const body = { text: texts[0], max_new_tokens: 40 };
    const cut = await engine.ask('POST', '/api/generate', body, (reply) => reply.chunks.length < 3);
    assert.equal(cut.error, 'stopped');
    assert.equal(events(cut.bytes).length, 3);
    const other = engine.begin('POST', '/api/generate', body);
    engine.work();
    assert.equal(other.ended, false);
    engine.stop(other);
    assert.equal(other.ended, true);
    assert.equal(jsonOf(await engine.ask('GET', '/api/model')).name, 'starter');
  },

  async 'losses of training are the same'() {
    const body = { preset: 'sentences', settings: { steps: trainingSteps } };
    const losses = async (side, between) => {
      let state = jsonOf(await side.ask('POST', '/api/training', body));
      // The answer waits some seconds for the run's name, no longer: a busy machine may be preparing still.
      while (!['finished', 'failed', 'stopped'].includes(state.state)) {
        await between();
        state = jsonOf(await side.ask('GET', '/api/training'));
      }
      assert.equal(state.state, 'finished', JSON.stringify(state.error));
      return jsonOf(await side.ask('GET', `/api/runs/${state.run}/metrics`)).rows.filter(({ loss }) => loss !== undefined).map(({ loss }) => loss);
    };
    const start = performance.now();
    const ours = await losses(engine, async () => engine.work());
    const seconds = (performance.now() - start) / 1000;
    const theirs = await losses(native, () => new Promise((resolve) => setTimeout(resolve, 200)));
    assert.equal(ours.length, trainingSteps);
    assert.equal(theirs.length, trainingSteps);
    const apart = Math.max(...ours.map((loss, i) => Math.abs(loss - theirs[i])));
    console.log(`  ${trainingSteps} steps in ${seconds.toFixed(1)} s, losses at most ${apart.toExponential(1)} apart`);
    assert.ok(apart <= lossTolerance, `${apart}`);
  },

  async 'training pauses, goes on and stops, and its lines come as events'() {
    const act = async (action) => jsonOf(await engine.ask('POST', `/api/training/${action}`)).state;
    const { run } = jsonOf(await engine.ask('POST', '/api/training', { preset: 'sentences', settings: { steps: 200 } }));
    const watched = engine.begin('GET', `/api/runs/${run}/events`);
    const step = async () => jsonOf(await engine.ask('GET', '/api/training')).step;
    while ((await step()) < 3) engine.work();
    assert.equal(await act('pause'), 'paused');
    const held = await step();
    for (let i = 0; i < 20; ++i) engine.work();
    assert.equal(await step(), held);
    assert.equal(await act('resume'), 'running');
    while ((await step()) < held + 2) engine.work();
    await act('stop');
    while (!watched.ended) {
      const wait = engine.work();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      if (jsonOf(await engine.ask('GET', '/api/training')).state === 'stopped') break;
    }
    assert.ok(events(Buffer.concat(watched.chunks)).some(({ name, data }) => name === 'metrics' && data.step >= 3));
    engine.stop(watched);
  },

  async 'as many threads compute at the same time as were asked for'() {
    assert.equal(engine.threadCount, settings.threads ?? 1);
  },

  async 'decoders of every family write the same tokens, as likely'() {
    const goldens = path.join(root, 'tests/golden/families');
    const families = readdirSync(goldens, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => name);
    assert.ok(families.length >= 21, `${families}`);
    const body = { prompt: [1, 2, 3, 4, 5, 6, 1, 2, 3], max_tokens: 6, temperature: 0, ignore_eos: true, logprobs: 1 };
    for (const family of families) {
      const server = await startNative(path.join(goldens, family));
      try {
        engine.mount(family, path.join(goldens, family));
        engine.open(`/models/${family}`);
        const [ours, theirs] = await Promise.all([engine, server].map(async (each) => jsonOf(await each.ask('POST', '/v1/completions', body)).choices[0]));
        assert.equal(ours.text, theirs.text, family);
        assert.equal(theirs.logprobs.token_logprobs.length, 6, family);
        ours.logprobs.token_logprobs.forEach((log, at) => assert.ok(Math.abs(log - theirs.logprobs.token_logprobs[at]) < 1e-5, `${family}: ${log} beside ${theirs.logprobs.token_logprobs[at]}`));
      } finally {
        children.at(-1).kill();
      }
    }
    engine.open('starter');
    console.log(`  ${families.join(', ')}`);
  },

  async 'what cannot be opened is named, and the model before stays'() {
    assert.throws(() => engine.open('/models/absent'), /absent/);
    engine.put('broken', path.join(root, 'tests/wasm'));
    assert.throws(() => engine.open('/models/broken'), /config\.json/);
    assert.throws(() => engine.open('english'), /english/);
    assert.equal(jsonOf(await engine.ask('GET', '/api/model')).name, 'starter');
    assert.equal((await engine.ask('POST', '/api/downloads/gpt2')).status, 403);
    assert.equal((await engine.ask('GET', '/nowhere')).status, 404);
    assert.equal((await engine.ask('POST', '/api/traces', { text: '' })).status, 400);
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    console.log(`ok: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`failed: ${name}\n${error.stack}`);
  }
}
for (const child of children) child.kill('SIGTERM');
rmSync(runs, { recursive: true, force: true });
process.exit(failed === 0 ? 0 : 1);
