import { expect, it } from 'vitest';
import { modeOf, modes, offeredModes } from './index';

it('shows a translator only in modes that need no trace of one text', () => {
  expect(offeredModes(false)).toEqual(modes);
  const offered = offeredModes(true).map(({ id }) => id);
  expect(offered[0]).toBe('translate');
  for (const id of ['follow', 'whole-model', 'compare', 'change', 'generate', 'watch-it-learn']) expect(offered).not.toContain(id);
});

it('opens a link’s mode, or the first one that the model has', () => {
  expect(modeOf('count').id).toBe('count');
  expect(modeOf('nowhere').id).toBe('follow');
  expect(modeOf('translate').id).toBe('translate');
  expect(modeOf('follow', true).id).toBe('translate');
});
