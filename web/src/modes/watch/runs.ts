// The runs that can be watched: where each comes from, and which one is shown first.

import type { DamagedRun, Run, Training } from '../../lib/types';
import { isActive } from './state';

export type AnyRun = Run | DamagedRun;

const originOf = (run: AnyRun) => ('error' in run ? 'given' : (run.origin ?? 'given'));

/** What a run's origin means. */
export const origins = {
  live: { title: 'Trained here', meaning: 'trained here' },
  given: { title: 'Given with --run', meaning: 'given with --run' },
  recorded: { title: 'Recorded, comes with heed', meaning: 'recorded earlier; it comes with heed' },
} as const;

/** The runs by their origin, for a list; origins without a run are left out. */
export function groupsOf(runs: AnyRun[]): { title: string; runs: AnyRun[] }[] {
  return (['live', 'given', 'recorded'] as const)
    .map((origin) => ({ title: origins[origin].title, runs: runs.filter((run) => originOf(run) === origin) }))
    .filter((group) => group.runs.length > 0);
}

/** A run of which there is something to see: its heads change from one checkpoint to another. */
const hasGrown = (run: AnyRun) => !('error' in run) && run.checkpoints.length > 1;

/** The run that a link without one shows: the one being trained, else one that was given, trained here or recorded. */
export function openingRun(runs: AnyRun[], training: Pick<Training, 'run' | 'state'> | null): string | undefined {
  if (training?.run && isActive(training.state)) return training.run;
  const whole = runs.filter((run) => !('error' in run));
  const of = (origin: string) => whole.filter((run) => originOf(run) === origin);
  return (of('given')[0] ?? of('live').filter(hasGrown).at(-1) ?? of('recorded')[0] ?? whole[0] ?? runs[0])?.name;
}
