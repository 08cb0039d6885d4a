// The static page: the engine answers in a worker, and models come with the page, from the reader or from the hub.
// The build of static files has this in place of src/lib/platform.ts.

import type { Coming, Platform } from '../lib/platform_types';
import { Chooser } from './chooser';
import type { Port } from './engine';
import { Library, type StorePort } from './library';
import { readRelease, recordedRun, transcodersFolder } from './release';
import { browserStore } from './store';
import { threadsOf } from './threads';

const release = readRelease(document);
let tell: (message: string | null) => void = () => undefined;
let coming: (model: Coming | null) => void = () => undefined;

export const library = new Library({
  release,
  store: 'storage' in navigator && 'getDirectory' in navigator.storage ? browserStore() : null,
  makePort: () => new Worker(new URL('./store_worker.ts', import.meta.url), { type: 'module' }) as unknown as StorePort,
  known: async () => {
    const answer = await chooser.fetch('/api/models');
    return answer.ok ? answer.json() : null;
  },
});

const chooser: Chooser = new Chooser({
  release,
  base: document.baseURI,
  makePort: () => new Worker(new URL('./engine_worker.ts', import.meta.url), { type: 'module' }) as unknown as Port,
  threads: threadsOf({ isIsolated: crossOriginIsolated, processors: navigator.hardwareConcurrency, asked: new URLSearchParams(location.search).get('threads') }),
  ownFiles: (name) => library.files(name),
  list: async () => (await library.list()).models,
  tell: (message) => tell(message),
  progress: (name, done, total) => {
    // The run and the transcoders come in the background.
    if (name !== recordedRun && name !== transcodersFolder) coming(done < total ? { name, done, total } : null);
  },
});

let begin: () => void;
const begun = new Promise<void>((resolve) => (begin = resolve));
/** Resolves once a text has been read. */
export const ready = () => begun;

export const platform: Platform = {
  isServer: false,
  fetch: async (path, options) => {
    const response = await chooser.fetch(path, options);
    if (path === '/api/traces') begin();
    return response;
  },
  choose: (model) => chooser.choose(model),
  models: library,
  ownModels: () => import('./OwnModels.svelte'),
  onNotice: (toTell, toCome) => {
    tell = toTell;
    coming = toCome;
  },
};
