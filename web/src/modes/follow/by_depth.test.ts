import { describe, expect, it } from 'vitest';
import { cosine, depthsOf, idsInLink, othersOf } from './by_depth';

describe('words by depth', () => {
  it('are cosines, whatever the lengths', () => {
    expect(cosine([3, 0], [0.5, 0])).toBe(1);
    expect(cosine([1, 1], [1, 0])).toBeCloseTo(Math.SQRT1_2, 12);
    expect(cosine([0, 0], [1, 0])).toBe(0);
  });

  it('stand beside the mean and the largest of other words', () => {
    const { words, mean, largest } = depthsOf([[1, 0], [0, 2]], [[1, 0]], [[0, 1], [-1, 0]]);
    expect(words).toEqual([[1, 0]]);
    expect(mean).toEqual([-0.5, 0.5]);
    expect(largest).toEqual([0, 1]);
  });

  it('takes the others from the whole vocabulary, without the chosen', () => {
    expect(othersOf(100, 4, [])).toEqual([12, 37, 62, 87]);
    expect(othersOf(100, 4, [37, 5])).toEqual([12, 62, 87]);
    expect(othersOf(2, 32, [])).toEqual([0, 1]);
  });

  it('are kept in the link', () => {
    expect(idsInLink('7,3,7,99999,x', 100, 4)).toEqual([7, 3]);
    expect(idsInLink(undefined, 100, 4)).toEqual([]);
    expect(idsInLink('1,2,3,4,5', 100, 4)).toEqual([1, 2, 3, 4]);
  });
});
