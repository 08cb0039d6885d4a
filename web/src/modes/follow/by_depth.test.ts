import { describe, expect, it } from 'vitest';
import { idsInLink } from './by_depth';

describe('words by depth', () => {
  it('are kept in the link', () => {
    expect(idsInLink('7,3,7,99999,x', 100, 4)).toEqual([7, 3]);
    expect(idsInLink(undefined, 100, 4)).toEqual([]);
    expect(idsInLink('1,2,3,4,5', 100, 4)).toEqual([1, 2, 3, 4]);
  });
});
