// The length of a vector, such as what a head adds to the residual stream.

import type { Derivation } from '../../lib/types';

export function lengthOf(vector: ArrayLike<number>): number {
  return Math.sqrt(Array.from(vector).reduce((sum, number) => sum + number * number, 0));
}

/** A length as the root of the sum of squares; the popover lists the squares and their sum. */
export function lengthDerivation(vector: ArrayLike<number>): Derivation {
  const terms = Array.from(vector, (number, index) => ({ label: `channel ${index}`, left: number, right: number, value: number * number })).sort((a, b) => b.value - a.value);
  const sum = terms.reduce((total, { value }) => total + value, 0);
  return { name: 'length²', value: sum, formula: 'length² = Σ_c r_c²', latex: '\\lVert r\\rVert^2=\\sum_c r_c^2', operation: 'sum', terms, count: terms.length, rest: 0, bias: null };
}
