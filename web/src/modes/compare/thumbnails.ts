// One head of all thumbnails (L, H, s, s), and the weight that gets the full colour.

import type { NumberArray } from '../../lib/types';

export function thumbnailOf({ shape, data }: NumberArray, layer: number, head: number): Float32Array {
  const [, heads, rows, columns] = shape;
  const begin = (layer * heads + head) * rows * columns;
  return data.subarray(begin, begin + rows * columns);
}

/** The mean of a block's heads. */
export function meanPattern(pictures: NumberArray, layer: number): Float32Array {
  const [, heads, rows, columns] = pictures.shape;
  const mean = new Float32Array(rows * columns);
  for (let head = 0; head < heads; head++) thumbnailOf(pictures, layer, head).forEach((weight, cell) => (mean[cell] += weight / heads));
  return mean;
}

/** The 94th percentile: the first rows, whose few keys have large weights, do not make the rest pale. */
export function darkestOf(pattern: ArrayLike<number>): number {
  const seen = Array.from(pattern).filter((weight) => weight > 0).sort((a, b) => a - b);
  return seen.length < 4 ? 1 : Math.min(1, seen[Math.floor(0.94 * (seen.length - 1))]);
}
