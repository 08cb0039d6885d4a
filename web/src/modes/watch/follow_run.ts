// The metrics of a run while it writes them.

import { ApiError } from '../../lib/api';
import type { ServerEvent } from '../../lib/events';
import type { MetricsRow } from '../../lib/types';

export interface RunSource {
  metrics: (run: string) => Promise<MetricsRow[]>;
  runEvents: (run: string, signal: AbortSignal) => AsyncGenerator<ServerEvent>;
}

const reconnectMilliseconds = 2000;
/** A run that is just being started may not have been written yet. */
const startMilliseconds = 200;
/** A fast run writes hundreds of rows a second; drawing each of them would fall behind the run. */
const drawMilliseconds = 100;
/** A long run is drawn less often: drawing takes longer, and each step changes less. */
const rowsAMillisecond = 50;

/**
 * Calls `show` with all rows so far, again and again, until the run is finished or the signal aborts. `isStarting` tells
 * whether the server is still about to write the run: until then, its absence is no error.
 */
export async function followRun(source: RunSource, run: string, signal: AbortSignal, show: (rows: MetricsRow[]) => void, isStarting = () => false): Promise<void> {
  while (!signal.aborted) {
    let wait = reconnectMilliseconds;
    // A lost connection is no error: the next request waits until the server is back.
    const finished = await listen(source, run, signal, show).catch((error) => {
      if (!(error instanceof ApiError)) return false;
      if (error.status !== 404 || !isStarting()) throw error;
      wait = startMilliseconds;
      return false;
    });
    if (finished || signal.aborted) return;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

/** Whether the run ended while its events were read. */
async function listen(source: RunSource, run: string, signal: AbortSignal, show: (rows: MetricsRow[]) => void): Promise<boolean> {
  let rows: MetricsRow[] = [];
  let added: MetricsRow[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (signal.aborted) return;
    rows = [...rows, ...added];
    added = [];
    show(rows);
  };
  try {
    for await (const { event, data } of source.runEvents(run, signal)) {
      // Events begin where the file ended when the stream was opened: rows read from now on leave no gap.
      if (event === 'open') {
        rows = await source.metrics(run);
        flush();
      }
      if (event === 'metrics') {
        added.push(JSON.parse(data));
        timer ??= setTimeout(flush, Math.max(drawMilliseconds, rows.length / rowsAMillisecond));
      }
      if (event === 'end') return true;
    }
    return false;
  } finally {
    if (timer !== undefined) flush();
  }
}
