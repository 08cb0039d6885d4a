// Where the numbers of a head's square matrices come from; row and column count from the first word shown.

import { tokenText } from '../../lib/numbers';
import { current, page } from '../../lib/state.svelte';
import type { Explained } from '../../lib/tip.svelte';
import * as places from '../follow/places';

type Cell = (row: number, column: number) => Explained | null;
const word = (position: number): string => tokenText(current.meta!.tokens[position]?.text ?? '');

export const scoreCell = (from: number): Cell => (row, column) =>
  column > row ? null : { title: `Score of ${word(from + row)} for ${word(from + column)}`, place: places.pair(page.view.layer, page.view.head, 'attn_scores', from + row, from + column) };

/** Shares are told by the scores beside them; what the head sees before the first word shown is the rest. */
export const shareCell = (from: number, count: number, scores: Float32Array, shares: Float32Array): Cell => (row, column) => {
  if (column > row) return null;
  const [begin, end] = [row * count, row * count + row + 1];
  const words = Array.from({ length: row + 1 }, (_, key) => word(from + key));
  return {
    title: `Share of ${word(from + row)} for ${word(from + column)}`,
    derive: () => places.shareInRow(words, scores.subarray(begin, end), shares.subarray(begin, end), column, from + row + 1),
  };
};
