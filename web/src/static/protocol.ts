// What the page and the engine's worker tell each other.

import type { EngineChoice } from './threads';

/** A file of a model: fetched from `url`, or read in slices from `file`. */
export interface ModelFile {
  /** Its name in the model's folder; of a run's files, with folders. */
  path: string;
  bytes: number;
  url?: string;
  file?: Blob;
}

/** A file of the engine's own file system. */
export interface FileBytes {
  path: string;
  bytes: Uint8Array;
}

export interface ModelSpec {
  name: string;
  files: ModelFile[];
  /** As `--dtype`; undefined: as `heed explore` without it. */
  dtype?: string;
}

export type ToWorker =
  /** The first message: where the engine's module is. The first of them that can be loaded is used. */
  | { kind: 'start'; engines: EngineChoice[] }
  /** Makes the files of a model known. `call` names the answer. */
  | { kind: 'add'; call: number; model: ModelSpec }
  /** Opens a model once its files, and those of others that belong to it, are there. */
  | { kind: 'open'; call: number; model: ModelSpec; besides: ModelSpec[] }
  /** Gives the files of these paths, folders with all that is in them; what is not there is left out. */
  | { kind: 'read'; call: number; paths: string[] }
  /** Writes files of another engine. */
  | { kind: 'put'; call: number; files: FileBytes[] }
  | { kind: 'request'; id: number; method: string; target: string; headers: Record<string, string>; body: Uint8Array }
  | { kind: 'stop'; id: number };

export type FromWorker =
  /** The answer to a call; `error`: why not. `files`: what was read. */
  | { kind: 'done'; call: number; error: string | null; files?: FileBytes[] }
  /** Bytes of a model that have come. */
  | { kind: 'progress'; name: string; done: number; total: number }
  | { kind: 'head'; id: number; status: number; headers: [string, string][] }
  | { kind: 'chunk'; id: number; bytes: Uint8Array }
  /** `error`: why the reply ended early; empty: it is whole. */
  | { kind: 'end'; id: number; error: string }
  /** The engine cannot go on: it ran out of memory, say. */
  | { kind: 'lost'; message: string };
