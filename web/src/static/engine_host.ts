// Runs in the worker: gives the engine its files and requests, one after the other, and sends on what it answers.

import type { FileBytes, FromWorker, ModelFile, ModelSpec, ToWorker } from './protocol';
import type { EngineChoice } from './threads';

/** What is used of Emscripten's file systems. */
interface FileSystem {
  mkdirTree(path: string): void;
  writeFile(path: string, data: Uint8Array): void;
  readFile(path: string): Uint8Array;
  readdir(path: string): string[];
  analyzePath(path: string): { exists: boolean };
  isDir(mode: number): boolean;
  stat(path: string): { mode: number };
  mount(type: unknown, options: { blobs: { name: string; data: Blob }[] }, path: string): void;
  unmount(path: string): void;
}

/** The engine: what src/wasm/heed.h describes. */
export interface HeedModule {
  heedOpen(model: string, options: { dtype?: string; name?: string }): void;
  heedRequest(id: number, method: string, target: string, headers: Record<string, string>, body: Uint8Array): void;
  heedStop(id: number): void;
  /** Milliseconds until it wants to be called again; −1: nothing waits. */
  heedWork(): number;
  FS: FileSystem;
  WORKERFS: { node_ops: { readlink?: unknown } };
}

export interface Answers {
  /** Of an engine with threads, how many are to compute. */
  heedThreads?: number;
  heedHead(id: number, status: number, headersJson: string): void;
  heedChunk(id: number, bytes: Uint8Array): boolean;
  heedEnd(id: number, error: string): void;
}

export type MakeModule = (answers: Answers) => Promise<HeedModule>;

export interface Surroundings {
  /** The module of an address. */
  load: (engine: string) => Promise<MakeModule>;
  post: (message: FromWorker, transfer?: Transferable[]) => void;
  fetch: (url: string) => Promise<Response>;
  /** Runs `step` after messages that have come, at the earliest in so many milliseconds; returns what calls that off. */
  later: (milliseconds: number, step: () => void) => () => void;
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** The folder of a model; an organisation's name is a part of the folder's. */
export const folderOf = (name: string) => `/models/${name.replaceAll('/', '--')}`;

/** What is opened of the reader's files: their folder, or the first of a GGUF model's. */
function placeOf({ name, files }: ModelSpec): string {
  const packed = files.map(({ path }) => path).filter((path) => path.endsWith('.gguf')).sort();
  return packed.length === files.length ? `${folderOf(name)}/${packed[0]}` : folderOf(name);
}

/** All bytes of an address, with the number of those that have come. */
async function bytesOf(response: Response, come: (bytes: number) => void): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = response.body!.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    come((size += part.value.length));
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

type Files = { place: string; bytes: Uint8Array }[];
type Request = Extract<ToWorker, { kind: 'request' }>;
type Exchange = Extract<ToWorker, { kind: 'read' | 'put' }>;
type Task = Extract<ToWorker, { kind: 'start' }> | Request | Exchange | (Extract<ToWorker, { kind: 'add' | 'open' }> & { fetched: Files });

export class EngineHost {
  #module: HeedModule | null = null;
  #tasks: Task[] = [];
  #isBusy = false;
  #isOver = false;
  /** Paths that are in the engine's file system. */
  #there = new Set<string>();
  /** Calls off the next step, if one is set. */
  #callOff: (() => void) | null = null;

  constructor(private readonly around: Surroundings) {}

  take(message: ToWorker): void {
    if (this.#isOver) return;
    if (message.kind === 'add' || message.kind === 'open') {
      // Files come while the engine itself is loaded, and while it answers.
      const models = [message.model, ...(message.kind === 'open' ? message.besides : [])];
      Promise.all(models.map((model) => this.#fetchFiles(model))).then(
        (fetched) => this.#push({ ...message, fetched: fetched.flat() }),
        (error) => this.around.post({ kind: 'done', call: message.call, error: messageOf(error) }),
      );
    } else if (message.kind === 'stop') {
      this.#stop(message.id);
    } else {
      this.#push(message);
    }
  }

  #push(task: Task): void {
    this.#tasks.push(task);
    this.#stepIn(0);
  }

  #stop(id: number): void {
    const waits = this.#tasks.findIndex((task) => task.kind === 'request' && task.id === id);
    if (waits >= 0) this.#tasks.splice(waits, 1);
    else this.#guard(() => this.#module?.heedStop(id));
    this.#stepIn(0);
  }

  #stepIn(milliseconds: number): void {
    if (this.#isBusy || this.#isOver) return;
    this.#callOff?.();
    this.#callOff = this.around.later(milliseconds, () => void this.#step());
  }

  /** One task, or else one piece of the engine's own work: what comes meanwhile waits for that alone. */
  async #step(): Promise<void> {
    this.#callOff = null;
    const task = this.#tasks.shift();
    if (task === undefined) {
      const wait = this.#guard(() => this.#module?.heedWork() ?? -1) ?? -1;
      if (wait >= 0) this.#stepIn(wait);
      return;
    }
    if (task.kind === 'start') {
      this.#isBusy = true;
      await this.#load(task.engines);
      this.#isBusy = false;
    } else if (task.kind === 'request') {
      this.#guard(() => this.#module!.heedRequest(task.id, task.method, task.target, task.headers, task.body));
    } else if (task.kind === 'read' || task.kind === 'put') {
      this.#guard(() => this.#exchange(task));
    } else {
      this.#guard(() => this.#add(task));
    }
    this.#stepIn(0);
  }

  async #load([{ address, threads }, ...others]: EngineChoice[]): Promise<void> {
    try {
      this.#module = await (await this.around.load(address))({
        ...(threads > 1 && { heedThreads: threads }),
        heedHead: (id, status, headers) => this.around.post({ kind: 'head', id, status, headers: JSON.parse(headers) }),
        heedChunk: (id, bytes) => {
          // The memory is the engine's, which may write into it again.
          const copy = bytes.slice();
          this.around.post({ kind: 'chunk', id, bytes: copy }, [copy.buffer]);
          return true;
        },
        heedEnd: (id, error) => this.around.post({ kind: 'end', id, error }),
      });
    } catch (error) {
      if (others.length > 0) return this.#load(others);
      this.#lose(`the engine could not be loaded: ${messageOf(error)}`);
    }
  }

  #add({ kind, call, model, fetched }: Extract<Task, { kind: 'add' | 'open' }>): void {
    const { name, files, dtype } = model;
    let failure: string | null = null;
    try {
      this.#write(folderOf(name), fetched, files);
      // The engine knows by name what comes with the page; other models are folders, or files.
      const isOwn = files.some(({ file }) => file !== undefined);
      if (kind === 'open') this.#module!.heedOpen(isOwn ? placeOf(model) : name, isOwn ? { name, ...(dtype && { dtype }) } : {});
    } catch (error) {
      if (isFatal(error)) throw error;
      failure = messageOf(error);
    }
    this.around.post({ kind: 'done', call, error: failure });
  }

  /** Files between two engines. */
  #exchange(task: Exchange): void {
    const { FS } = this.#module!;
    const all = (path: string): FileBytes[] => {
      if (!FS.analyzePath(path).exists) return [];
      if (!FS.isDir(FS.stat(path).mode)) return [{ path, bytes: FS.readFile(path) }];
      return FS.readdir(path).filter((name) => name !== '.' && name !== '..').flatMap((name) => all(`${path}/${name}`));
    };
    if (task.kind === 'read') {
      const files = task.paths.flatMap(all);
      this.around.post({ kind: 'done', call: task.call, error: null, files }, files.map(({ bytes }) => bytes.buffer as ArrayBuffer));
      return;
    }
    for (const { path, bytes } of task.files) {
      FS.mkdirTree(path.slice(0, path.lastIndexOf('/')));
      FS.writeFile(path, bytes);
    }
    this.around.post({ kind: 'done', call: task.call, error: null });
  }

  /** What was fetched is copied into the engine's file system; files of the reader are mounted, and read in slices. */
  #write(folder: string, fetched: Files, files: ModelFile[]): void {
    const { FS, WORKERFS } = this.#module!;
    for (const { place, bytes } of fetched) {
      FS.mkdirTree(place.slice(0, place.lastIndexOf('/')));
      FS.writeFile(place, bytes);
      this.#there.add(place);
    }
    const own = files.filter(({ file }) => file !== undefined);
    if (own.length === 0 || this.#there.has(folder)) return;
    // What is no link has to be answered as such (EINVAL), which resolving a path relies on; WORKERFS says EPERM instead.
    delete WORKERFS.node_ops.readlink;
    FS.mkdirTree(folder);
    FS.mount(WORKERFS, { blobs: own.map(({ path, file }) => ({ name: path, data: file! })) }, folder);
    this.#there.add(folder);
  }

  #fetchFiles({ name, files }: ModelSpec): Promise<Files> {
    const wanted = files.filter(({ path, file }) => file === undefined && !this.#there.has(`${folderOf(name)}/${path}`));
    const total = wanted.reduce((sum, { bytes }) => sum + bytes, 0);
    const come = new Map<string, number>();
    return Promise.all(wanted.map(async ({ path, url }) => {
      const response = await this.around.fetch(url!);
      if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
      const bytes = await bytesOf(response, (size) => {
        come.set(path, size);
        this.around.post({ kind: 'progress', name, done: [...come.values()].reduce((sum, each) => sum + each, 0), total });
      });
      return { place: `${folderOf(name)}/${path}`, bytes };
    }));
  }

  /** Runs what may end the engine. */
  #guard<T>(run: () => T): T | undefined {
    try {
      return run();
    } catch (error) {
      this.#lose(messageOf(error));
      return undefined;
    }
  }

  #lose(message: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#tasks = [];
    this.around.post({ kind: 'lost', message });
  }
}

/** Whether the engine is broken by it: WebAssembly has trapped or aborted, which is no error of a model. */
export function isFatal(error: unknown): boolean {
  return error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
}
