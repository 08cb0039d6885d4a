// The generated tokens as a link holds them, and what follows from them.

import type { Candidate, Token } from '../../lib/types';

export interface Step {
  token: Token;
  /** The candidates at this step; null for a step that was restored from a link. */
  candidates: Candidate[] | null;
  probability: number | null;
  drawn: number | null;
}

export const formatIds = (steps: Step[]): string => steps.map((step) => step.token.id).join('.');

export function parseIds(text: string): number[] {
  return /^\d+(\.\d+)*$/.test(text) ? text.split('.').map(Number) : [];
}

/** Each step has a seed of its own, so that stepping and running generate the same text. */
export const seedOfStep = (seed: number, step: number): number => (seed + step * 0x9e3779b1) % 2 ** 32;

/**
 * The query position of step `step`: the token before it. Attention is causal, so the trace of the whole text
 * holds the attention of every step as it was when the token was drawn.
 */
export const positionOfStep = (promptTokens: number, step: number): number => promptTokens + step - 1;

/** Mean surprise of the generated tokens, in nats. */
export function meanSurprise(steps: Step[]): number | null {
  const known = steps.flatMap((step) => (step.probability === null ? [] : [-Math.log(step.probability)]));
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}
