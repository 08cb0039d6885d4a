// A second engine, in a worker of its own, for what takes long: trainings, and measurements over a corpus. The first
// one answers meanwhile. What a training wrote is handed over to the first, which shows its checkpoints.

import { errorResponse, type Engine } from './engine';
import type { FileBytes, ModelSpec } from './protocol';

/** Where the engine keeps the runs that a page trains. */
const runsFolder = '/runs';

/** What takes seconds, and needs no trace: the contexts of a neuron, and what probes and senses learn from stories. */
const isMeasurement = (path: string) => /^\/api\/(neurons\/\d+\/\d+\/contexts|probes\/|senses)/.test(path);
const isTraining = (path: string) => path.startsWith('/api/training');
const isAboutRuns = (path: string) => path.startsWith('/api/runs');

/** An engine that is on its way: `ready` once its model is open. `runs` loads the recorded run, which the first view does without. */
export interface Started {
  engine: Engine;
  ready: Promise<void>;
  runs: () => Promise<void>;
  /** Those of the first model, which no view but the paths to a word needs. */
  transcoders: () => Promise<void>;
}

export interface HelperOptions {
  /** An engine of its own for a model, whose requests wait until it is open. */
  start: (model: ModelSpec, lost: (message: string) => void) => Started;
  /** Tells the reader what happened. */
  tell: (message: string) => void;
}

export class Helper {
  #started: (Omit<Started, 'transcoders'> & { opened: string; added: Set<string> }) | null = null;
  /** Trainings that this page has begun: the helper alone knows of them. */
  #trainings = 0;
  /** Paths that an engine has of them. */
  #handed = new WeakMap<Engine, Set<string>>();

  constructor(private readonly options: HelperOptions) {}

  /** Whether a request is the helper's. `model`: what it is about; null: one that is not to be in memory twice. */
  takes(path: string, method: string, model: ModelSpec | null): boolean {
    if (isTraining(path)) return this.#trainings > 0 || (method === 'POST' && path === '/api/training');
    if (isAboutRuns(path)) return this.#trainings > 0;
    if (!isMeasurement(path) || model === null) return false;
    return this.#trainings === 0 || this.#fits(model);
  }

  /** Whether it can answer about the model without being started again. */
  #fits(model: ModelSpec): boolean {
    return this.#started !== null && (model.name === this.#started.opened || isCarried(model));
  }

  async fetch(path: string, init: RequestInit | undefined, model: ModelSpec): Promise<Response> {
    if (path === '/api/training' && init?.method === 'POST') ++this.#trainings;
    if (this.#started?.engine.lost !== null || (isMeasurement(path) && !this.#fits(model))) this.#start(model);
    const started = this.#started!;
    try {
      await (isAboutRuns(path) ? started.runs() : started.ready);
      if (isMeasurement(path) && model.name !== started.opened && !started.added.has(model.name)) {
        await started.engine.add(model);
        started.added.add(model.name);
      }
    } catch (error) {
      return errorResponse(started.engine.lost === null ? 500 : 503, (error as Error).message);
    }
    return started.engine.fetch(isMeasurement(path) ? about(path, model.name === started.opened ? null : model.name) : path, init);
  }

  #start(model: ModelSpec): void {
    this.#started?.engine.close();
    const { engine, ready: opened, runs } = this.options.start(model, (message) => {
      if (engine === this.#started?.engine && this.#trainings > 0) this.options.tell(`The engine that trains stopped (${message}). Its run is lost; a new one can be started.`);
    });
    // The first engine may have runs of an earlier helper: their names are taken.
    const taken = Array.from({ length: Math.max(0, this.#trainings - 1) }, (_, index) => ({ path: `${runsFolder}/live-${index + 1}/lost`, bytes: new Uint8Array() }));
    const ready = taken.length === 0 ? opened : opened.then(() => engine.put(taken));
    ready.catch(() => undefined);
    this.#started = { engine, ready, runs, opened: model.name, added: new Set() };
  }

  /** Gives another engine a checkpoint of a run that was trained here. */
  async handOver(run: string, step: number, to: Engine): Promise<void> {
    if (this.#trainings === 0 || this.#started?.engine.lost !== null) return;
    const folder = `${runsFolder}/${run}`;
    const checkpoint = `${folder}/checkpoints/${String(step).padStart(8, '0')}`;
    const handed = this.#handed.get(to) ?? new Set<string>();
    this.#handed.set(to, handed);
    if (handed.has(checkpoint)) return;
    const files: FileBytes[] = await this.#started.engine.read([`${folder}/run.json`, checkpoint]);
    await to.put(files);
    // One that is still being written is not whole without its description.
    if (files.some(({ path }) => path === `${checkpoint}/config.json`)) handed.add(checkpoint);
  }
}

/** Whether it comes with the page: an engine can have several of these. */
const isCarried = ({ files }: ModelSpec) => files.every(({ file }) => file === undefined);

/** The same request of a model that is named; null: of the one that is open. */
function about(path: string, model: string | null): string {
  const [where, query] = path.split('?');
  const parameters = new URLSearchParams(query);
  parameters.delete('model');
  if (model !== null) parameters.set('model', model);
  const text = parameters.toString();
  return text ? `${where}?${text}` : where;
}
