import { expect, it } from 'vitest';
import { isStarter } from './starter';

it('knows the model of the microworld, whatever it is called', () => {
  expect(isStarter({ embedded: 'starter' })).toBe(true);
  expect(isStarter({ embedded: 'english' })).toBe(false);
  expect(isStarter({ embedded: null })).toBe(false);
});
