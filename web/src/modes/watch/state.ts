// What the page says of a run: whether it is being trained.

import type { Run } from '../../lib/types';

export type RunState = 'finished' | 'running' | 'stopped' | 'unknown';

/**
 * `lastStep` is the last step of the metrics, which may be newer than the list of runs. `isFresh` tells whether the
 * server has answered the last request for that list: without it, nothing says that the process still runs.
 */
export function runState(run: Pick<Run, 'steps_total' | 'live'>, lastStep: number, isFresh: boolean): RunState {
  if (lastStep >= run.steps_total) return 'finished';
  if (!run.live) return 'stopped';
  return isFresh ? 'running' : 'unknown';
}
