import { describe, expect, it } from 'vitest';
import type { HeadStatistics } from './types';
import { percent } from './numbers';
import { capitalised, endsSentence, habitText, headInWords, headParts, parseHead, sortHeads } from './statistics';

const head = (layer: number, index: number, some: Partial<HeadStatistics>): HeadStatistics => ({
  layer, head: index, entropy: 1, evenness: 0.5, distance: 4, first: 0.1, self: 0.1, previous: 0.1,
  duplicate: 0, induction: 0, content_weight: 0.1, habit: { name: 'back', strength: 4 }, ...some,
});

describe('sortHeads', () => {
  const heads = [head(1, 0, { previous: 0.2 }), head(0, 1, { previous: 0.9 }), head(0, 0, { previous: 0.2 })];
  const places = (sorted: HeadStatistics[]) => sorted.map(({ layer, head }) => `${layer}${head}`);

  it('puts the largest first, equals by place', () => expect(places(sortHeads(heads, 'previous'))).toEqual(['01', '00', '10']));
  it('sorts by place without touching its argument', () => {
    expect(places(sortHeads(heads, 'place'))).toEqual(['00', '01', '10']);
    expect(places(heads)).toEqual(['10', '01', '00']);
  });
});

it('sorts a head without the number last', () => {
  const heads = [{ layer: 0, head: 0, previous: null }, { layer: 0, head: 1, previous: 0.1 }, { layer: 1, head: 0, previous: 0.3 }];
  expect(sortHeads(heads, 'previous').map(({ layer, head }) => `${layer}${head}`)).toEqual(['10', '01', '00']);
});

it('says what characterises a head', () => {
  expect(habitText({ name: 'previous', strength: 0.62 })).toBe(`previous token ${percent(0.62)}`);
  expect(habitText({ name: 'even', strength: 0.97 })).toBe(`spread ${percent(0.97)}`);
  expect(habitText({ name: 'back', strength: 12 })).toMatch(/^12.* tokens back$/);
  expect(habitText({ name: 'peak', strength: 0.4 })).toBe(`largest ${percent(0.4)}`);
});

it('parses names of heads', () => {
  expect(parseHead('L10H3')).toEqual([10, 3]);
  expect(parseHead('L1')).toBeNull();
});

it('finds the heads that a sentence names', () => {
  expect(headParts('L4H1 attends from “hare”. Without L10H11 and L0H4, …')).toEqual([[4, 1], ' attends from “hare”. Without ', [10, 11], ' and ', [0, 4], ', …']);
  expect(headParts('AL4H1 L4H1b')).toEqual(['AL4H1 L4H1b']);
});

it('names a head of a sentence in words, with a capital where it begins', () => {
  expect(headInWords(4, 1)).toBe('block 4, head 1');
  expect(capitalised(headInWords(10, 0))).toBe('Block 10, head 0');
  expect(headParts('While it writes, head L1H0 of cross-attention')).toEqual(['While it writes, ', [1, 0], ' of cross-attention']);
  expect(['', 'It ends. ', 'He said “so.” ', 'Why? '].map(endsSentence)).toEqual([true, true, true, true]);
  expect([' attends, ', 'Without ', 'so it is: ', '2.5'].map(endsSentence)).toEqual([false, false, false, false]);
});
