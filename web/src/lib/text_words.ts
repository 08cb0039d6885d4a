// The words of a text as the unit of attention: a partition of its positions.

import type { Word } from './types';

/** Whether words differ from tokens. */
export const hasLongWord = (words: Word[]): boolean => words.some(({ begin, end }) => end - begin > 1);

/** The index of the word with the token at `position`. */
export function wordIndexAt(words: Word[], position: number): number {
  let [low, high] = [0, words.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (words[middle].begin <= position) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

/** The position that has read the whole word. */
export const lastToken = ({ end }: Word): number => end - 1;
