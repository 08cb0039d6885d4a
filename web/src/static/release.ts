// What this version of the page consists of besides its scripts; tools/static_page.mjs writes it into index.html.

import type { ModelFile } from './protocol';

/** A model, or a run, that comes with the page. */
export interface CarriedModel {
  /** Its folder's address, relative to the page; the name has the hash of its content. */
  folder: string;
  files: Pick<ModelFile, 'path' | 'bytes'>[];
  /** What it has read, in one line, and its size, for the list of models before its files are here; of a run neither. */
  about?: string | null;
  parameters?: number;
}

export interface Release {
  /** The address of the engine's module, relative to the page. */
  engine: string;
  /** That of the engine with threads; absent: it was not built. */
  threadsEngine?: string;
  models: Record<string, CarriedModel>;
  /** Of the first model: fetched with the first question about features. Absent: it has none here. */
  transcoders?: CarriedModel;
}

/** Shown where a link names no model. */
export const firstModel = 'starter';
/** No model, but a training run that comes along. */
export const recordedRun = 'recorded';
/** The engine's folder for the transcoders of the first model. */
export const transcodersFolder = 'starter-transcoders';

export function readRelease(document: Document): Release {
  const text = document.querySelector('meta[name="heed-release"]')?.getAttribute('content');
  if (!text) throw new Error('This page has no engine: build it with "make static-page".');
  return JSON.parse(text);
}

/** The files of a carried model, with their addresses. */
export function carriedFiles({ folder, files }: CarriedModel, base: string): ModelFile[] {
  return files.map((file) => ({ ...file, url: new URL(folder + file.path, base).href }));
}
