import { expect, it } from 'vitest';
import type { TrainingState } from '../../lib/types';
import { isActive, runState, trainingSentence } from './state';

const run = (live: boolean) => ({ name: 'a', steps_total: 20, live });

it('says that a run is running only while the server reports a process that trains it', () => {
  expect(runState(run(true), 15, true)).toBe('running');
  expect(runState(run(false), 15, true)).toBe('stopped');
  expect(runState(run(true), 15, false)).toBe('unknown');
  expect(runState(run(false), 15, false)).toBe('stopped');
});

it('says that a run is finished after its last step, whatever the list of runs still says', () => {
  for (const live of [true, false]) for (const isFresh of [true, false]) expect(runState(run(live), 20, isFresh)).toBe('finished');
});

it('says of the run that the server trains what the server says, and of others what the list says', () => {
  const of = (state: TrainingState, isFresh = true, lastStep = 15, live = true) => runState(run(live), lastStep, isFresh, { run: 'a', state });
  for (const state of ['preparing', 'running', 'paused', 'stopping'] as const) {
    expect(of(state)).toBe(state);
    expect(of(state, false)).toBe('unknown');
    expect(of(state, true, 20)).toBe(state);
  }
  expect(of('stopped')).toBe('stopped');
  expect(of('failed')).toBe('failed');
  expect(of('finished')).toBe('finished');
  expect(runState(run(true), 15, true, { run: 'b', state: 'stopped' })).toBe('running');
  expect(runState(run(false), 15, true, { run: 'b', state: 'running' })).toBe('stopped');
});

it('knows which states hold the place of a training', () => {
  expect((['none', 'finished', 'stopped', 'failed'] as const).some(isActive)).toBe(false);
  expect(isActive(undefined)).toBe(false);
});

it('tells the state in a sentence', () => {
  const of = (state: TrainingState, error: string | null = null) => trainingSentence({ state, step: 1250, steps: 2000, error });
  expect(of('running')).toBe('Training: step 1,250 of 2,000.');
  expect(of('paused')).toBe('Paused at step 1,250 of 2,000.');
  expect(of('failed', 'the loss is no longer finite')).toContain('the loss is no longer finite');
});
