import { messageOf } from './state.svelte';

/** An asynchronous value; the last one stays while the next is loading. */
export class Loaded<T> {
  value: T | undefined = $state.raw(undefined);
  loading = $state(false);
  failure: string | null = $state(null);
  #turn = 0;

  /** Takes the promise's value unless a later one was requested meanwhile. */
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

/** Loads again when a dependency of `ask` changes; call during component initialisation. `null`: nothing to load yet. */
export function loaded<T>(ask: () => Promise<T> | null): Loaded<T> {
  const holder = new Loaded<T>();
  $effect(() => {
    const promise = ask();
    if (promise) void holder.from(promise);
  });
  return holder;
}
