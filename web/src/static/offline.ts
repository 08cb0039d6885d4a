// Keeps the page for visits without a network. A version is its files, whose names have the hash of their content; all
// but the start page. Its cache is filled whole before it is used: a tab never sees files of two versions.

/** What tools/static_page.mjs writes before the service worker's code. Addresses are relative to the page. */
export interface VersionFiles {
  version: string;
  /** Needed for the first view; without one of them nothing is kept. */
  first: string[];
  /** Loaded once the page is at rest. */
  rest: string[];
}

/** What is used of a service worker's surroundings. */
export interface Around {
  caches: CacheStorage;
  fetch: (request: Request | string, options?: RequestInit) => Promise<Response>;
  /** The page's address: the service worker's scope. */
  scope: string;
  /** How many tabs show the page. */
  windows: () => Promise<number>;
  skipWaiting: () => Promise<void>;
}

const prefix = 'heed-';
/** With these the page is isolated from other origins, so that the engine may have threads (threads.ts). */
const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'cross-origin', // other pages may embed a view
};

function isolated(response: Response): Response {
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(isolation)) headers.set(name, value);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

/** The start page's address: the scope itself. */
const start = './';

export class Offline {
  constructor(
    private readonly files: VersionFiles,
    private readonly around: Around,
  ) {}

  #address = (path: string) => new URL(path, this.around.scope).href;

  /** Caches of this origin that other pages may have are left alone: a name has the page's address. */
  #cacheName(version = this.files.version): string {
    return `${prefix}${new URL(this.around.scope).pathname} ${version}`;
  }

  async install(): Promise<void> {
    try {
      await this.#take(this.files.first);
    } catch (error) {
      await this.around.caches.delete(this.#cacheName());
      throw error;
    }
  }

  /** The files that the first view does without. One that does not come is fetched when it is needed. */
  async takeRest(): Promise<void> {
    for (const path of this.files.rest) await this.#take([path]).catch(() => undefined);
  }

  /** Other versions have no tabs any more. */
  async activate(): Promise<void> {
    const ours = this.#cacheName('');
    for (const name of await this.around.caches.keys()) {
      if (name.startsWith(ours) && name !== this.#cacheName()) await this.around.caches.delete(name);
    }
  }

  /** Replaces the older version at once where no other tab shows it. */
  async takeOver(): Promise<void> {
    if ((await this.around.windows()) <= 1) await this.around.skipWaiting();
  }

  /** Whether a request may be for a file of the page; others are left alone. */
  concerns(request: Request): boolean {
    return request.method === 'GET' && request.url.startsWith(this.around.scope);
  }

  /** The answer from the cache; undefined: the network's. */
  async answer(request: Request): Promise<Response | undefined> {
    const cache = await this.around.caches.open(this.#cacheName());
    const { pathname } = new URL(request.url);
    const isStart = pathname === new URL(this.around.scope).pathname || pathname === new URL('index.html', this.around.scope).pathname;
    const kept = await cache.match(isStart ? this.#address(start) : request.url);
    if (kept || isStart) return kept && isolated(kept);
    if (!this.files.rest.some((path) => this.#address(path) === request.url)) return undefined;
    const response = await this.around.fetch(request.url);
    if (response.ok) await cache.put(request.url, response.clone());
    return isolated(response);
  }

  async #take(paths: string[]): Promise<void> {
    const cache = await this.around.caches.open(this.#cacheName());
    await Promise.all(paths.map(async (path) => {
      const address = this.#address(path);
      if (await cache.match(address)) return;
      // A file with its hash in its name is the same in every version.
      const kept = path === start ? undefined : await this.around.caches.match(address);
      const response = kept ?? (await this.around.fetch(address, path === start ? { cache: 'no-cache' } : {}));
      if (!response.ok) throw new Error(`${address}: ${response.status}`);
      await cache.put(address, response);
    }));
  }
}
