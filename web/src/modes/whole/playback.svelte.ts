// The token's data on its way through the model: where it is, and whether it moves.

import { percent, tokenWord } from '../../lib/numbers';
import { isParallel } from '../../lib/architecture';
import { page } from '../../lib/state.svelte';
import { lastStation } from './journey';
import type { Pictured } from './pictured.svelte';
import type { Predicted } from './predicted.svelte';
import { writeLink } from './view_link';

export const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');
const stationMilliseconds = 1200;

/** Make it during component initialisation. */
export class Playback {
  /** In stations. */
  time = $state(Math.max(0, Math.min(lastStation(page.model!.dimensions.layers, isParallel(page.architecture)), Number(page.view.extra.step) || 0)));
  playing = $state(false);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly pictured: Pictured, private readonly predicted: Predicted, private readonly redraw: () => void) {}

  get #last(): number {
    return this.predicted.way.length - 1;
  }

  /** The station that the data has reached. */
  readonly at: number = $derived.by(() => Math.min(this.#last, Math.floor(this.time + 1e-9)));

  /** Seconds from station to station: deep models take about as long in all. */
  get #perMove(): number {
    return Math.max(0.22, Math.min(1.15, 26 / lastStation(this.pictured.shape.layers, isParallel(this.pictured.architecture))));
  }

  #writeStep(): void {
    writeLink({ step: this.at === 0 ? '' : String(this.at) });
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  stop(): void {
    this.playing = false;
    clearTimeout(this.#timer);
    this.#writeStep();
  }

  play(): void {
    if (this.playing) return this.stop();
    if (this.pictured.preset) return;
    if (this.time >= this.#last) this.time = 0;
    this.playing = true;
    if (reducedMotion.matches) this.#later();
    else this.redraw();
  }

  /** With reduced motion the data jumps from station to station. */
  #later(): void {
    this.#timer = setTimeout(() => {
      if (!this.playing) return;
      this.time = this.at + 1;
      if (this.time >= this.#last) this.stop();
      else this.#later();
    }, stationMilliseconds);
  }

  step(by: number): void {
    if (this.pictured.preset) return;
    if (this.playing) this.stop();
    const target = by > 0 ? this.at + 1 : this.time > this.at ? this.at : this.at - 1;
    this.time = Math.max(0, Math.min(this.#last, target));
    this.#writeStep();
    const [guess] = this.predicted.at(this.at);
    page.say(`${this.predicted.way[this.at].name}${guess ? `: ${tokenWord(guess.token.text)}, ${percent(guess.probability)}` : ''}`);
  }

  scrub(to: number): void {
    if (this.playing) this.stop();
    this.time = to;
    this.#writeStep();
  }

  /** Moves the data; returns whether it goes on moving. */
  tick(seconds: number): boolean {
    if (!this.playing || reducedMotion.matches) return false;
    this.time = Math.min(this.#last, this.time + seconds / this.#perMove);
    if (this.time >= this.#last) this.stop();
    return this.playing;
  }

  /** To the beginning of another model's way. */
  reset(): void {
    this.playing = false;
    this.time = 0;
  }
}
