// What plays from step to step: it moves, or jumps where reduced motion is preferred; pauses, steps and is scrubbed.

export const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');

/** Make it during component initialisation. */
export abstract class Player {
  /** In steps: at 2.5, the third step is half done. */
  time = $state(0);
  playing = $state(false);
  #timer: ReturnType<typeof setTimeout> | undefined;

  abstract get last(): number;
  /** How long the step that begins at `step` takes. */
  protected abstract secondsOf(step: number): number;
  /** Asks for frames: each calls `tick`. */
  protected abstract redraw(): void;
  /** After a step, a scrub, a pause or the end. */
  protected rested(): void {}
  /** Where playing from one time to another stops by itself. */
  protected stopsBetween(_from: number, _to: number): number | null {
    return null;
  }

  /** The last step that is done. */
  get at(): number {
    return Math.min(this.last, Math.floor(this.time + 1e-9));
  }

  close(): void {
    this.playing = false;
    clearTimeout(this.#timer);
  }

  stop(): void {
    this.close();
    this.rested();
  }

  play(): void {
    if (this.playing) return this.stop();
    if (this.time >= this.last) this.time = 0;
    this.playing = true;
    if (reducedMotion.matches) this.#later();
    else this.redraw();
  }

  #later(): void {
    this.#timer = setTimeout(() => {
      if (!this.playing) return;
      this.#advance(this.at + 1);
      if (this.playing) this.#later();
    }, 1000 * Math.max(this.leastPause, this.secondsOf(this.at)));
  }

  /** Seconds between jumps. */
  protected readonly leastPause: number = 1.2;

  #advance(to: number): void {
    const stop = this.stopsBetween(this.time, to);
    this.time = Math.min(this.last, stop ?? to);
    if (stop !== null || this.time >= this.last) this.stop();
  }

  step(by: number): void {
    if (this.playing) this.close();
    // Back from the middle of a step is to its beginning.
    const target = by < 0 && this.time > this.at ? this.at + by + 1 : this.at + by;
    this.time = Math.max(0, Math.min(this.last, target));
    this.rested();
  }

  scrub(to: number): void {
    if (this.playing) this.close();
    this.time = Math.max(0, Math.min(this.last, to));
    this.rested();
  }

  /** Moves on; returns whether it goes on moving. */
  tick(seconds: number): boolean {
    if (!this.playing || reducedMotion.matches) return false;
    let [left, to] = [seconds, this.time];
    while (left > 0 && to < this.last) {
      const step = Math.floor(to + 1e-9);
      const pace = this.secondsOf(step);
      const part = Math.min(left, (step + 1 - to) * pace);
      to = part < left ? step + 1 : to + part / pace;
      left -= part;
    }
    this.#advance(to);
    return this.playing;
  }
}
