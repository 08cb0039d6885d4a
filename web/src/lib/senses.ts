// One word in many sentences: names of depths, the picture's scale, and what the numbers say.

import type { SenseDepth, WordSenses } from './types';

/** Whether a text has the word, whole. */
export const hasWord = (text: string, word: string): boolean => (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).some((one) => one === word.toLowerCase());

/** A sentence before, at and after the last time that it has the word. */
export function aroundWord(text: string, word: string): [string, string, string] {
  const found = [...text.matchAll(new RegExp(`(?<![\\p{L}\\p{N}])${word}(?![\\p{L}\\p{N}])`, 'giu'))].at(-1);
  if (!found) return [text, '', ''];
  const end = found.index + found[0].length;
  return [text.slice(0, found.index), found[0], text.slice(end)];
}

/** The depths to show. The server gives the embedding, the stream before block 0, and the stream after each block; where no position is added, the second is the same as the first and is left out. */
export function depthsShown(count: number, addsPositions: boolean): { index: number; name: string; tick: string }[] {
  return Array.from({ length: count }, (_, index) => {
    if (index === 0) return { index, name: 'the embedding', tick: 'word' };
    if (index === 1) return { index, name: 'with its position', tick: '+ place' };
    return { index, name: `after block ${index - 2}`, tick: String(index - 2) };
  }).filter(({ index }) => index !== 1 || addsPositions);
}

/** The largest coordinate on each axis, over all sentences and all depths. All depths are drawn to this one scale, so that the dots are seen to move apart. */
export function extentOf({ depths }: Pick<WordSenses, 'depths'>): [number, number] {
  const largest = (axis: 0 | 1) => Math.max(1e-9, ...depths.flatMap(({ dots }) => dots.map((dot) => Math.abs(dot[axis]))));
  return [largest(0), largest(1)];
}

/** What the cosines at one depth say, against the shuffled senses. */
export function verdict({ identical, apart }: SenseDepth): 'identical' | 'apart' | 'mixed' {
  return identical ? 'identical' : apart ? 'apart' : 'mixed';
}
