// The models of the static page: those that come with it, the reader's own, and those of the hub that this browser keeps.

import type { ModelSource } from '../lib/platform_types';
import type { Download, ListedModel, ModelList } from '../lib/types';
import type { ModelFile } from './protocol';
import { firstModel, recordedRun, type Release } from './release';
import type { Store } from './store';
import type { FromStore, ToStore } from './store_worker';

/** What is used of the worker that writes into the store. */
export interface StorePort {
  postMessage(message: ToStore): void;
  terminate(): void;
  onmessage: ((event: { data: FromStore }) => void) | null;
  onerror: ((event: { message?: string }) => void) | null;
}

export interface LibraryOptions {
  release: Release;
  /** Null: this browser has no such storage. */
  store: Store | null;
  makePort: () => StorePort;
  /** What the engine knows of published and carried models; null: it has no model open. */
  known: () => Promise<ModelList | null>;
}

/** WebAssembly's memory ends at 4 GiB; a model is in it once, beside what is computed with it. */
export const largestModel = 3.5e9;

const noStore = 'This browser does not let a page keep files';

const sum = (files: { bytes: number }[]) => files.reduce((total, { bytes }) => total + bytes, 0);
/** "model" of "model.gguf" and of "model-00001-of-00003.gguf"; null: the name of no GGUF file. */
const stemOfGguf = (name: string) => /^(.+?)(-\d{5}-of-\d{5})?\.gguf$/.exec(name)?.[1] ?? null;

/** The name of a model from its files: that of a GGUF file, or of their folder. */
export function nameOfFiles(files: { name: string; webkitRelativePath?: string }[], taken: (name: string) => boolean): string {
  const folder = files[0]?.webkitRelativePath?.split('/')[0];
  const name = (stemOfGguf(files[0]?.name ?? '') || folder || 'my-model').replaceAll(/[^\w.-]+/g, '-');
  for (let number = 1; ; ++number) {
    const tried = number === 1 ? name : `${name}-${number}`;
    if (!taken(tried)) return tried;
  }
}

/** The files of a model among those that were dropped: of one folder, without what no model has. Throws where that is no model. */
export function modelFiles(files: File[]): File[] {
  const depth = (file: File) => (file.webkitRelativePath || file.name).split('/').length;
  const least = Math.min(...files.map(depth));
  const near = files.filter((file) => depth(file) === least && !file.name.startsWith('.'));
  let chosen = near.filter(({ name }) => /\.(json|safetensors|txt|jinja|model|spm)$/.test(name));
  let weights = chosen.filter(({ name }) => name.endsWith('.safetensors'));
  if (weights.length === 0) {
    // A GGUF file is a whole model, in one file or in parts.
    chosen = weights = near.filter(({ name }) => stemOfGguf(name) !== null).sort((one, other) => (one.name < other.name ? -1 : 1));
    const models = [...new Set(weights.map(({ name }) => stemOfGguf(name)))];
    if (models.length > 1) throw new Error(`There are ${models.length} GGUF models among these files, ${models[0]} and ${models[1]} among them. Choose the file of one, or its parts.`);
  } else if (!chosen.some(({ name }) => name === 'config.json')) {
    throw new Error('config.json is missing. Drop all files of the model’s folder together.');
  }
  if (weights.length === 0) throw new Error('There are no weights among these files. A model is a GGUF file, or a folder with config.json, model.safetensors and tokenizer.json.');
  const size = weights.reduce((total, file) => total + file.size, 0);
  if (size > largestModel) throw new Error(`The weights have ${(size / 1e9).toFixed(1)} GB; a page can open ${largestModel / 1e9} GB at most, since WebAssembly has 4 GB of memory.`);
  return chosen;
}

export class Library implements ModelSource {
  /** Of this visit, by name. */
  #own = new Map<string, { path: string; file: File }[]>();
  #download: Download | null = null;
  #port: StorePort | null = null;
  /** What the engine said last. */
  #known: ModelList = { models: [], downloads: { allowed: true, why_not: null }, download: null };

  constructor(private readonly options: LibraryOptions) {}

  has(name: string): boolean {
    return this.#own.has(name) || (Object.hasOwn(this.options.release.models, name) && name !== recordedRun);
  }

  /** The files of a model that does not come with the page; null: there is none of that name. */
  async files(name: string): Promise<ModelFile[] | null> {
    const own = this.#own.get(name);
    if (own) return own.map(({ path, file }) => ({ path, bytes: file.size, file }));
    return (await this.options.store?.files(name)) ?? null;
  }

  /** Adds the reader's files as a model of this visit; its name. */
  async add(given: File[]): Promise<string> {
    const files = modelFiles(given);
    const stored = await this.#stored();
    const name = nameOfFiles(files, (tried) => this.has(tried) || stored.some((model) => model.name === tried));
    this.#own.set(name, files.map((file) => ({ path: file.name, file })));
    return name;
  }

  isKept(name: string): boolean {
    return !this.#own.has(name);
  }

  /** Names of the models that can be removed. */
  async removable(): Promise<{ name: string; bytes: number; isKept: boolean }[]> {
    const own = [...this.#own].map(([name, files]) => ({ name, bytes: files.reduce((total, { file }) => total + file.size, 0), isKept: false }));
    return [...own, ...(await this.#stored()).map(({ name, files }) => ({ name, bytes: sum(files), isKept: true }))];
  }

  /** Copies a model of this visit into the browser's storage, where the next visit finds it. */
  async keep(name: string, report: (share: number) => void): Promise<void> {
    const files = this.#own.get(name);
    if (!files) return;
    if (!this.options.store) throw new Error(`${noStore}.`);
    await navigator.storage?.persist?.();
    await this.#work({ kind: 'keep', name, title: name, files }, (_, done, total) => report(done / total));
    this.#own.delete(name);
  }

  async remove(name: string): Promise<void> {
    if (!this.#own.delete(name)) await this.options.store?.remove(name);
  }

  async list(): Promise<ModelList> {
    const known = await this.#ask();
    const removable = await this.removable();
    const of = (name: string) => known.models.find((model) => model.name === name);
    const blank = { about: null, parameters: null, partial_bytes: 0, loaded: false, state: 'ready' as const };
    const carried = Object.entries(this.options.release.models)
      .filter(([name]) => name !== recordedRun)
      .map(([name, { files, about = null, parameters = null }]): ListedModel => ({ ...blank, about, parameters, title: name, bytes: sum(files), ...of(name), name, kind: name === firstModel ? 'served' : 'embedded', state: 'ready' }));
    const own = removable.map(({ name, bytes }): ListedModel => ({ ...blank, title: of(name)?.title ?? name, about: of(name)?.about ?? null, parameters: of(name)?.parameters ?? null, name, bytes, kind: 'pulled' }));
    const published = await Promise.all(known.models
      .filter(({ name, kind }) => kind === 'published' && !own.some((model) => model.name === name))
      .map(async (model): Promise<ListedModel> => ({
        ...model,
        state: this.#download?.name === model.name && this.#download.state === 'running' ? 'downloading' : 'absent',
        partial_bytes: Math.min(model.bytes, (await this.options.store?.partialBytes(model.name)) ?? 0),
      })));
    const why_not = this.options.store ? null : noStore;
    return { models: [...carried, ...own, ...published], downloads: { allowed: why_not === null, why_not }, download: this.#download };
  }

  async download(name: string): Promise<ModelList> {
    if (this.#download?.state !== 'running') {
      const { models } = await this.#ask();
      const model = models.find((each) => each.name === name) as (ListedModel & { revision?: string }) | undefined;
      const download: Download = { name, state: 'running', doing: 'asking the hub', done: 0, total: 0, error: null };
      this.#download = download;
      const end = (state: Download['state'], message?: string) => {
        this.#download = { ...this.#download!, state, error: message === undefined ? null : { type: 'download', message } };
      };
      const report = (doing: string, done: number, total: number) => {
        this.#download = { ...download, doing, done, total };
      };
      void this.#work({ kind: 'download', name, revision: model?.revision ?? 'main', title: model?.title ?? name }, report).then(
        () => end('finished'),
        (error) => (error instanceof Cancelled ? end('cancelled') : end('failed', (error as Error).message)),
      );
    }
    return this.list();
  }

  async cancel(name: string): Promise<ModelList> {
    if (this.#download?.name === name && this.#download.state === 'running') this.#port?.postMessage({ kind: 'cancel' });
    return this.list();
  }

  async #ask(): Promise<ModelList> {
    this.#known = (await this.options.known().catch(() => null)) ?? this.#known;
    return this.#known;
  }

  async #stored() {
    return (await this.options.store?.list().catch(() => [])) ?? [];
  }

  /** A worker for one piece of work. */
  #work(message: ToStore, report: (doing: string, done: number, total: number) => void): Promise<void> {
    const port = this.options.makePort();
    this.#port = port;
    return new Promise<void>((resolve, reject) => {
      port.onmessage = ({ data }) => {
        if (data.kind === 'report') report(data.doing, data.done, data.total);
        else if (data.cancelled) reject(new Cancelled());
        else if (data.error !== null) reject(new Error(data.error));
        else resolve();
      };
      port.onerror = ({ message: text }) => reject(new Error(text || 'the worker ended'));
      port.postMessage(message);
    }).finally(() => port.terminate());
  }
}

class Cancelled extends Error {}
