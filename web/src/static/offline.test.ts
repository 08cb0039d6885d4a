import { beforeEach, describe, expect, it } from 'vitest';
import { Offline, type VersionFiles } from './offline';

const scope = 'https://school.example/heed/';

/** Caches in memory, by address. */
class FakeCaches {
  all = new Map<string, Map<string, Response>>();

  async open(name: string) {
    const held = this.all.get(name) ?? new Map<string, Response>();
    this.all.set(name, held);
    return { match: async (url: string) => held.get(url)?.clone(), put: async (url: string, response: Response) => void held.set(url, response) };
  }

  async match(url: string) {
    for (const held of this.all.values()) if (held.has(url)) return held.get(url)!.clone();
    return undefined;
  }

  keys = async () => [...this.all.keys()];
  delete = async (name: string) => this.all.delete(name);
}

describe('the page without a network', () => {
  let site: Record<string, string>;
  let caches: FakeCaches;
  let asked: string[];
  let windows: number;
  let skipped: number;

  const first: VersionFiles = { version: 'v1', first: ['./', 'assets/a-1.js', 'engine-1/heed.wasm'], rest: ['models/english-1/w'] };
  const second: VersionFiles = { version: 'v2', first: ['./', 'assets/a-2.js', 'engine-1/heed.wasm'], rest: ['models/english-1/w'] };

  const make = (files: VersionFiles) => new Offline(files, {
    caches: caches as unknown as CacheStorage,
    fetch: async (request) => {
      const path = String(request).replace(scope, '') || './';
      asked.push(path);
      return path in site ? new Response(site[path]) : new Response('', { status: 404 });
    },
    scope,
    windows: async () => windows,
    skipWaiting: async () => void ++skipped,
  });
  const get = async (offline: Offline, path: string) => (await offline.answer(new Request(scope + path)))?.text();

  beforeEach(() => {
    site = { './': 'page 1', 'assets/a-1.js': 'a 1', 'engine-1/heed.wasm': 'engine', 'models/english-1/w': 'weights' };
    caches = new FakeCaches();
    asked = [];
    windows = 1;
    skipped = 0;
  });

  it('has every file after the first visit, whatever the address asks of the page', async () => {
    const offline = make(first);
    await offline.install();
    await offline.takeRest();
    site = {};
    for (const [path, text] of [['', 'page 1'], ['?view=attention&text=a', 'page 1'], ['index.html', 'page 1'], ['assets/a-1.js', 'a 1'], ['models/english-1/w', 'weights']]) expect(await get(offline, path)).toBe(text);
  });

  it('isolates the page from other origins, so that its engine may have threads', async () => {
    const offline = make(first);
    await offline.install();
    for (const path of ['', 'assets/a-1.js', 'models/english-1/w']) {
      const { headers } = (await offline.answer(new Request(scope + path)))!;
      expect([headers.get('Cross-Origin-Opener-Policy'), headers.get('Cross-Origin-Embedder-Policy')]).toEqual(['same-origin', 'require-corp']);
    }
  });

  it('leaves other addresses to the network', async () => {
    const offline = make(first);
    await offline.install();
    expect(await get(offline, 'other.txt')).toBeUndefined();
    expect(offline.concerns(new Request(`${scope}x`))).toBe(true);
    expect(offline.concerns(new Request(scope, { method: 'POST' }))).toBe(false);
    expect(offline.concerns(new Request('https://huggingface.co/gpt2'))).toBe(false);
  });

  it('keeps what the first visit did without once it is asked for', async () => {
    const offline = make(first);
    await offline.install();
    expect(await get(offline, 'models/english-1/w')).toBe('weights');
    site = {};
    expect(await get(offline, 'models/english-1/w')).toBe('weights');
  });

  it('keeps nothing where a file is missing', async () => {
    delete site['engine-1/heed.wasm'];
    await expect(make(first).install()).rejects.toThrow('engine-1/heed.wasm: 404');
    expect(await caches.keys()).toEqual([]);
  });

  it('a new version loads only what differs, and two versions stay apart', async () => {
    const old = make(first);
    await old.install();
    await old.takeRest();
    site = { ...site, './': 'page 2', 'assets/a-2.js': 'a 2' };
    delete site['assets/a-1.js'];
    asked = [];
    const newer = make(second);
    await newer.install();
    await newer.takeRest();
    expect(asked).toEqual(['./', 'assets/a-2.js']);
    // A tab of each.
    expect([await get(old, ''), await get(old, 'assets/a-1.js')]).toEqual(['page 1', 'a 1']);
    expect([await get(newer, ''), await get(newer, 'assets/a-2.js')]).toEqual(['page 2', 'a 2']);
    await newer.activate();
    expect((await caches.keys()).map((name) => name.split(' ').at(-1))).toEqual(['v2']);
    site = {};
    expect([await get(newer, ''), await get(newer, 'engine-1/heed.wasm')]).toEqual(['page 2', 'engine']);
  });

  it('a new version takes over at once only where one tab shows the page', async () => {
    const newer = make(second);
    windows = 2;
    await newer.takeOver();
    expect(skipped).toBe(0);
    windows = 1;
    await newer.takeOver();
    expect(skipped).toBe(1);
  });

  it('leaves the caches of other pages of the same origin alone', async () => {
    await caches.open('heed-/other/ v0');
    await caches.open('heed-/heed/ v0');
    const offline = make(first);
    await offline.install();
    await offline.activate();
    expect((await caches.keys()).sort()).toEqual(['heed-/heed/ v1', 'heed-/other/ v0']);
  });
});
