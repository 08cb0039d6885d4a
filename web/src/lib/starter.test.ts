import { expect, it } from 'vitest';
import { isStarter } from './starter';

it('knows the built-in model by its examples', () => {
  const example = { id: 'a', title: 'A', text: 'a hare' };
  expect(isStarter({ examples: [{ ...example, layer: 0, head: 3 }] })).toBe(true);
  expect(isStarter({ examples: [example] })).toBe(false);
  expect(isStarter({ examples: [] })).toBe(false);
});
