import { getContext, untrack } from 'svelte';
import { messageOf } from './messages';

/** An asynchronous value. It belongs to the subject that it was asked for: another one never shows a reply that comes late. */
export class Loaded<T> {
  #held: { of: unknown; value: T } | undefined = $state.raw(undefined);
  #failed: { of: unknown; message: string } | null = $state.raw(null);
  loading = $state(false);
  #turn = 0;
  #isAsked = false;

  /** `subject` names what is shown now, by a string or a number; without it, the last value stays while the next is loading. */
  constructor(private readonly subject: () => unknown = () => undefined) {}

  /** What has come for the present subject. */
  get value(): T | undefined {
    return this.#held && this.#held.of === this.subject() ? this.#held.value : undefined;
  }

  /** What came last, perhaps for a former subject (`isFormer`): for pictures that keep their room, marked as such. */
  get last(): T | undefined {
    return this.#held?.value;
  }

  get isFormer(): boolean {
    return this.#held !== undefined && this.#held.of !== this.subject();
  }

  get failure(): string | null {
    return this.#failed && this.#failed.of === this.subject() ? this.#failed.message : null;
  }

  /** Takes the promise's value unless a later one was requested meanwhile. */
  async from(promise: Promise<T>): Promise<void> {
    const turn = ++this.#turn;
    const of = this.subject();
    this.loading = this.#isAsked = true;
    try {
      const value = await promise;
      if (turn !== this.#turn) return;
      this.#held = { of, value };
      this.#failed = null;
    } catch (error) {
      if (turn === this.#turn && (error as Error)?.name !== 'AbortError') this.#failed = { of, message: messageOf(error) };
    } finally {
      if (turn === this.#turn) this.loading = this.#isAsked = false;
    }
  }

  /** Marks what is held as former until it is asked for again. */
  wait(): void {
    this.loading = true;
  }

  /** Ends a wait where nothing is to be loaded. */
  rest(): void {
    this.loading = this.#isAsked;
  }

  forgetFailure(): void {
    this.#failed = null;
  }
}

/** A component's context: nothing inside is loaded before this is true, but for what comes first. */
export const waitsFor = Symbol('waits for');

/**
 * Loads again when the subject or a dependency of `ask` changes; call during component initialisation. `null`: nothing to
 * load yet. Name the subject wherever the page says what the value is of: `current.about(…)` for those of the trace.
 */
export function loaded<T>(ask: () => Promise<T> | null, subject?: () => unknown): Loaded<T> {
  const holder = new Loaded<T>(subject);
  const mayAsk = getContext<(() => boolean) | undefined>(waitsFor);
  $effect(() => {
    // While it may not ask, it waits for that alone; a later wait of others does not make it ask again.
    if (mayAsk && untrack(mayAsk) === false && mayAsk() === false) return holder.wait();
    const promise = ask();
    if (promise) void holder.from(promise);
    else holder.rest();
  });
  return holder;
}

/** As `loaded`, of what a reader waits for: asked for before the page is drawn anew, and so before all others. */
export function loadedFirst<T>(ask: () => Promise<T> | null, subject?: () => unknown): Loaded<T> {
  const holder = new Loaded<T>(subject);
  $effect.pre(() => {
    const promise = ask();
    if (promise) void holder.from(promise);
  });
  return holder;
}
