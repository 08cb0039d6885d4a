// Which model the engine has open. Models that come with the page share one engine, which loads the second beside the
// first; a model of the reader's own has an engine, and the memory, for itself.

import type { ListedModel } from '../lib/types';
import { Engine, errorResponse, type Port } from './engine';
import { Helper, type Started } from './helper';
import type { ModelFile, ModelSpec } from './protocol';
import { carriedFiles, firstModel, recordedRun, transcodersFolder, type Release } from './release';

export interface ChooserOptions {
  release: Release;
  /** The page's address. */
  base: string;
  makePort: () => Port;
  /** How many the engine is to compute with. */
  threads?: number;
  /** The files of a model that the reader gave, or that this browser keeps; null: there is none of that name. */
  ownFiles: (name: string) => Promise<ModelFile[] | null>;
  /** All models that there are, here or to be downloaded. */
  list: () => Promise<Pick<ListedModel, 'name' | 'state'>[]>;
  /** Tells the reader what happened. */
  tell: (message: string | null) => void;
  progress?: (name: string, done: number, total: number) => void;
}

/** Weights of more bytes are held as int8, so that they fit in a browser's memory. */
export const largestUnrounded = 200e6;
/** In GGUF files, whose weights may have four bits each, and are held in f32 otherwise. */
export const largestUnroundedGguf = 50e6;

export class Chooser {
  #engine: Engine | null = null;
  /** Settled once the engine has its model open. */
  #ready: Promise<void> = Promise.resolve();
  #isReady = true;
  /** Loads the recorded run. */
  #runs: () => Promise<void> = () => Promise.resolve();
  /** Loads the transcoders of the first model. */
  #transcoders: () => Promise<void> = () => Promise.resolve();
  #opened = '';
  /** What #opened is to be opened from again after the engine was lost. */
  #model: ModelSpec | null = null;

  readonly #helper: Helper;

  constructor(private readonly options: ChooserOptions) {
    this.#helper = new Helper({ start: (model, lost) => this.#engineOf(model, lost), tell: options.tell });
  }

  #carried(name: string): ModelSpec | null {
    const { release, base } = this.options;
    return Object.hasOwn(release.models, name) && name !== recordedRun ? { name, files: carriedFiles(release.models[name], base) } : null;
  }

  /** Makes a model ready. Gives the name that requests about it send; undefined: it is the one that is open. Throws for a name that no model has. */
  async choose(model: string): Promise<string | undefined> {
    const wanted = model || firstModel;
    if (wanted === this.#opened && this.#engine?.lost === null) {
      await this.#ready;
      return undefined;
    }
    const carried = this.#carried(wanted);
    const files = carried ? null : await this.options.ownFiles(wanted);
    if (this.#engine?.lost === null && carried && this.#carried(this.#opened)) {
      await this.#engine.add(carried);
      return wanted;
    }
    if (carried || files) {
      await this.#start(carried ?? { name: wanted, files: files!, dtype: dtypeOf(files!) });
      return undefined;
    }
    // An engine knows only those whose files it has.
    const models = await this.options.list();
    const absent = models.some(({ name }) => name === wanted) ? ', but it can be downloaded' : '';
    throw new Error(`there is no model '${wanted.slice(0, 100)}' here${absent}; there are: ${models.filter(({ state }) => state === 'ready').map(({ name }) => name).join(', ')}`);
  }

  async fetch(path: string, options?: RequestInit): Promise<Response> {
    const model = this.#asked(path);
    if (this.#helper.takes(path, options?.method ?? 'GET', model)) return this.#helper.fetch(path, options, model ?? this.#carried(firstModel)!);
    if (this.#engine?.lost !== null) void this.#start(this.#model ?? this.#carried(firstModel)!).catch(() => undefined);
    const engine = this.#engine!;
    try {
      // A request is on its way when this is called, not once the caller has drawn what it shows meanwhile.
      if (!this.#isReady) await this.#ready;
      const checkpoint = checkpointOf(path, options?.body);
      if (checkpoint || path.startsWith('/api/runs')) await this.#runs();
      // Without them, where the network is away, the paths lead through neurons.
      if (isAboutFeatures(path) && this.#carried(this.#opened)) await this.#transcoders().catch(() => undefined);
      if (checkpoint && checkpoint.run !== recordedRun) await this.#helper.handOver(checkpoint.run, checkpoint.step, engine);
    } catch (error) {
      return errorResponse(engine.lost === null ? 500 : 503, (error as Error).message);
    }
    return engine.fetch(path, options);
  }

  /** The model that a request names, or the one that is open; null: a large one, of which a second engine has no room. */
  #asked(path: string): ModelSpec | null {
    const named = new URLSearchParams(path.split('?')[1]).get('model');
    const model = named === null ? this.#model : this.#carried(named);
    return model?.dtype === undefined ? model : null;
  }

  /** A new worker with the model open: memory that an engine took once is given back with its worker alone. */
  #engineOf(model: ModelSpec, lost: (message: string) => void, progress?: ChooserOptions['progress']): Started {
    const { release, base, makePort, threads = 1 } = this.options;
    const engines = [{ address: new URL(release.engine, base).href, threads: 1 }];
    if (threads > 1 && release.threadsEngine) engines.unshift({ address: new URL(release.threadsEngine, base).href, threads });
    const engine = new Engine(makePort, engines, { progress, lost });
    // The engine shows the run whose description is there when it opens a model; the checkpoints come when they are asked for.
    const run = release.models[recordedRun] ? carriedFiles(release.models[recordedRun], base) : [];
    const ready = engine.open(model, [{ name: recordedRun, files: run.filter(({ path }) => path === 'run.json') }]);
    const once = (load: () => Promise<void>) => {
      let added: Promise<void> | null = null;
      return () => (added ??= ready.then(load).catch((error) => {
        added = null; // the network may be back for the next request
        throw error;
      }));
    };
    const runs = once(() => engine.add({ name: recordedRun, files: run }));
    const of = release.transcoders;
    const transcoders = once(() => (of ? engine.add({ name: transcodersFolder, files: carriedFiles(of, base) }) : Promise.resolve()));
    return { engine, ready, runs, transcoders };
  }

  #start(model: ModelSpec): Promise<void> {
    const former = this.#engine;
    const { engine, ready, runs, transcoders } = this.#engineOf(model, (message) => {
      if (engine === this.#engine) this.options.tell(`The engine stopped (${message}). It starts again with the next request.`);
    }, this.options.progress);
    this.#engine = engine;
    former?.close();
    this.#opened = model.name;
    this.#model = model;
    this.#runs = runs;
    this.#transcoders = transcoders;
    this.#isReady = false;
    // An engine without a model answers nothing; the next choice starts another one.
    this.#ready = ready.then(
      () => {
        if (engine === this.#engine) this.#isReady = true;
      },
      (error) => {
        if (engine === this.#engine) this.#opened = '';
        throw error;
      },
    );
    this.#ready.catch(() => undefined);
    return this.#ready;
  }
}

/** Features, and the paths to a word, which lead through them; of a model without transcoders through neurons. */
const isAboutFeatures = (path: string) => /^\/api\/(traces\/[^/]+\/causes|features\/)/.test(path);

/** The checkpoint of a run that is to read a text. */
function checkpointOf(path: string, body: unknown): { run: string; step: number } | null {
  if (path !== '/api/traces' || typeof body !== 'string') return null;
  const { model } = JSON.parse(body);
  return typeof model === 'object' ? model : null;
}

/** As a page holds weights: int8 where they are large. */
export function dtypeOf(files: ModelFile[]): string | undefined {
  const bytesOf = (ending: string) => files.filter(({ path }) => path.endsWith(ending)).reduce((sum, { bytes }) => sum + bytes, 0);
  return bytesOf('.safetensors') > largestUnrounded || bytesOf('.gguf') > largestUnroundedGguf ? 'int8' : undefined;
}
