import { describe, expect, it } from 'vitest';
import { parseChanges } from '../change/change_link';
import { cutOf, isArcOf } from './edge';

const edge = { layer: 4, head: 1, query: 9, key: { begin: 2, end: 4, text: ' moleskin' } };

describe('the edge that is shown', () => {
  it('is cut to all tokens of its word, and the row renormalised', () => {
    const { changes, cuts } = cutOf(edge);
    expect(cuts).toBe('renormalise');
    expect(parseChanges(changes)).toEqual([2, 3].map((key) => ({ kind: 'cut', layer: 4, head: 1, query: 9, key })));
  });

  it('is the arc to its tokens, or to its word', () => {
    expect([0, 1, 2, 3, 4].filter((index) => isArcOf(edge.key, index, null))).toEqual([2, 3]);
    const words = [{ text: 'A', begin: 0, end: 2 }, { text: 'moleskin', begin: 2, end: 4 }, { text: 'bag', begin: 4, end: 5 }];
    expect([0, 1, 2].filter((index) => isArcOf(edge.key, index, words))).toEqual([1]);
    expect(isArcOf(null, 2, null)).toBe(false);
  });
});
