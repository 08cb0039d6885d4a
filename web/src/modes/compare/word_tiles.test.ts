import { expect, it } from 'vitest';
import { tileOf } from './word_tiles';

const causal = (count: number) => ({ shape: [count, count], data: Float32Array.from({ length: count * count }, (_, index) => (index % count <= Math.floor(index / count) ? index + 1 : 0)) });

it('a tile of level 0 is a part of the pattern', () => {
  const pattern = causal(300);
  expect([...tileOf(causal(2), 0, 0, 0, 'max').data]).toEqual([1, 0, 3, 4]);
  const { shape, data } = tileOf(pattern, 0, 1, 0, 'max');
  expect(shape).toEqual([44, 256]);
  expect(data[43 * 256 + 7]).toBe(pattern.data[299 * 300 + 7]);
});

it('a coarser level has the largest or the mean weight that is not masked', () => {
  const pattern = { shape: [3, 3], data: Float32Array.from([1, 0, 0, 0.25, 0.75, 0, 0.5, 0.125, 0.375]) };
  expect([...tileOf(pattern, 1, 0, 0, 'max').data]).toEqual([1, 0, 0.5, 0.375]);
  const { shape, data } = tileOf(pattern, 1, 0, 0, 'mean');
  expect(shape).toEqual([2, 2]);
  expect(data[0]).toBeCloseTo(2 / 3, 6);
  expect([data[1], data[2], data[3]]).toEqual([0, 0.3125, 0.375]);
});
