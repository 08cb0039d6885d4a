import { messageOf } from './state.svelte';

/** What a component waits for: the last value stays while the next one is on its way. */
export class Loaded<T> {
  value: T | undefined = $state.raw(undefined);
  loading = $state(false);
  failure: string | null = $state(null);
  #turn = 0;

  /** Shows the answer unless a later one was asked for meanwhile. */
  async from(promise: Promise<T>): Promise<void> {
    const turn = ++this.#turn;
    this.loading = true;
    try {
      const value = await promise;
      if (turn !== this.#turn) return;
      this.value = value;
      this.failure = null;
    } catch (error) {
      if (turn === this.#turn && (error as Error)?.name !== 'AbortError') this.failure = messageOf(error);
    } finally {
      if (turn === this.#turn) this.loading = false;
    }
  }
}

/** Loads again whenever what `ask` reads changes; call while a component is made. `null`: not yet. */
export function loaded<T>(ask: () => Promise<T> | null): Loaded<T> {
  const holder = new Loaded<T>();
  $effect(() => {
    const promise = ask();
    if (promise) void holder.from(promise);
  });
  return holder;
}
