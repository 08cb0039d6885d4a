// One head's picture out of all heads' (L, H, s, s), and the weight that its darkest colour stands for.

import { extentOf } from '../../lib/colour';
import type { NumberArray } from '../../lib/types';

export function thumbnailOf({ shape, data }: NumberArray, layer: number, head: number): Float32Array {
  const [, heads, rows, columns] = shape;
  const begin = (layer * heads + head) * rows * columns;
  return data.subarray(begin, begin + rows * columns);
}

/** Nearly all weights stay below; the first row, always one, does not make the rest pale. */
export function darkestOf(pattern: ArrayLike<number>): number {
  const seen = Array.from(pattern).filter((weight) => weight > 0);
  return seen.length < 4 ? 1 : Math.min(1, extentOf(seen));
}
