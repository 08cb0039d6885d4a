// The edge that is shown for a word: as changes that cut it, and as an arc.

import type { ShownEdge, Word } from '../../lib/types';
import { formatChanges } from '../change/change_link';

type Edge = Pick<ShownEdge, 'layer' | 'head' | 'query' | 'key'>;

/** The extras of a link to Change in which all tokens of the word are cut, as it was measured. */
export function cutOf({ layer, head, query, key }: Edge): { changes: string; cuts: string } {
  const keys = Array.from({ length: key.end - key.begin }, (_, index) => key.begin + index);
  return { changes: formatChanges(keys.map((key) => ({ kind: 'cut', layer, head, query, key }))), cuts: 'renormalise' };
}

/** Whether the arc to a token, or to a word where these are shown, is that to the tokens of `key`. */
export function isArcOf(key: { begin: number; end: number } | null, index: number, words: Word[] | null): boolean {
  if (!key) return false;
  const { begin, end } = words ? words[index] : { begin: index, end: index + 1 };
  return begin < key.end && end > key.begin;
}
