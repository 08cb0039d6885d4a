// The computation of scores and attention weights; rows and columns count from the first token shown.

import { tokenText } from '../../lib/numbers';
import { current, page } from '../../lib/state.svelte';
import type { Explained } from '../../lib/tip.svelte';
import * as elements from '../follow/elements';

type Cell = (row: number, column: number) => Explained | null;
const word = (position: number): string => tokenText(current.meta!.tokens[position]?.text ?? '');

export const scoreCell = (from: number): Cell => (row, column) =>
  column > row ? null : { title: `Score of ${word(from + row)} for ${word(from + column)}`, element: elements.pair(page.view.layer, page.view.head, 'attn_scores', from + row, from + column) };

/** Weights are computed from the scores shown; tokens before the first one shown are the rest. */
export const shareCell = (from: number, count: number, scores: Float32Array, shares: Float32Array): Cell => (row, column) => {
  if (column > row) return null;
  const [begin, end] = [row * count, row * count + row + 1];
  const words = Array.from({ length: row + 1 }, (_, key) => word(from + key));
  return {
    title: `Attention of ${word(from + row)} to ${word(from + column)}`,
    derive: () => elements.shareInRow(words, scores.subarray(begin, end), shares.subarray(begin, end), column, from + row + 1),
  };
};
