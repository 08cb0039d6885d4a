// Prefetches generated tokens: stepping takes one, running takes them as they arrive. Both give the same text.

import type { GenerateRequest, GeneratedToken, TraceMeta } from '../../lib/types';

type Drawn = { kind: 'token'; token: GeneratedToken } | { kind: 'done'; finish_reason: string; trace: TraceMeta };
export type Generate = (request: GenerateRequest, signal: AbortSignal) => AsyncGenerator<Drawn>;

export interface Taken {
  token: GeneratedToken | null;
  /** Why there is no token: end of text, or end of the chunk. */
  finish: string | null;
}

export class DrawAhead {
  #ahead: GeneratedToken[] = [];
  #abort = new AbortController();
  #finish: string | null = null;
  #failure: unknown = null;
  #wake: () => void = () => undefined;

  constructor(generate: Generate, request: GenerateRequest) {
    void this.#fill(generate, request);
  }

  async #fill(generate: Generate, request: GenerateRequest): Promise<void> {
    try {
      for await (const drawn of generate(request, this.#abort.signal)) {
        if (drawn.kind === 'token') this.#ahead.push(drawn.token);
        else this.#finish = drawn.finish_reason;
        this.#wake();
      }
      this.#finish ??= 'length';
    } catch (error) {
      this.#failure = error;
    }
    this.#wake();
  }

  /** The next token; waits for it. One caller at a time. */
  async take(): Promise<Taken> {
    while (this.#ahead.length === 0) {
      if (this.#abort.signal.aborted) return { token: null, finish: 'stopped' };
      if (this.#failure) throw this.#failure;
      if (this.#finish !== null) return { token: null, finish: this.#finish };
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return { token: this.#ahead.shift()!, finish: null };
  }

  /** Returns a token that was stepped back over; `take` gives it again. */
  giveBack(token: GeneratedToken): void {
    this.#ahead.unshift(token);
  }

  stop(): void {
    this.#abort.abort();
    this.#ahead = [];
    this.#wake();
  }
}
