// A small engine for tests: it answers a few routes as the module of src/wasm does.

import { Engine, type Port } from './engine';
import { EngineHost, type Answers, type HeedModule } from './engine_host';
import type { FromWorker, ToWorker } from './protocol';

export interface FakeEngine {
  opened: { model: string; options: object }[];
  written: Map<string, number>;
  mounted: Map<string, string[]>;
  requests: string[];
  /** Of each worker: its threads, what it was asked, and the files that a training of it has written. */
  workers: { threads: number; requests: string[]; files: Map<string, Uint8Array> }[];
  stopped: number[];
  /** Streams that go on. */
  streams: Map<number, number>;
}

/** A stream has this many pieces. */
export const pieces = 3;

export function fakeModule(fake: FakeEngine, answers: Answers): HeedModule {
  const own: FakeEngine['workers'][number] = { threads: answers.heedThreads ?? 1, requests: [], files: new Map() };
  fake.workers.push(own);
  const isFolder = (path: string) => [...own.files.keys()].some((file) => file.startsWith(`${path}/`));
  const text = (value: string) => new TextEncoder().encode(value);
  /** The engine's memory, which every reply is written into. */
  const memory = new Uint8Array(256);
  const chunk = (id: number, value: string) => {
    const bytes = text(value);
    memory.set(bytes);
    answers.heedChunk(id, memory.subarray(0, bytes.length));
  };
  const head = (id: number, status: number, type: string) => answers.heedHead(id, status, JSON.stringify([['Content-Type', type]]));
  return {
    heedOpen: (model, options) => {
      if (model.endsWith('/broken')) throw new Error(`${model}/config.json: 'n_head' is -1; expected at least 1`);
      if (model.endsWith('/huge')) throw new RangeError('Array buffer allocation failed');
      fake.opened.push({ model, options });
    },
    heedRequest: (id, method, target, headers, body) => {
      fake.requests.push(`${method} ${target}`);
      own.requests.push(`${method} ${target}`);
      // A training keeps its first checkpoint at once.
      if (method === 'POST' && target === '/api/training') for (const name of ['run.json', 'checkpoints/00000250/config.json', 'checkpoints/00000500/config.json']) own.files.set(`/runs/live-1/${name}`, text(name));
      if (target === '/stream') {
        head(id, 200, 'text/event-stream');
        fake.streams.set(id, 0);
      } else if (target === '/echo') {
        head(id, 200, headers['content-type'] ?? 'none');
        chunk(id, new TextDecoder().decode(body));
        answers.heedEnd(id, '');
      } else if (target === '/nothing') {
        head(id, 204, 'text/plain');
        answers.heedEnd(id, '');
      } else if (target.endsWith('/trap')) {
        throw new WebAssembly.RuntimeError('memory access out of bounds');
      } else {
        head(id, 404, 'application/json');
        chunk(id, JSON.stringify({ error: { message: `no ${target}` } }));
        answers.heedEnd(id, '');
      }
    },
    heedStop: (id) => {
      fake.stopped.push(id);
      if (fake.streams.delete(id)) answers.heedEnd(id, 'stopped');
    },
    heedWork: () => {
      const [next] = fake.streams;
      if (!next) return -1;
      const [id, count] = next;
      chunk(id, `data: ${count}\n\n`);
      fake.streams.delete(id);
      if (count + 1 < pieces) fake.streams.set(id, count + 1);
      else answers.heedEnd(id, '');
      return fake.streams.size > 0 ? 0 : -1;
    },
    FS: {
      mkdirTree: () => undefined,
      writeFile: (path, data) => {
        fake.written.set(path, data.length);
        own.files.set(path, data);
      },
      readFile: (path) => own.files.get(path)!.slice(),
      readdir: (path) => ['.', '..', ...new Set([...own.files.keys()].filter((file) => file.startsWith(`${path}/`)).map((file) => file.slice(path.length + 1).split('/')[0]))],
      analyzePath: (path) => ({ exists: own.files.has(path) || isFolder(path) }),
      isDir: (mode) => mode === 1,
      stat: (path) => ({ mode: isFolder(path) ? 1 : 0 }),
      mount: (type, { blobs }, path) => {
        if ((type as { node_ops: object }).node_ops && 'readlink' in (type as { node_ops: object }).node_ops) throw new Error('EPERM');
        fake.mounted.set(path, blobs.map(({ name }) => name));
      },
      unmount: () => undefined,
    },
    WORKERFS: { node_ops: { readlink: () => undefined } },
  };
}

/** A worker that runs in the test: messages go both ways as tasks of their own. */
export function fakeWorker(files: Record<string, string> = {}): { fake: FakeEngine; makePort: () => Port; ports: { terminated: boolean }[] } {
  const fake: FakeEngine = { opened: [], written: new Map(), mounted: new Map(), requests: [], workers: [], stopped: [], streams: new Map() };
  const ports: { terminated: boolean }[] = [];
  const makePort = () => {
    const port: Port & { terminated: boolean } = {
      terminated: false,
      onmessage: null,
      onerror: null,
      terminate: () => (port.terminated = true),
      postMessage: (message: ToWorker) => void setImmediate(() => host.take(message)),
    };
    ports.push(port);
    const host = new EngineHost({
      load: async (engine) => {
        if (engine.includes('absent')) throw new Error('404');
        return async (answers) => fakeModule(fake, answers);
      },
      post: (message: FromWorker) => void setImmediate(() => {
        if (!port.terminated) port.onmessage?.({ data: message });
      }),
      fetch: async (url) => (url in files ? new Response(files[url]) : new Response('', { status: 404, statusText: 'Not Found' })),
      later: (milliseconds, step) => {
        const timer = setTimeout(step, milliseconds);
        return () => clearTimeout(timer);
      },
    });
    return port;
  };
  return { fake, makePort, ports };
}

export function fakeEngine(): { engine: Engine; fake: FakeEngine; lost: string[] } {
  const { fake, makePort } = fakeWorker();
  const lost: string[] = [];
  return { engine: new Engine(makePort, [{ address: 'engine/heed.js', threads: 1 }], { lost: (message) => lost.push(message) }), fake, lost };
}
