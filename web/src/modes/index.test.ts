import { expect, it } from 'vitest';
import { modeOf, modes, offeredModes, tabsOf } from './index';

it('shows a translator only in modes that need no trace of one text', () => {
  expect(offeredModes(false)).toEqual(modes);
  const offered = offeredModes(true).map(({ id }) => id);
  expect(offered[0]).toBe('translate');
  for (const id of ['follow', 'whole-model', 'compare', 'change', 'generate', 'watch-it-learn']) expect(offered).not.toContain(id);
});

it('opens a link’s mode, or the first one that the model has', () => {
  expect(modeOf('count').id).toBe('count');
  expect(modeOf('nowhere').id).toBe('learn');
  expect(modes[0].id).toBe('learn');
  expect(modeOf('translate').id).toBe('translate');
  expect(modeOf('follow', true).id).toBe('translate');
});

it('hides the other modes in a lesson', () => {
  const idsOf = (shown: string, isLesson: boolean) => tabsOf(shown, { isTranslator: false, isLesson }).map(({ id }) => id);
  expect(idsOf('learn', true)).toEqual(['learn']);
  expect(idsOf('count', true)).toEqual(['learn', 'count']);
  expect(idsOf('learn', false)).toEqual(modes.map(({ id }) => id));
});
