// What the page says of a run: whether it is being trained.

import type { Run, Training, TrainingState } from '../../lib/types';

export type RunState = 'preparing' | 'running' | 'paused' | 'stopping' | 'finished' | 'stopped' | 'failed' | 'unknown';

const active: TrainingState[] = ['preparing', 'running', 'paused', 'stopping'];

/** Whether a training holds the server's place for one. */
export function isActive(state: TrainingState | undefined): boolean {
  return state !== undefined && active.includes(state);
}

/**
 * `lastStep` is the last step of the metrics, which may be newer than the list of runs. `isFresh` tells whether the
 * server has answered the last request for that list: without it, nothing says that the process still runs. What the
 * server says of its own training is more exact than the list, which only knows that some process trains the run.
 */
export function runState(run: Pick<Run, 'name' | 'steps_total' | 'live'>, lastStep: number, isFresh: boolean, training: Pick<Training, 'run' | 'state'> | null = null): RunState {
  const own = training?.run === run.name && training.state !== 'none' ? training.state : null;
  if (own && isActive(own)) return isFresh ? own : 'unknown';
  if (lastStep >= run.steps_total) return 'finished';
  if (own) return own;
  if (!run.live) return 'stopped';
  return isFresh ? 'running' : 'unknown';
}

/** The state of the server's training as a sentence, for the page and for screen readers. */
export function trainingSentence({ state, step, steps, error }: Pick<Training, 'state' | 'step' | 'steps' | 'error'>): string {
  const at = `step ${step.toLocaleString('en-US')} of ${steps.toLocaleString('en-US')}`;
  switch (state) {
    case 'none': return '';
    case 'preparing': return 'Preparing the text and the model.';
    case 'running': return `Training: ${at}.`;
    case 'paused': return `Paused at ${at}.`;
    case 'stopping': return 'Stopping: the last step is being saved.';
    case 'finished': return `Finished after ${steps.toLocaleString('en-US')} steps.`;
    case 'stopped': return `Stopped at ${at}.`;
    case 'failed': return `The training failed: ${error ?? 'the server gives no reason'}`;
  }
}
