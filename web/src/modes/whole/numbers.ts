// A matrix of the picture, filled as its numbers arrive.

import { extentOf } from '../../lib/colour';
import type { CellRange } from './detail';

export interface Numbers {
  rows: number;
  columns: number;
  data: Float32Array;
  kind: 'weight' | 'value';
  /** The number with the full colour. */
  extent: number;
  /** Changes with the data. */
  version: number;
  /** Areas that came since the image was drawn. */
  fresh: CellRange[];
  /** How many numbers there are so far. */
  filled: number;
}

/** A matrix with all its numbers. */
export function completeNumbers(rows: number, columns: number, data: Float32Array, kind: Numbers['kind']): Numbers {
  return { rows, columns, data, kind, extent: kind === 'weight' ? 1 : sampledExtent(data, columns), version: 0, fresh: [], filled: data.length };
}

const mostSampled = 4096;

/** The extent of up to some thousand numbers spread over a matrix. */
function sampledExtent(data: Float32Array, columns: number): number {
  if (data.length <= mostSampled) return extentOf(data);
  let step = Math.ceil(data.length / mostSampled);
  // Not always the same columns.
  while (columns > 1 && (columns % step === 0 || step % columns === 0)) step += 1;
  return extentOf(Array.from({ length: Math.floor(data.length / step) }, (_, index) => data[index * step]));
}

export function emptyNumbers(rows: number, columns: number): Numbers {
  return { rows, columns, data: new Float32Array(rows * columns).fill(NaN), kind: 'value', extent: 0, version: 0, fresh: [], filled: 0 };
}

/** Puts the rows of an area in their place. */
export function fill(numbers: Numbers, area: CellRange, data: Float32Array): void {
  const across = area.right - area.left;
  for (let row = area.top; row < area.bottom; ++row) numbers.data.set(data.subarray((row - area.top) * across, (row - area.top + 1) * across), row * numbers.columns + area.left);
  numbers.filled += data.length;
  numbers.version += 1;
  numbers.fresh.push(area);
  // The colours settle with the first areas.
  const settles = numbers.extent === 0 || numbers.filled === numbers.data.length || (numbers.version & (numbers.version - 1)) === 0;
  if (settles) numbers.extent = sampledExtent(numbers.data, numbers.columns);
}
