// Scores and softmax of one head from its queries and keys, with or without the mask and the division by √D.

import { isMasked } from '../../lib/architecture';
import { tokenText, value } from '../../lib/numbers';
import type { Derivation, Walk } from '../../lib/types';

/** One head's queries and keys as attention reads them, (T, D) each. */
export interface QueriesAndKeys {
  positions: number;
  size: number;
  /** Positions that a query attends to, its own included; 0: all before it. */
  window: number;
  q: Float32Array;
  k: Float32Array;
}

export function product({ q, k, size }: QueriesAndKeys, query: number, key: number): number {
  let sum = 0;
  for (let j = 0; j < size; ++j) sum += q[query * size + j] * k[key * size + j];
  return sum;
}

/** q·k / divisor of one query and every key. */
export function scoreRow(head: QueriesAndKeys, query: number, divisor = Math.sqrt(head.size)): number[] {
  return Array.from({ length: head.positions }, (_, key) => product(head, query, key) / divisor);
}

/** Later keys, and those before the window, are −∞. */
export function masked(scores: number[], query: number, window = 0): number[] {
  return scores.map((score, key) => (isMasked(query, key, window) ? -Infinity : score));
}

/** What the head divides its dot products by, read off its largest score: "÷ √64", or a number where that is not √D. */
export function scoreDivisor({ answers, head_size }: Pick<Walk, 'answers' | 'head_size'>): string {
  const largest = answers.reduce((most, answer) => (Math.abs(answer.product) > Math.abs(most.product) ? answer : most), answers[0]);
  const divisor = largest && largest.scaled !== 0 ? largest.product / largest.scaled : Math.sqrt(head_size);
  // Both are f64 of the server: equal to a few units in the last place, unless the model's scale is another.
  return Math.abs(divisor / Math.sqrt(head_size) - 1) < 1e-6 ? `÷ √${head_size}` : `÷ ${value(divisor, 2)}`;
}

export function softmax(scores: number[]): number[] {
  const most = scores.reduce((high, score) => Math.max(high, score), -Infinity);
  const powers = scores.map((score) => Math.exp(score - most));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** The position whose query would give most of its attention to later words without the mask, of those in [from, to). */
export function mostAhead(head: QueriesAndKeys, from: number, to: number): number {
  const ahead = (query: number) => softmax(scoreRow(head, query)).slice(query + 1).reduce((sum, share) => sum + share, 0);
  return Array.from({ length: to - from }, (_, index) => from + index).reduce((best, query) => (ahead(query) > ahead(best) ? query : best), from);
}

/** How much larger the largest weight of a query is where its dot products are not divided by √D. */
export function sharpening(head: QueriesAndKeys, query: number): number {
  const largest = (divisor: number) => Math.max(...softmax(masked(scoreRow(head, query, divisor), query, head.window)));
  return largest(1) - largest(Math.sqrt(head.size));
}

/** The query at which the division matters most, of the first `most`. */
export function sharpest(head: QueriesAndKeys, most: number): { position: number; gain: number } {
  return Array.from({ length: Math.min(most, head.positions) }, (_, position) => ({ position, gain: sharpening(head, position) })).reduce((best, one) => (one.gain > best.gain ? one : best));
}

/** In nats: 0 where one has all, log n where n are equal. */
export function entropy(shares: number[]): number {
  return shares.reduce((sum, share) => (share > 0 ? sum - share * Math.log(share) : sum), 0);
}

/** At most `most` positions around `position`: those before it take what those after it leave free. */
export function windowAround(position: number, positions: number, most: number): { from: number; to: number } {
  const from = Math.max(0, Math.min(position - Math.floor(most / 2), positions - most));
  return { from, to: Math.min(positions, from + most) };
}

/** q·k / √D, term by term. */
export function scoreDerivation(head: QueriesAndKeys, query: number, key: number): Derivation {
  const root = Math.sqrt(head.size);
  const terms = Array.from({ length: head.size }, (_, j) => {
    const [left, right] = [head.q[query * head.size + j], head.k[key * head.size + j] / root];
    return { label: `dimension ${j}`, left, right, value: left * right };
  }).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  return { name: 'score', value: product(head, query, key) / root, formula: 'Σ_j q_j · (k_j / √D)', latex: 's=\\sum_j q_j\\,\\frac{k_j}{\\sqrt D}', operation: 'sum', terms, count: terms.length, rest: 0, bias: null };
}

/** The softmax of a whole row at one key. */
export function shareDerivation(words: string[], scores: number[], shares: number[], key: number): Derivation {
  const seen = scores.map((_, at) => at).filter((at) => at !== key && Number.isFinite(scores[at])).sort((a, b) => shares[b] - shares[a]);
  const terms = [key, ...seen].map((at) => ({ label: tokenText(words[at]), left: scores[at], right: null, value: shares[at] }));
  return { name: 'share', value: shares[key], formula: 'a = exp(s) / Σ exp(s)', latex: 'a=\\frac{e^{s}}{\\sum_k e^{s_k}}', operation: 'softmax', terms, count: terms.length, rest: 0, bias: null };
}
