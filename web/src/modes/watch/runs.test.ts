import { expect, it } from 'vitest';
import type { Run } from '../../lib/types';
import { groupsOf, openingRun, type AnyRun } from './runs';

const run = (name: string, origin?: Run['origin'], checkpoints = [0, 1]): AnyRun => ({ name, path_shown: name, settings: {}, steps_total: 1, step: 1, live: false, checkpoints, parameters: 1, origin });
const damaged: AnyRun = { name: 'damaged', path_shown: 'damaged', error: 'run.json is damaged' };

it('lists runs by where they come from', () => {
  const all = [damaged, run('small', 'given'), run('stories', 'recorded'), run('first', 'live')];
  expect(groupsOf(all).map(({ title, runs }) => [title, runs.map(({ name }) => name)])).toEqual([
    ['Trained here', ['first']], ['Given with --run', ['damaged', 'small']], ['Recorded, comes with heed', ['stories']],
  ]);
});

it('opens with the run that is being trained, else with one that can be read', () => {
  const all = [run('stories', 'recorded'), damaged, run('small', 'given')];
  expect(openingRun(all, { run: 'first', state: 'paused' })).toBe('first');
  expect(openingRun(all, { run: 'first', state: 'finished' })).toBe('small');
  expect(openingRun([run('stories', 'recorded'), run('one', 'live'), run('two', 'live')], null)).toBe('two');
  expect(openingRun([run('stories', 'recorded'), run('one', 'live'), run('two', 'live', [0])], null)).toBe('one');
  expect(openingRun([run('stories', 'recorded'), run('one', 'live', [0])], null)).toBe('stories');
  expect(openingRun([run('stories', 'recorded'), damaged], null)).toBe('stories');
  expect(openingRun([damaged], null)).toBe('damaged');
  expect(openingRun([], null)).toBeUndefined();
});
