import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Download, filesToFetch } from './download';
import { keep } from './keep';
import { largestModel, Library, modelFiles, nameOfFiles, type StorePort } from './library';
import { Sha256 } from './sha256';
import { openFile } from './store';
import { fakeStore } from './store_fixture';
import type { ToStore } from './store_worker';

const bytesOf = (length: number) => Uint8Array.from({ length }, (_, index) => (index * 131 + (index >> 8) * 7) & 255);
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

describe('SHA-256 in pieces', () => {
  it('is that of Node, for lengths around its blocks and for any pieces', () => {
    for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 1000, 100_003]) {
      const bytes = bytesOf(length);
      for (const piece of [1, 7, 64, 100, 4096]) {
        if (piece === 1 && length > 1000) continue;
        const sha = new Sha256();
        for (let at = 0; at < length; at += piece) sha.update(bytes.subarray(at, at + piece));
        expect(sha.digest(), `${length} in ${piece}`).toBe(sha256(bytes));
      }
    }
  });
});

describe('models that the browser keeps', () => {
  const files = [{ path: 'config.json', file: new Blob(['{}']) }, { path: 'model.safetensors', file: new Blob([bytesOf(1000)]) }];

  it('are there whole, under any name, until they are removed', async () => {
    const store = fakeStore();
    const names = ['my model', '..', 'org/name', 'ü'];
    for (const name of names) await keep(store, { name, title: name, files }, () => undefined);
    expect((await store.list()).map(({ name }) => name).sort()).toEqual([...names].sort());
    const kept = (await store.files('org/name'))!;
    expect(kept.map(({ path, bytes }) => [path, bytes])).toEqual([['config.json', 2], ['model.safetensors', 1000]]);
    expect(new Uint8Array(await kept[1].file!.arrayBuffer())).toEqual(bytesOf(1000));
    await store.remove('org/name');
    expect(await store.files('org/name')).toBeNull();
    expect(await store.files('..')).not.toBeNull();
  });

  it('leave nothing where a copy fails', async () => {
    const store = fakeStore();
    const broken = { size: 5, slice: () => { throw new Error('the file was removed'); } } as unknown as Blob;
    await expect(keep(store, { name: 'x', title: 'x', files: [...files, { path: 'b.json', file: broken }] }, () => undefined)).rejects.toThrow('the file was removed');
    expect(await store.list()).toEqual([]);
    expect(await store.partialBytes('x')).toBe(0);
  });
});

describe('a download from the hub', () => {
  const weights = bytesOf(3 * 1024 * 1024 + 17);
  const small = { 'config.json': '{"n_layer": 2}', 'tokenizer.json': '{}', 'README.md': 'not read', 'pytorch_model.bin': 'nor this', 'vocab.json': 'nor this' };
  const blob = (text: string) => createHash('sha1').update(`blob ${text.length}\0${text}`).digest('hex');
  const siblings = [
    ...Object.entries(small).map(([rfilename, text]) => ({ rfilename, size: text.length, blobId: blob(text) })),
    { rfilename: 'model.safetensors', size: weights.length, blobId: '7', lfs: { sha256: sha256(weights), size: weights.length } },
  ];

  interface Hub {
    sent?: Uint8Array;
    cut?: number;
    ranges?: boolean;
  }

  function start(store = fakeStore(), { sent = weights, cut, ranges = true }: Hub = {}) {
    const asked: string[] = [];
    const reports: string[] = [];
    const abort = new AbortController();
    const fetch = async (address: string, options: RequestInit = {}): Promise<Response> => {
      options.signal?.throwIfAborted();
      const range = new Headers(options.headers).get('Range');
      asked.push(`${address.replace('https://hub.example', '')}${range ? ` ${range}` : ''}`);
      if (address.includes('/api/models/')) return Response.json({ sha: 'c0ffee', siblings });
      const name = address.split('/').at(-1)!;
      if (name !== 'model.safetensors') return new Response(small[name as keyof typeof small]);
      const from = range && ranges ? Number(/\d+/.exec(range)![0]) : 0;
      const all = sent.subarray(from, cut);
      let at = 0;
      const body = new ReadableStream({ pull: (controller) => {
        if (at >= all.length) return controller.close();
        controller.enqueue(all.slice(at, at + 100_000));
        at += 100_000;
      } });
      return new Response(body, { status: from > 0 ? 206 : 200 });
    };
    const download = new Download('org/gpt', 'main', { store, fetch, hub: 'https://hub.example', report: (doing, done, total) => reports.push(`${doing} ${done}/${total}`), signal: abort.signal });
    return { store, asked, reports, abort, done: download.run('GPT') };
  }

  it('takes what heed reads, of one commit, and checks it', async () => {
    const { store, asked, reports, done } = start();
    await done;
    expect(asked).toEqual(['/api/models/org/gpt/revision/main?blobs=true', ...['config.json', 'tokenizer.json', 'model.safetensors'].map((name) => `/org/gpt/resolve/c0ffee/${name}`)]);
    expect(reports).toContain(`downloading model.safetensors ${weights.length}/${weights.length}`);
    expect(reports.at(-1)).toBe(`checking model.safetensors ${weights.length}/${weights.length}`);
    const files = (await store.files('org/gpt'))!;
    expect(sha256(new Uint8Array(await files.find(({ path }) => path === 'model.safetensors')!.file!.arrayBuffer()))).toBe(sha256(weights));
    expect((await store.list())[0]).toMatchObject({ name: 'org/gpt', title: 'GPT' });
  });

  it('goes on where it ended, and anew where the hub sends the whole file', async () => {
    for (const ranges of [true, false]) {
      const store = fakeStore();
      await expect(start(store, { cut: 1_000_000 }).done).rejects.toThrow(`model.safetensors ended after 1000000 of ${weights.length} bytes`);
      expect(await store.list()).toEqual([]);
      expect(await store.partialBytes('org/gpt')).toBeGreaterThanOrEqual(1_000_000);
      const { asked, done } = start(store, { ranges });
      await done;
      expect(asked.at(-1)).toBe('/org/gpt/resolve/c0ffee/model.safetensors bytes=1000000-');
      expect((await store.list()).length).toBe(1);
    }
  });

  it('refuses other content, and begins anew after that', async () => {
    const wrong = weights.slice();
    wrong[2_000_000] ^= 1;
    const store = fakeStore();
    await expect(start(store, { sent: wrong }).done).rejects.toThrow(`model.safetensors has the hash ${sha256(wrong)} instead of ${sha256(weights)}`);
    expect(await store.list()).toEqual([]);
    const { asked, done } = start(store);
    await done;
    expect(asked.at(-1)).toBe('/org/gpt/resolve/c0ffee/model.safetensors');
  });

  it('refuses more bytes than are listed', async () => {
    const store = fakeStore();
    await expect(start(store, { sent: bytesOf(weights.length + 200_000) }).done).rejects.toThrow(`has more than the ${weights.length} bytes`);
    expect((await (await (await store.folder('org/gpt')).getFileHandle('model.safetensors')).getFile()).size).toBe(0);
  });

  it('can be cancelled, and closes its files', async () => {
    const { store, abort, done } = start();
    abort.abort();
    await expect(done).rejects.toMatchObject({ name: 'AbortError' });
    await start(store).done;
    (await openFile(await store.folder('org/gpt'), 'model.safetensors')).close();
  });

  it('takes shards, and another tokenizer where there is no tokenizer.json', () => {
    const of = (names: string[]) => names.map((rfilename) => ({ rfilename, size: 1, blobId: '' }));
    const names = ['config.json', 'model.safetensors.index.json', 'a.safetensors', 'b.safetensors', 'c.safetensors', 'vocab.json', 'merges.txt'];
    expect(filesToFetch(of(names), ['a.safetensors', 'b.safetensors']).map(({ rfilename }) => rfilename)).toEqual(names.filter((name) => name !== 'c.safetensors'));
  });
});

describe('files that a reader gives', () => {
  const file = (name: string, size = 1, folder = '') => {
    const made = new File(['x'], name);
    Object.defineProperty(made, 'size', { value: size });
    if (folder) Object.defineProperty(made, 'webkitRelativePath', { value: `${folder}/${name}` });
    return made;
  };

  it('are those of one model', () => {
    const folder = [file('config.json', 1, 'gpt'), file('model.safetensors', 9, 'gpt'), file('.gitattributes', 1, 'gpt'), file('x.png', 1, 'gpt'), file('model.safetensors', 9, 'gpt/onnx')];
    expect(modelFiles(folder).map(({ name, webkitRelativePath }) => webkitRelativePath || name)).toEqual(['gpt/config.json', 'gpt/model.safetensors']);
    expect(() => modelFiles([file('a.txt')])).toThrow('no weights among these files');
    expect(() => modelFiles([file('model.safetensors')])).toThrow('config.json is missing');
    expect(() => modelFiles([file('config.json'), file('model.safetensors', largestModel + 1)])).toThrow('3.5 GB at most');
  });

  it('are a GGUF file, or its parts', () => {
    const parts = [file('a-00002-of-00002.gguf'), file('README.txt'), file('a-00001-of-00002.gguf')];
    expect(modelFiles(parts).map(({ name }) => name)).toEqual(['a-00001-of-00002.gguf', 'a-00002-of-00002.gguf']);
    expect(modelFiles([file('tiny.Q8_0.gguf', 1, 'tiny')]).map(({ name }) => name)).toEqual(['tiny.Q8_0.gguf']);
    expect(modelFiles([file('config.json'), file('model.safetensors'), file('a.gguf')]).map(({ name }) => name)).toEqual(['config.json', 'model.safetensors']);
    expect(() => modelFiles([file('a.Q8_0.gguf'), file('a.Q4_0.gguf')])).toThrow('2 GGUF models among these files, a.Q4_0 and a.Q8_0');
    expect(() => modelFiles([file('a.gguf', largestModel + 1)])).toThrow('3.5 GB at most');
    expect(nameOfFiles([file('tiny q.Q8_0.gguf', 1, 'tiny')], () => false)).toBe('tiny-q.Q8_0');
    expect(nameOfFiles([file('a-00001-of-00002.gguf')], (name) => name === 'a')).toBe('a-2');
  });

  it('are named by their folder, or as the reader’s, and never as another model', () => {
    expect(nameOfFiles([file('config.json', 1, 'my gpt')], () => false)).toBe('my-gpt');
    expect(nameOfFiles([file('config.json'), file('model.safetensors')], (name) => ['my-model', 'my-model-2'].includes(name))).toBe('my-model-3');
  });
});

describe('the list of models', () => {
  const listed = { about: null, parameters: 5, bytes: 7, partial_bytes: 0, state: 'absent' as const, loaded: false };
  const known = async () => ({
    models: [{ ...listed, name: 'starter', title: 'Starter', kind: 'served' as const }, { ...listed, name: 'gpt2', title: 'GPT-2', kind: 'published' as const, revision: 'r1' }],
    downloads: { allowed: false, why_not: 'no server' }, download: null,
  });
  const release = { engine: 'e', models: { starter: { folder: 's/', files: [] }, english: { about: 'old books', parameters: 9, folder: 'e/', files: [] }, recorded: { folder: 'r/', files: [] } } };

  function library(store: ReturnType<typeof fakeStore> | null = fakeStore(), asked: () => Promise<Awaited<ReturnType<typeof known>> | null> = known) {
    const sent: ToStore[] = [];
    const ports: StorePort[] = [];
    const made = new Library({ release, store, known: asked, makePort: () => {
      const port: StorePort = { postMessage: (message) => void sent.push(message), terminate: () => undefined, onmessage: null, onerror: null };
      ports.push(port);
      return port;
    } });
    return { library: made, sent, ports, store };
  }

  it('has what comes with the page, what was dropped, what is kept, and what the hub has', async () => {
    const { library: all, store } = library();
    const name = await all.add([new File(['{}'], 'config.json'), new File(['w'], 'model.safetensors')]);
    await keep(store!, { name: 'kept', title: 'kept', files: [{ path: 'x.safetensors', file: new Blob(['xy']) }] }, () => undefined);
    const { models, downloads } = await all.list();
    expect(models.map((model) => [model.name, model.kind, model.state])).toEqual([['starter', 'served', 'ready'], ['english', 'embedded', 'ready'], [name, 'pulled', 'ready'], ['kept', 'pulled', 'ready'], ['gpt2', 'published', 'absent']]);
    // What comes with the page is described before the engine has its files.
    expect(models.slice(0, 2).map(({ about, parameters }) => [about, parameters])).toEqual([[null, 5], ['old books', 9]]);
    expect(downloads.why_not).toBeNull();
    expect((await all.files(name))!.map(({ path, bytes }) => [path, bytes])).toEqual([['config.json', 2], ['model.safetensors', 1]]);
    expect(await all.files('starter')).toBeNull();
    await all.remove(name);
    await all.remove('kept');
    expect((await all.list()).models.map((model) => model.name)).toEqual(['starter', 'english', 'gpt2']);
  });

  it('follows one download at a time', async () => {
    const { library: all, sent, ports } = library();
    expect((await all.download('gpt2')).download).toMatchObject({ name: 'gpt2', state: 'running' });
    await all.download('gpt2');
    expect(sent).toEqual([{ kind: 'download', name: 'gpt2', revision: 'r1', title: 'GPT-2' }]);
    ports[0].onmessage!({ data: { kind: 'report', doing: 'downloading x', done: 1, total: 2 } });
    expect((await all.list()).download).toMatchObject({ doing: 'downloading x', done: 1, total: 2 });
    await all.cancel('gpt2');
    expect(sent.at(-1)).toEqual({ kind: 'cancel' });
    ports[0].onmessage!({ data: { kind: 'done', error: 'aborted', cancelled: true } });
    await new Promise(setImmediate);
    expect((await all.list()).download).toMatchObject({ state: 'cancelled', error: null });
    await all.download('gpt2');
    ports[1].onmessage!({ data: { kind: 'done', error: 'the hub answered 404', cancelled: false } });
    await new Promise(setImmediate);
    expect((await all.list()).download).toMatchObject({ state: 'failed', error: { message: 'the hub answered 404' } });
  });

  it('is the last one while the engine has no model open', async () => {
    let isOpen = true;
    const { library: all } = library(fakeStore(), async () => (isOpen ? known() : null));
    const before = await all.list();
    isOpen = false;
    expect(await all.list()).toEqual(before);
  });

  it('says so where the browser keeps no files', async () => {
    expect((await library(null).library.list()).downloads).toEqual({ allowed: false, why_not: 'This browser does not let a page keep files' });
  });
});
