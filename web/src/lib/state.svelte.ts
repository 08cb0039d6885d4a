// The page's state: the view (which the address mirrors), the model, and the trace of the prompt.

import { flushSync, tick } from 'svelte';
import { api, ApiError } from './api';
import { gpt2 } from './architecture';
import { byEffect, formatLink, opened, parseLink, type View } from './link';
import { messageOf } from './messages';
import { recall, remember } from './remembered';
import { defaultsOf, differing, unmodifiedOf } from './sampling';
import type { ServedTranslator } from './pair_types';
import type { Architecture, Example, ModelCard, NumberArray, Sampling, SamplingOption, TraceMeta } from './types';

export { messageOf };

/** For a model without examples. */
const opening: Example = { id: 'opening', title: 'A beginning', text: 'The fox waited in the forest, and the hare saw the fox' };

/** Ids that repeat, for a model without a tokenizer. */
const openingIds: Example = { ...opening, id: 'ids', text: '1 2 3 4 5 6 1 2 3 4' };

const withoutPosition = (link: string) => link.replace(/[?&]position=-?\d+/, '');

class Page {
  view: View = $state(parseLink(location.hash));
  model: ModelCard | null = $state(null);
  /** Whether another model is on its way: views, which read the one at hand, are not shown meanwhile. */
  changing = $state(false);
  /** The model where it is an encoder-decoder: of two texts, with no traces of one. `model` is null then. */
  translator: ServedTranslator | null = $state.raw(null);
  /** The server's; known once `model` is. */
  samplingOptions: SamplingOption[] = $state.raw([]);
  /** Why the model could not be loaded. */
  failure: string | null = $state(null);
  /** Announced by screen readers when it changes. */
  announcement = $state('');
  dark = $state(false);

  /** Whether the served model is known. */
  get ready(): boolean {
    return !this.changing && (this.model !== null || this.translator !== null);
  }

  get architecture(): Architecture {
    return this.model?.architecture ?? gpt2(1);
  }

  get sampling(): Sampling {
    return { ...defaultsOf(this.samplingOptions), ...this.view.sampling };
  }

  /** The model's own distribution. */
  get unmodified(): Sampling {
    return unmodifiedOf(this.samplingOptions);
  }

  setSampling(changes: Sampling): void {
    this.view.sampling = differing({ ...this.view.sampling, ...changes }, this.samplingOptions);
  }

  get link(): string {
    return formatLink(this.view);
  }

  /** The link of this view with `changes`, for an `href`. */
  linkTo(changes: Partial<View>): string {
    return formatLink({ ...this.view, ...changes });
  }

  say(text: string): void {
    this.announcement = text;
  }

  async start(): Promise<void> {
    addEventListener('hashchange', () => this.#follow());
    const darkness = matchMedia('(prefers-color-scheme: dark)');
    const paper = matchMedia('print');
    const setDark = () => this.#show(!paper.matches && (recall('heed-theme') ?? (darkness.matches ? 'dark' : 'light')) === 'dark');
    darkness.addEventListener('change', setDark);
    // Pictures are redrawn in light colours for printing.
    paper.addEventListener('change', () => flushSync(setDark));
    setDark();
    await this.#load();
  }

  /** Loads the model of the view. */
  async #load(): Promise<void> {
    const wanted = this.view.model;
    this.failure = null;
    this.changing = true;
    await tick();
    current.forget();
    try {
      await api.choose(wanted);
      if (wanted !== this.view.model) return; // another one was chosen meanwhile
      // Asked for together; a translator needs no options.
      const options = this.samplingOptions.length === 0 ? api.samplingOptions() : null;
      options?.catch(() => {});
      const model = await api.model();
      if (wanted !== this.view.model) return;
      if ('is_translator' in model) {
        this.translator = model;
        this.model = null;
        return;
      }
      if (options) this.samplingOptions = await options;
      if (wanted !== this.view.model) return;
      // Example sentences need a tokenizer.
      this.translator = null;
      this.model = model.has_tokenizer ? model : { ...model, examples: [] };
      const view = parseLink(this.link, this.samplingOptions);
      // Extras that are empty on purpose are in no link.
      for (const [name, value] of Object.entries(this.view.extra)) if (value === '') view.extra[name] = value;
      this.view = opened(view, this.#opening);
    } catch (error) {
      if (wanted !== this.view.model) return;
      this.model = this.translator = null;
      this.failure = messageOf(error);
    } finally {
      if (wanted === this.view.model) this.changing = false;
    }
  }

  /** Sets the document's colours before pictures are drawn with them. */
  #show(dark: boolean): void {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    this.dark = dark;
  }

  toggleTheme(): void {
    this.#show(!this.dark);
    remember('heed-theme', this.dark ? 'dark' : 'light');
  }

  /** Call in an effect: keeps the URL in step with the view. Another position is shown first, since browsers take their time for an address. */
  mirror(): void {
    const { hash } = location;
    if (hash === this.link) return;
    const replace = () => {
      if (location.hash === hash && hash !== this.link) history.replaceState(null, '', this.link);
    };
    if (withoutPosition(hash) === withoutPosition(this.link) && !document.hidden) requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(replace)));
    else replace();
  }

  showExample(example: Example): void {
    this.view.text = example.text;
    this.view.layer = example.layer ?? this.view.layer;
    this.view.head = example.head ?? this.view.head;
    this.view.position = example.position ?? -1;
    this.view.extra.pick = example.layer === undefined ? byEffect : '';
  }

  /** What a link without a text shows. */
  get #opening(): Example {
    return this.model?.has_tokenizer === false ? openingIds : (this.model?.examples[0] ?? opening);
  }

  #follow(): void {
    if (location.hash === this.link) return;
    const view = parseLink(location.hash, this.samplingOptions);
    const isOther = view.model !== this.view.model;
    if (isOther) this.changing = true;
    this.view = this.model && !isOther ? opened(view, this.#opening) : view;
    if (isOther) void this.#load();
  }
}

/** The trace of the prompt without interventions; what is loaded for it is cached as long as it is shown. */
class Current {
  meta: TraceMeta | null = $state(null);
  /** The text of `meta`; the view's is another one while that is being run. */
  text: string | null = $state(null);
  loading = $state(false);
  failure: string | null = $state(null);
  #abort: AbortController | null = null;
  #text: string | null = null;
  #kept = new Map<string, Promise<unknown>>();

  /** Whether what is shown is about another text than the view's, which the model could not take. */
  get isFormer(): boolean {
    return this.failure !== null && this.meta !== null && this.text !== page.view.text;
  }

  /** Makes the trace of `text`, unless it is already shown or being made. */
  async show(text: string): Promise<void> {
    if (text === this.#text) return;
    await this.#make(text);
  }

  /** Makes the trace again, for a server that may have been restarted. */
  async again(): Promise<void> {
    if (this.#text !== null) await this.#make(this.#text);
  }

  /** For another model: nothing of the trace is shown any more. */
  forget(): void {
    this.#abort?.abort();
    this.#kept.clear();
    this.#text = this.text = this.meta = this.failure = null;
    this.loading = false;
  }

  async #make(text: string): Promise<void> {
    this.#text = text;
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    this.loading = true;
    this.failure = null;
    try {
      const meta = await api.makeTrace({ text }, abort.signal);
      if (abort.signal.aborted) return;
      this.#kept.clear();
      this.meta = meta;
      this.text = text;
      if (page.view.position >= meta.tokens.length) page.view.position = -1;
      page.view.layer = Math.min(Math.max(0, page.view.layer), meta.layers - 1);
      page.view.head = Math.min(Math.max(0, page.view.head), meta.heads - 1);
      page.say(`The prompt has ${meta.tokens.length} tokens.`);
    } catch (error) {
      if (abort.signal.aborted) return;
      this.failure = messageOf(error);
      this.#text = null;
    } finally {
      if (this.#abort === abort) this.loading = false;
    }
  }

  /** The chosen position, counted from 0 (a view's −1 is the last token). */
  get position(): number {
    const last = (this.meta?.tokens.length ?? 1) - 1;
    return page.view.position < 0 ? last : Math.min(page.view.position, last);
  }

  /** The subject of what is loaded about this trace: its name, and that of the part of it. */
  about(...parts: unknown[]): string {
    return [this.meta?.id, ...parts].join(' ');
  }

  /** Caches an answer about this trace; an evicted trace is made again. */
  keep<T>(name: string, ask: (id: string) => Promise<T>): Promise<T> {
    if (!this.meta) return Promise.reject(new Error('no trace yet'));
    const key = `${this.meta.id} ${name}`;
    let answer = this.#kept.get(key) as Promise<T> | undefined;
    if (!answer) {
      answer = ask(this.meta.id).catch((error) => {
        this.#kept.delete(key);
        if (error instanceof ApiError && error.status === 404) void this.#makeAgain();
        throw error;
      });
      this.#kept.set(key, answer);
    }
    return answer;
  }

  /** After a 404: makes the trace again if the server has evicted it. */
  async #makeAgain(): Promise<void> {
    const id = this.meta?.id;
    const text = this.#text;
    if (id === undefined || text === null) return;
    await api.trace(id).catch((error) => {
      if (error instanceof ApiError && error.status === 404 && this.meta?.id === id) void this.#make(text);
    });
  }

  array(point: string): Promise<NumberArray> {
    return this.keep(`array ${point}`, (id) => api.array(id, point));
  }

  /** One position's numbers of a point: a single vector. */
  async vector(point: string, position: number): Promise<Float32Array> {
    return (await this.keep(`array ${point} ${position}`, (id) => api.array(id, point, { positions: String(position) }))).data;
  }
}

export const page = new Page();
export const current = new Current();
