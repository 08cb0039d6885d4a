// How many threads the engine computes with. Threads share memory, which browsers give only to pages that are isolated
// from other origins (the service worker's headers, or the host's, see docs/static-page.md).

/** An engine's module, and how many threads it is to compute with. */
export interface EngineChoice {
  address: string;
  threads: number;
}

export interface Machine {
  isIsolated: boolean;
  /** Logical ones. */
  processors: number;
  /** What the address asks for: its `threads`. */
  asked: string | null;
}

export const mostThreads = 8;

/** Half of the logical processors, since most machines have two of them a core, and the page needs one too. */
export function threadsOf({ isIsolated, processors, asked }: Machine): number {
  if (!isIsolated) return 1;
  const wanted = asked !== null && /^[1-9]\d?$/.test(asked) ? Number(asked) : Math.floor(processors / 2);
  return Math.min(Math.max(wanted, 1), mostThreads);
}
