// How the work of attention grows with the text, and what of it waits for what.

import { keptPairs } from '../../lib/architecture';

export interface Work {
  positions: number;
  /** Dot products of a query and a key in one head: those that the mask keeps. */
  pairs: number;
  /** In all heads of all blocks. */
  products: number;
  /** Steps that wait for each other: a recurrent network reads position by position, a transformer block by block. */
  recurrent: number;
  blocks: number;
}

export function workOf(positions: number, { layers, heads, windows }: { layers: number; heads: number; windows: number[] }): Work {
  const pairsOf = (layer: number) => keptPairs(positions, windows[layer] ?? 0);
  const products = Array.from({ length: layers }, (_, layer) => heads * pairsOf(layer)).reduce((sum, one) => sum + one, 0);
  return { positions, pairs: pairsOf(0), products, recurrent: positions, blocks: layers };
}

/** The text's own length, then doubled up to the longest one and beyond: 1,000 and 100,000 words are what other models read. */
export function lengthsOf(positions: number, context: number): number[] {
  const lengths = [positions, 2 * positions, context, 2 * context, 100_000];
  return [...new Set(lengths)].sort((a, b) => a - b);
}
