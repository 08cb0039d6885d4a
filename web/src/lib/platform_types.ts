// What the page needs of where it runs: beside a server of its own, or as static files with the engine in a worker.

import type { Component } from 'svelte';
import type { ModelList } from './types';

/** The models that can be shown, and downloads of published ones. */
export interface ModelSource {
  list: () => Promise<ModelList>;
  download: (name: string) => Promise<ModelList>;
  cancel: (name: string) => Promise<ModelList>;
}

/** A model whose files are on their way, in bytes. */
export interface Coming {
  name: string;
  done: number;
  total: number;
}

export interface Platform {
  /** Whether a server of this machine answers: it draws figures, keeps runs on disk, and goes on when the page is closed. */
  isServer: boolean;
  /** As `fetch`, of a path of the API. Rejects where nothing answers. */
  fetch: (path: string, options?: RequestInit) => Promise<Response>;
  /** Makes a model ready; an empty name: the first one. Gives the name of it that requests have to send, if any. */
  choose: (model: string) => Promise<string | undefined>;
  /** Instead of those of the API. */
  models: ModelSource | null;
  /** What the list of models ends with: models of the reader's own. */
  ownModels: (() => Promise<{ default: Component<{ onopen: () => void }> }>) | null;
  /** Takes what to tell the reader, such as that the engine was started again; and what of a model has come. */
  onNotice: (tell: (message: string | null) => void, coming: (model: Coming | null) => void) => void;
}
