// Matrices of the last tokens of the prompt, small enough to be shown whole.

import { current } from '../../lib/state.svelte';
import { api } from '../../lib/api';
import type { NumberArray } from '../../lib/types';

export const mostWords = 24;

export function lastWords(): { from: number; to: number } {
  const count = current.meta?.tokens.length ?? 0;
  return { from: Math.max(0, count - mostWords), to: count };
}

/** (1, T, …): a point at the last tokens. */
export function ofLastWords(point: string): Promise<NumberArray> {
  const { from, to } = lastWords();
  return current.keep(`last ${point}`, (id) => api.array(id, point, { positions: `${from}-${to - 1}` }));
}

/** One head of (1, T, H, D) as (T, D). */
export function headOf({ shape, data }: NumberArray, head: number): NumberArray {
  const [, rows, heads, size] = shape;
  const picked = new Float32Array(rows * size);
  for (let row = 0; row < rows; ++row) {
    const start = (row * heads + head) * size;
    picked.set(data.subarray(start, start + size), row * size);
  }
  return { shape: [rows, size], data: picked };
}

export function transposed({ shape: [rows, columns], data }: NumberArray): NumberArray {
  return { shape: [columns, rows], data: Float32Array.from({ length: data.length }, (_, index) => data[(index % rows) * columns + Math.floor(index / rows)]) };
}
