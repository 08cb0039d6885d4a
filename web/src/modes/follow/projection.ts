// A head's projection x · W + b: the matrix, put together from the server's derivations of the result's numbers.

import type { Derivation } from '../../lib/types';

export type Role = 'q' | 'k' | 'v';

/** W (C, D) in row-major order and b (D). */
export interface Weights {
  channels: number;
  size: number;
  matrix: Float32Array;
  bias: Float32Array;
}

export interface Term {
  index: number;
  value: number;
}

/** The index in a term's label, such as "channel 185". */
function indexOf(label: string): number {
  return Number(/(\d+)$/.exec(label)?.[1] ?? NaN);
}

/** The row x: the left factors of any of the result's derivations. */
export function inputOf({ terms }: Derivation): Float32Array {
  const row = new Float32Array(terms.length);
  for (const { label, left } of terms) row[indexOf(label)] = left ?? 0;
  return row;
}

/** Column j of W has the right factors of the derivation of result j. */
export function weightsOf(derivations: Derivation[]): Weights {
  const [channels, size] = [derivations[0]?.terms.length ?? 0, derivations.length];
  const matrix = new Float32Array(channels * size);
  derivations.forEach(({ terms }, column) => {
    for (const { label, right } of terms) matrix[indexOf(label) * size + column] = right ?? 0;
  });
  return { channels, size, matrix, bias: Float32Array.from(derivations, ({ bias }) => bias ?? 0) };
}

/** x_c · W[c, j] of all channels c. */
export function productsOf(input: ArrayLike<number>, { matrix, size }: Weights, column: number): Float32Array {
  return Float32Array.from({ length: input.length }, (_, channel) => input[channel] * matrix[channel * size + column]);
}

/** The numbers of the largest magnitude, and the sum of all others. */
export function largest(numbers: ArrayLike<number>, most: number): { terms: Term[]; rest: number } {
  const all = Array.from(numbers, (value, index) => ({ index, value })).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  return { terms: all.slice(0, most), rest: all.slice(most).reduce((sum, { value }) => sum + value, 0) };
}
