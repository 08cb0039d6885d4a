// What the model predicts after the chosen token: at the end, and by the logit lens at each station of its way.

import { api } from '../../lib/api';
import { isParallel } from '../../lib/architecture';
import { loaded } from '../../lib/load.svelte';
import { current } from '../../lib/state.svelte';
import { rowAfter, stations, type Station } from './journey';
import type { Pictured } from './pictured.svelte';
import type { Guess } from './view';

/** Make it during component initialisation. */
export class Predicted {
  constructor(private readonly pictured: Pictured) {}

  readonly #next = loaded(() => {
    const position = current.position;
    return current.meta && current.keep(`whole next ${position}`, (id) => api.next(id, { position, limit: this.pictured.listed }));
  }, () => current.about(current.position));
  readonly #lens = loaded(() => {
    const position = current.position;
    return current.meta && current.keep(`whole lens ${position}`, (id) => api.lens(id, 3, String(position)));
  }, () => current.about(current.position));
  readonly candidates: Guess[] = $derived.by(() => (this.pictured.preset ? [] : (this.#next.value?.candidates ?? []).map(({ id, token, probability }) => ({ token: { id, text: token }, probability }))));
  readonly way: Station[] = $derived.by(() => stations(this.pictured.shape.layers, isParallel(this.pictured.architecture)));
  /** The best guess after each block. */
  readonly afterBlocks: (Guess | null)[] = $derived.by(() => (this.pictured.preset ? [] : Array.from({ length: this.pictured.shape.layers }, (_, layer) => this.#lensRow(rowAfter(layer, this.pictured.shape.layers))[0] ?? null)));

  get lensLoaded(): boolean {
    return this.#lens.value !== undefined;
  }

  /** The guesses in a row of the logit lens. */
  #lensRow(name: string | null): Guess[] {
    const lens = this.#lens.value;
    const cell = name === null ? undefined : lens?.cells[lens.rows.indexOf(name)]?.[0];
    return cell ? cell.tokens.map((token, rank) => ({ token, probability: cell.probabilities[rank] })) : [];
  }

  /** The best three guesses at a station. */
  at(station: number): Guess[] {
    return station === this.way.length - 1 ? this.candidates.slice(0, 3) : this.#lensRow(this.way[station].lens);
  }
}
