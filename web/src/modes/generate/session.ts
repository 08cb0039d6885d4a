// What was generated so far, as the link keeps it: the drawn ids and which of them is looked at.

import type { Candidate, Token } from '../../lib/types';

export interface Step {
  token: Token;
  /** What the token was drawn from; null for steps that a link brought, until they are asked for. */
  candidates: Candidate[] | null;
  probability: number | null;
  drawn: number | null;
}

export const formatIds = (steps: Step[]): string => steps.map((step) => step.token.id).join('.');

export function parseIds(text: string): number[] {
  return /^\d+(\.\d+)*$/.test(text) ? text.split('.').map(Number) : [];
}

/** Each step draws with a seed of its own, so that stepping and running tell the same story. */
export const seedOfStep = (seed: number, step: number): number => (seed + step * 0x9e3779b1) % 2 ** 32;

/**
 * The position whose row of attention chose step `step`: the token before it. Attention looks back only,
 * so the trace of the whole text holds every step's attention as it was when it was drawn.
 */
export const positionOfStep = (promptTokens: number, step: number): number => promptTokens + step - 1;

/** Mean surprise of what was drawn, in nats a token. */
export function meanSurprise(steps: Step[]): number | null {
  const known = steps.flatMap((step) => (step.probability === null ? [] : [-Math.log(step.probability)]));
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}
