import { expect, it } from 'vitest';
import { darkestOf, meanPattern, thumbnailOf } from './thumbnails';

it('selects one head', () => {
  const data = Float32Array.from({ length: 2 * 3 * 2 * 2 }, (_, index) => index);
  expect([...thumbnailOf({ shape: [2, 3, 2, 2], data }, 1, 1)]).toEqual([16, 17, 18, 19]);
});

it('has the mean of a block', () => {
  const data = Float32Array.from({ length: 2 * 2 * 2 * 1 }, (_, index) => index);
  expect([...meanPattern({ shape: [2, 2, 2, 1], data }, 1)]).toEqual([5, 6]);
});

it('ignores a few large weights', () => {
  expect(darkestOf([1, ...Array.from({ length: 99 }, () => 0.1), 0, 0])).toBeCloseTo(0.1);
  expect(darkestOf([1, 0, 0.5])).toBe(1);
});
