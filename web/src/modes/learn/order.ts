// What positions are for: the same words in two orders, with the position embeddings and without them.

import type { Token } from '../../lib/types';

/** The nearest two different tokens before a position that are words; null where there are none. */
export function swappable(tokens: Token[], position: number): [number, number] | null {
  const isWord = ({ text }: Token) => /\p{L}/u.test(text);
  for (let second = position - 1; second > 0; --second) {
    if (!isWord(tokens[second])) continue;
    for (let first = second - 1; first >= 0; --first) {
      if (isWord(tokens[first]) && tokens[first].id !== tokens[second].id) return [first, second];
    }
  }
  return null;
}

export function swapped<T>(list: T[], [first, second]: [number, number]): T[] {
  const other = [...list];
  [other[first], other[second]] = [other[second], other[first]];
  return other;
}
