import { describe, expect, it, vi } from 'vitest';
import { readEvents } from '../lib/events';
import { Chooser, dtypeOf, type ChooserOptions } from './chooser';
import { Engine, type Port } from './engine';
import { fakeEngine, fakeWorker } from './engine_fixture';
import type { Release } from './release';

const post = (text: string): RequestInit => ({ method: 'POST', headers: { 'Content-Type': 'text/x' }, body: text });

describe('requests to the engine in a worker', () => {
  it('have status, headers and body, each its own', async () => {
    const { engine, fake } = fakeEngine();
    const answers = await Promise.all(['one', 'two', 'three ✓'].map((text) => engine.fetch('/echo', post(text))));
    // The fake writes all replies into the same memory: a chunk that was not copied would read as the last one.
    expect(await Promise.all(answers.map((answer) => answer.text()))).toEqual(['one', 'two', 'three ✓']);
    expect(answers.map(({ status, headers }) => [status, headers.get('Content-Type')])).toEqual(Array(3).fill([200, 'text/x']));
    expect(fake.requests).toEqual(Array(3).fill('POST /echo'));
  });

  it('give error replies and empty replies as a server does', async () => {
    const { engine } = fakeEngine();
    const missing = await engine.fetch('/api/x');
    expect([missing.status, missing.ok, await missing.json()]).toEqual([404, false, { error: { message: 'no /api/x' } }]);
    expect((await engine.fetch('/nothing')).status).toBe(204);
  });

  it('stream, and others are answered between the pieces', async () => {
    const { engine } = fakeEngine();
    const seen: string[] = [];
    const events = readEvents(await engine.fetch('/stream'));
    const first = (await events.next()).value!.data;
    const between = engine.fetch('/echo', post('between')).then(async (answer) => seen.push(await answer.text()));
    seen.push(first);
    for await (const { data } of events) seen.push(data);
    await between;
    expect(seen.filter((data) => data !== 'between')).toEqual(['0', '1', '2']);
    expect(seen).toContain('between');
  });

  it('are stopped by their signal: before they are sent, while they wait, and in a stream', async () => {
    const { engine, fake } = fakeEngine();
    await expect(engine.fetch('/echo', { ...post('x'), signal: AbortSignal.abort() })).rejects.toThrow();
    const waiting = new AbortController();
    const request = engine.fetch('/echo', { ...post('x'), signal: waiting.signal });
    waiting.abort();
    await expect(request).rejects.toMatchObject({ name: 'AbortError' });
    const abort = new AbortController();
    const reader = (await engine.fetch('/stream', { signal: abort.signal })).body!.getReader();
    await reader.read();
    abort.abort();
    await expect((async () => { for (;;) if ((await reader.read()).done) return; })()).rejects.toMatchObject({ name: 'AbortError' });
    await engine.fetch('/nothing');
    expect(fake.streams.size).toBe(0);
    expect(fake.stopped.length).toBe(1);
    expect(fake.requests.filter((line) => line.includes('/echo'))).toEqual([]);
  });

  it('a reader that leaves a stream stops it', async () => {
    const { engine, fake } = fakeEngine();
    for await (const event of readEvents(await engine.fetch('/stream'))) if (event.data === '0') break;
    await engine.fetch('/nothing');
    expect(fake.streams.size).toBe(0);
  });

  it('fail with a message once the engine has trapped, and later ones too', async () => {
    const { engine, lost } = fakeEngine();
    const stream = await engine.fetch('/stream');
    const [trap, behind] = await Promise.all([engine.fetch('/trap'), engine.fetch('/echo', post('x'))]);
    for (const answer of [trap, behind, await engine.fetch('/echo')]) {
      expect([answer.status, (await answer.json()).error.message]).toEqual([503, 'memory access out of bounds']);
    }
    await expect(stream.text()).rejects.toThrow();
    expect(lost).toEqual(['memory access out of bounds']);
  });

  it('say so where the engine cannot be loaded', async () => {
    const { makePort } = fakeWorker();
    const engine = new Engine(makePort, [{ address: 'absent/heed.js', threads: 1 }]);
    const answer = await engine.fetch('/echo');
    expect((await answer.json()).error.message).toBe('the engine could not be loaded: 404');
  });

  it('are answered by the next engine where the first cannot be loaded', async () => {
    const { fake, makePort } = fakeWorker();
    const engine = new Engine(makePort, [{ address: 'absent/heed.js', threads: 4 }, { address: 'engine/heed.js', threads: 1 }]);
    expect((await engine.fetch('/nothing')).status).toBe(204);
    expect(fake.workers.map(({ threads }) => threads)).toEqual([1]);
  });
});

describe('the chosen model', () => {
  const base = 'https://school.example/heed/';
  const release: Release = {
    engine: 'engine-1/heed.js',
    models: {
      starter: { folder: 'models/starter-1/', files: [{ path: 'config.json', bytes: 2 }, { path: 'model.safetensors', bytes: 7 }] },
      english: { folder: 'models/english-1/', files: [{ path: 'config.json', bytes: 2 }] },
      recorded: { folder: 'models/run-1/', files: [{ path: 'run.json', bytes: 2 }, { path: 'checkpoints/0/config.json', bytes: 2 }] },
    },
  };
  release.transcoders = { folder: 'models/transcoders-1/', files: [{ path: 'names.json', bytes: 2 }, { path: 'layer_0/cfg.json', bytes: 2 }] };
  const files = Object.fromEntries([...Object.values(release.models), release.transcoders].flatMap(({ folder, files: all }) => all.map(({ path }) => [base + folder + path, 'x'.repeat(7)])));
  const own = (name: string, bytes = 5) => [{ path: 'config.json', bytes: 2, file: new Blob(['{}']) }, { path: `${name}.safetensors`, bytes, file: new Blob(['weights']) }];
  const listed = (['starter', 'english', 'mine', 'gpt2'] as const).map((name) => ({ name, state: name === 'gpt2' ? ('absent' as const) : ('ready' as const) }));

  function make(changes: Partial<ChooserOptions> = {}) {
    const worker = fakeWorker(files);
    const told: (string | null)[] = [];
    const chooser = new Chooser({ release, base, makePort: worker.makePort, ownFiles: async (name) => (['mine', 'broken', 'huge'].includes(name) ? own(name) : null), list: async () => listed, tell: (message) => told.push(message), ...changes });
    return { ...worker, chooser, told };
  }

  it('is the first where a link names none; its files come from the page’s folder', async () => {
    const { chooser, fake } = make();
    expect(await chooser.choose('')).toBeUndefined();
    expect(fake.opened).toEqual([{ model: 'starter', options: {} }]);
    expect([...fake.written.keys()]).toContain('/models/recorded/run.json');
    expect(fake.written.get('/models/starter/model.safetensors')).toBe(7);
    expect((await (await chooser.fetch('/api/x')).json()).error.message).toBe('no /api/x');
  });

  it('has the threads that the page may have, if there is an engine with threads', async () => {
    const several = make({ threads: 4, release: { ...release, threadsEngine: 'threads-engine-1/heed.js' } });
    await several.chooser.choose('');
    expect(several.fake.workers.map(({ threads }) => threads)).toEqual([4]);
    const one = make({ threads: 4 });
    await one.chooser.choose('');
    expect(one.fake.workers.map(({ threads }) => threads)).toEqual([1]);
  });

  it('a second one that comes with the page is loaded beside the first, by its name', async () => {
    const { chooser, fake, ports } = make();
    await chooser.choose('english');
    expect(await chooser.choose('')).toBe('starter');
    expect(await chooser.choose('english')).toBeUndefined();
    expect([ports.length, fake.opened.length]).toEqual([1, 1]);
    expect(fake.written.has('/models/starter/config.json')).toBe(true);
  });

  it('has transcoders once a question is about features, and not before', async () => {
    const { chooser, fake } = make();
    await chooser.choose('');
    await chooser.fetch('/api/traces/t1/next');
    expect([...fake.written.keys()].filter((path) => path.includes('transcoders'))).toEqual([]);
    await chooser.fetch('/api/traces/t1/causes?position=3');
    expect([...fake.written.keys()].filter((path) => path.includes('transcoders'))).toEqual(['/models/starter-transcoders/names.json', '/models/starter-transcoders/layer_0/cfg.json']);
  });

  it('answers about paths without transcoders where these cannot be fetched, and has none for a model of the reader’s own', async () => {
    const { chooser, fake } = make({ release: { ...release, transcoders: { folder: 'models/gone/', files: release.transcoders!.files } } });
    await chooser.choose('');
    expect((await (await chooser.fetch('/api/traces/t1/causes')).json()).error.message).toBe('no /api/traces/t1/causes'); // the engine was asked
    const other = make();
    await other.chooser.choose('mine');
    await other.chooser.fetch('/api/traces/t1/causes');
    expect([...fake.written.keys(), ...other.fake.written.keys()].filter((path) => path.includes('transcoders'))).toEqual([]);
  });

  it('a model of the reader’s own is mounted in a new worker, and large weights are rounded to int8', async () => {
    const { chooser, fake, ports } = make();
    await chooser.choose('');
    expect(await chooser.choose('mine')).toBeUndefined();
    expect(fake.mounted.get('/models/mine')).toEqual(['config.json', 'mine.safetensors']);
    expect(ports.map(({ terminated }) => terminated)).toEqual([true, false]);
    expect(dtypeOf(own('x', 548e6))).toBe('int8');
    expect(dtypeOf(own('x', 8e6))).toBeUndefined();
    expect(dtypeOf([{ path: 'x.gguf', bytes: 130e6 }])).toBe('int8');
    expect(dtypeOf([{ path: 'x.gguf', bytes: 8e6 }])).toBeUndefined();
  });

  it('a GGUF file is opened itself, of several parts the first', async () => {
    const file = new Blob(['x']);
    const parts = ['a-00002-of-00002.gguf', 'a-00001-of-00002.gguf'].map((path) => ({ path, bytes: 1, file }));
    const { chooser, fake } = make({ ownFiles: async (name) => (name === 'a' ? parts : null) });
    await chooser.choose('a');
    expect(fake.mounted.get('/models/a')).toEqual(parts.map(({ path }) => path));
    expect(fake.opened).toEqual([{ model: '/models/a/a-00001-of-00002.gguf', options: { name: 'a' } }]);
  });

  it('that cannot be opened gives the engine’s message, and the next choice works', async () => {
    const { chooser, told } = make();
    await expect(chooser.choose('broken')).rejects.toThrow("'n_head' is -1; expected at least 1");
    expect(await (await chooser.fetch('/api/x')).json()).toEqual({ error: { message: expect.stringContaining("'n_head' is -1") } });
    expect(await chooser.choose('')).toBeUndefined();
    expect((await chooser.fetch('/nothing')).status).toBe(204);
    expect(told).toEqual([]);
  });

  it('that no browser can hold ends the worker; the reader is told, and the page goes on with another one', async () => {
    const { chooser, told } = make();
    await expect(chooser.choose('huge')).rejects.toThrow('allocation failed');
    expect(told).toEqual(['The engine stopped (Array buffer allocation failed). It starts again with the next request.']);
    await chooser.choose('');
    expect((await chooser.fetch('/nothing')).status).toBe(204);
  });

  it('is opened again with the next request after the engine has trapped', async () => {
    const { chooser, fake, told } = make();
    await chooser.choose('mine');
    expect((await chooser.fetch('/trap')).status).toBe(503);
    expect((await chooser.fetch('/nothing')).status).toBe(204);
    expect(fake.opened.map(({ model }) => model)).toEqual(['/models/mine', '/models/mine']);
    expect(told.length).toBe(1);
  });

  it('of an unknown name is refused with the names of all that can be had, loaded or not', async () => {
    const { chooser } = make();
    await expect(chooser.choose('nowhere')).rejects.toThrow(/^there is no model 'nowhere' here; there are: starter, english, mine$/);
    await expect(chooser.choose('gpt2')).rejects.toThrow(/^there is no model 'gpt2' here, but it can be downloaded; there are: starter, english, mine$/);
    expect(await chooser.choose('')).toBeUndefined();
  });

  it('once it is open, a request reaches the engine before its caller goes on', async () => {
    const { chooser, ports } = make();
    await chooser.choose('');
    const port = ports[0] as unknown as Port;
    const sent = vi.spyOn(port, 'postMessage');
    const answer = chooser.fetch('/nothing');
    expect(sent.mock.calls.map(([{ kind }]) => kind)).toEqual(['request']);
    expect((await answer).status).toBe(204);
  });

  it('runs are answered once their files are there, which are loaded with the first of these requests', async () => {
    const { chooser, fake } = make();
    await chooser.choose('');
    await chooser.fetch('/nothing');
    expect(fake.written.has('/models/recorded/checkpoints/0/config.json')).toBe(false);
    await chooser.fetch('/api/runs/x');
    expect(fake.written.has('/models/recorded/checkpoints/0/config.json')).toBe(true);
  });
});
