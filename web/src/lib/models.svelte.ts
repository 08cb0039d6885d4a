// The models that the page can show: those of the server, and those that it may download. Which one is shown stands in
// the link (`model`), so each reader looks at another one.

import { api, ApiError } from './api';
import { formatLink, viewOfModel } from './link';
import { platform } from './platform';
import { messageOf, page } from './state.svelte';
import type { Download, ListedModel, ModelList } from './types';

const pollMilliseconds = 500;
const source = platform.models ?? { list: api.models, download: api.download, cancel: api.cancelDownload };

class Models {
  list: ListedModel[] = $state.raw([]);
  /** Why nothing can be downloaded; null: it can. */
  whyNoDownloads: string | null = $state(null);
  /** The last download that was asked for. */
  download: Download | null = $state.raw(null);
  /** Why the list, or what was asked of a download, failed. */
  failure: string | null = $state(null);
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** The one that the page shows; undefined while the list is not known. */
  get shown(): ListedModel | undefined {
    return this.find((page.translator ?? page.model)?.name ?? '');
  }

  find(name: string): ListedModel | undefined {
    return this.list.find((model) => model.name === name);
  }

  /** Whether it can be shown now. */
  has(name: string): boolean {
    return this.find(name)?.state === 'ready';
  }

  /** Shows this model, with the text that is shown or another one; instead of a translator, in a mode of one text. The former view stays in the history. */
  use(name: string, text?: string): void {
    const isServed = this.find(name)?.kind === 'served';
    const view = page.translator ? { ...page.view, mode: 'follow' } : page.view;
    location.hash = formatLink(viewOfModel(view, isServed ? '' : name, text));
  }

  /** Asks for the list; while a download runs, again and again. */
  async refresh(): Promise<void> {
    await this.#take(source.list());
  }

  /** Downloads a published model, or goes on with a download that ended early. */
  async fetch(name: string): Promise<void> {
    await this.#take(source.download(name));
  }

  async cancel(name: string): Promise<void> {
    await this.#take(source.cancel(name));
  }

  async #take(asked: Promise<ModelList>): Promise<void> {
    clearTimeout(this.#timer);
    try {
      const { models, downloads, download } = await asked;
      this.list = models;
      this.whyNoDownloads = downloads.why_not;
      this.download = download;
      this.failure = null;
      if (download?.state === 'running') this.#timer = setTimeout(() => void this.refresh(), pollMilliseconds);
    } catch (error) {
      // A server of a translator alone has no list.
      if (!(error instanceof ApiError && error.status === 404)) this.failure = messageOf(error);
    }
  }
}

export const models = new Models();
