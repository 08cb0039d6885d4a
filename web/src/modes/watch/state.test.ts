import { expect, it } from 'vitest';
import { runState } from './state';

it('says that a run is running only while the server reports a process that trains it', () => {
  const run = (live: boolean) => ({ steps_total: 20, live });
  expect(runState(run(true), 15, true)).toBe('running');
  expect(runState(run(false), 15, true)).toBe('stopped');
  expect(runState(run(true), 15, false)).toBe('unknown');
  expect(runState(run(false), 15, false)).toBe('stopped');
});

it('says that a run is finished after its last step, whatever the list of runs still says', () => {
  for (const live of [true, false]) for (const isFresh of [true, false]) expect(runState({ steps_total: 20, live }, 20, isFresh)).toBe('finished');
});
