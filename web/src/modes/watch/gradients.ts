// The gradient norms of a model's parts over the evaluations of a run.

import type { MetricsRow } from '../../lib/types';

export interface GradientNorms {
  steps: number[];
  /** "embedding", the numbers of the blocks, "final". */
  parts: string[];
  /** One row a part, one column a step; NaN where a row lacks the part. */
  norms: number[];
}

const rank = (part: string) => (part === 'embedding' ? -1 : /^\d+$/.test(part) ? Number(part) : Infinity);

/** The latest row of each step, where a resumed run repeats some. */
export function gradientNormsOf(rows: MetricsRow[]): GradientNorms {
  const bySteps = new Map<number, Record<string, number>>();
  for (const { step, gradient_norms: norms } of rows) if (typeof step === 'number' && typeof norms === 'object' && norms !== null) bySteps.set(step, norms);
  const steps = [...bySteps.keys()].sort((a, b) => a - b);
  const parts = [...new Set([...bySteps.values()].flatMap(Object.keys))].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  return { steps, parts, norms: parts.flatMap((part) => steps.map((step) => bySteps.get(step)![part] ?? NaN)) };
}

export function partName(part: string): string {
  if (part === 'final') return 'last norm';
  return /^\d+$/.test(part) ? `block ${part}` : part;
}

/** Norms differ by orders of magnitude: 0 to 1 for the smallest to the largest, by their logarithms. */
export function shades(norms: number[]): number[] {
  const logs = norms.map((norm) => (norm > 0 ? Math.log(norm) : NaN));
  const known = logs.filter(Number.isFinite);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return logs.map((log) => (high > low ? (log - low) / (high - low) : Number.isFinite(log) ? 1 : NaN));
}
