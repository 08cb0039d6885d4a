// What one head's addition does directly to the logits of all words: direct logit attribution, over the whole vocabulary.
//
// The server runs the last norm and the unembedding on the addition alone: a trace whose last residual stream is set to zero, with
// the addition added. The norm divides by the standard deviation of what it is given; scaled back to that of the real stream, and less
// what an empty stream gives (the biases), the logits are linear in the addition.

import type { Derivation } from '../../lib/types';

/** Logits of the whole vocabulary, and the standard deviation that the last norm divided by. */
export interface Reading {
  logits: Float32Array;
  spread: number;
}

export interface DirectEffect {
  alone: Reading;
  empty: Reading;
  /** The standard deviation of the alone stream over that of the real one. */
  ratio: number;
  effect: Float32Array;
}

export function directEffect(alone: Reading, empty: Reading, realSpread: number): DirectEffect {
  const ratio = alone.spread / realSpread;
  return { alone, empty, ratio, effect: alone.logits.map((logit, word) => (logit - empty.logits[word]) * ratio) };
}

/** The indices of the largest numbers and of the smallest, the most extreme first. */
export function extremes(numbers: ArrayLike<number>, most: number): { most: number[]; least: number[] } {
  const order = Array.from(numbers, (_, index) => index).sort((a, b) => numbers[b] - numbers[a]);
  return { most: order.slice(0, most), least: order.slice(-most).reverse() };
}

export function effectDerivation({ alone, empty, ratio, effect }: DirectEffect, word: number): Derivation {
  const term = (label: string, left: number) => ({ label, left, right: ratio, value: left * ratio });
  return {
    name: 'direct effect', value: effect[word], formula: '(logit of the addition alone − logit of nothing) · σ_alone / σ', latex: '(\\ell_{\\text{alone}}-\\ell_{\\text{nothing}})\\,\\frac{\\sigma_{\\text{alone}}}{\\sigma}', operation: 'sum',
    terms: [term('addition alone', alone.logits[word]), term('nothing (biases)', -empty.logits[word])], count: 2, rest: 0, bias: null,
  };
}
