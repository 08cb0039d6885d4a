// The token's data on its way through the model: where it is, and whether it moves.

import { isParallel } from '../../lib/architecture';
import { percent, tokenWord } from '../../lib/numbers';
import { Player } from '../../lib/player.svelte';
import { page } from '../../lib/state.svelte';
import { lastStation } from './journey';
import type { Pictured } from './pictured.svelte';
import type { Predicted } from './predicted.svelte';
import { writeLink } from './view_link';

/** What the picture does with it. */
interface Shown {
  redraw: () => void;
  /** Where playing enters attention, in stations; null where it passes. */
  entrance: () => number | null;
  enter: () => void;
  /** Out of attention: the model itself is played, stepped or scrubbed. */
  leave: () => void;
}

/** Make it during component initialisation. Its steps are stations. */
export class Playback extends Player {
  constructor(private readonly pictured: Pictured, private readonly predicted: Predicted, private readonly shown: Shown) {
    super();
    this.time = Math.max(0, Math.min(lastStation(page.model!.dimensions.layers, isParallel(page.architecture)), Number(page.view.extra.step) || 0));
  }

  get last(): number {
    return this.predicted.way.length - 1;
  }

  /** Deep models take about as long in all. */
  protected secondsOf(): number {
    return Math.max(0.22, Math.min(1.15, 26 / lastStation(this.pictured.shape.layers, isParallel(this.pictured.architecture))));
  }

  protected redraw(): void {
    this.shown.redraw();
  }

  protected rested(): void {
    writeLink({ step: this.at === 0 ? '' : String(this.at) });
  }

  protected stopsBetween(from: number, to: number): number | null {
    const entrance = this.shown.entrance();
    if (entrance === null || entrance <= from || entrance > to) return null;
    this.shown.enter();
    return entrance;
  }

  play(): void {
    if (this.pictured.preset) return;
    this.shown.leave();
    super.play();
  }

  scrub(to: number): void {
    this.shown.leave();
    super.scrub(to);
  }

  step(by: number): void {
    if (this.pictured.preset) return;
    this.shown.leave();
    super.step(by);
    const [guess] = this.predicted.at(this.at);
    page.say(`${this.predicted.way[this.at].name}${guess ? `: ${tokenWord(guess.token.text)}, ${percent(guess.probability)}` : ''}`);
  }

  /** To the beginning of another model's way. */
  reset(): void {
    this.close();
    this.time = 0;
  }
}
