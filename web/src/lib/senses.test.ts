import { describe, expect, it } from 'vitest';
import { aroundWord, depthsShown, extentOf, hasWord, verdict } from './senses';
import type { SenseDepth } from './types';

const depth = (changes: Partial<SenseDepth>): SenseDepth => ({ point: '', dots: [], explained: [], identical: false, same: 0, other: 0, shuffled_same: 0, shuffled_high: 0, p: 1, apart: false, ...changes });

describe('one word in many sentences', () => {
  it('finds whole words only', () => {
    expect(hasWord('One mole of salt', 'mole')).toBe(true);
    expect(hasWord('The Mole.', 'mole')).toBe(true);
    expect(hasWord('It counted molecules', 'mole')).toBe(false);
    expect(aroundWord('The mole saw a mole, not molecules', 'mole')).toEqual(['The mole saw a ', 'mole', ', not molecules']);
    expect(aroundWord('nothing', 'mole')).toEqual(['nothing', '', '']);
  });
  it('leaves out the stream before block 0 where no position is added', () => {
    expect(depthsShown(4, true).map(({ name }) => name)).toEqual(['the embedding', 'with its position', 'after block 0', 'after block 1']);
    expect(depthsShown(4, false).map(({ index }) => index)).toEqual([0, 2, 3]);
  });
  it('has one scale for all depths', () => {
    expect(extentOf({ depths: [depth({ dots: [[0, 0.1]] }), depth({ dots: [[-0.7, 0.2]] })] })).toEqual([0.7, 0.2]);
  });
  it('judges by the control', () => {
    expect(verdict(depth({ identical: true }))).toBe('identical');
    expect(verdict(depth({ apart: true }))).toBe('apart');
    expect(verdict(depth({ same: 0.5 }))).toBe('mixed');
  });
});
