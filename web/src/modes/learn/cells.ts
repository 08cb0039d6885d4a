// The computation of scores and attention weights; rows and columns count from the first token shown.

import { firstSeen, isMasked, windowOf } from '../../lib/architecture';
import { tokenText } from '../../lib/numbers';
import { current, page } from '../../lib/state.svelte';
import type { Explained } from '../../lib/tip.svelte';
import * as elements from '../follow/elements';

type Cell = (row: number, column: number) => Explained | null;
const word = (position: number): string => tokenText(current.meta!.tokens[position]?.text ?? '');

/** Whether the mask of the block hides a key; both count from the same token. */
const hides = (row: number, column: number) => isMasked(row, column, windowOf(page.architecture, page.view.layer));

export const scoreCell = (from: number): Cell => (row, column) =>
  hides(row, column) ? null : { title: `Score of ${word(from + row)} for ${word(from + column)}`, element: elements.pair(page.view.layer, page.view.head, 'attn_scores', from + row, from + column) };

/** Weights are computed from the scores shown; tokens before the first one shown are the rest. */
export const shareCell = (from: number, count: number, scores: Float32Array, shares: Float32Array): Cell => (row, column) => {
  if (hides(row, column)) return null;
  const window = windowOf(page.architecture, page.view.layer);
  const first = firstSeen(row, window);
  const [begin, end] = [row * count + first, row * count + row + 1];
  const words = Array.from({ length: row + 1 - first }, (_, key) => word(from + first + key));
  const seen = from + row + 1 - firstSeen(from + row, window);
  return {
    title: `Attention of ${word(from + row)} to ${word(from + column)}`,
    derive: () => elements.shareInRow(words, scores.subarray(begin, end), shares.subarray(begin, end), column - first, seen),
  };
};
