// A run's metrics as curves, samples and a table.

import type { HeadStatistics, MetricsRow } from '../../lib/types';
import type { Table } from '../../lib/export';

export interface Curves {
  steps: number[];
  loss: (number | null)[];
  smooth: (number | null)[];
  validation: (number | null)[];
  learningRate: (number | null)[];
  gradientNorm: (number | null)[];
}

export interface Sample {
  step: number;
  text: string;
}

const numberOf = (row: MetricsRow, name: string): number | null => (typeof row[name] === 'number' ? (row[name] as number) : null);

/** One entry a step, in order; a step's training and validation rows are joined. */
export function curvesOf(rows: MetricsRow[], smoothing = 0.95): Curves {
  const bySteps = new Map<number, { loss: number | null; validation: number | null; learningRate: number | null; gradientNorm: number | null }>();
  for (const row of rows) {
    const step = numberOf(row, 'step');
    if (step === null) continue;
    const entry = bySteps.get(step) ?? { loss: null, validation: null, learningRate: null, gradientNorm: null };
    entry.loss = numberOf(row, 'loss') ?? entry.loss;
    entry.validation = numberOf(row, 'val_loss') ?? entry.validation;
    entry.learningRate = numberOf(row, 'learning_rate') ?? entry.learningRate;
    entry.gradientNorm = numberOf(row, 'gradient_norm') ?? entry.gradientNorm;
    bySteps.set(step, entry);
  }
  const steps = [...bySteps.keys()].sort((a, b) => a - b);
  const entries = steps.map((step) => bySteps.get(step)!);
  const loss = entries.map((entry) => entry.loss);
  return {
    steps,
    loss,
    smooth: smoothed(loss, smoothing),
    validation: entries.map((entry) => entry.validation),
    learningRate: entries.map((entry) => entry.learningRate),
    gradientNorm: entries.map((entry) => entry.gradientNorm),
  };
}

/** A running mean that forgets with `keep` a value, free of the pull of its start. */
export function smoothed(values: (number | null)[], keep: number): (number | null)[] {
  let sum = 0;
  let weight = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = keep * sum + (1 - keep) * value;
    weight = keep * weight + (1 - keep);
    return sum / weight;
  });
}

/** One a step: a run that was resumed tells some again. */
export function samplesOf(rows: MetricsRow[]): Sample[] {
  const samples = new Map<number, string>();
  for (const { step, sample } of rows) if (typeof step === 'number' && typeof sample === 'string') samples.set(step, sample);
  return [...samples].sort(([a], [b]) => a - b).map(([step, text]) => ({ step, text }));
}

export function curvesTable(curves: Curves): Table {
  return {
    columns: ['step', 'loss', 'smoothed_loss', 'validation_loss', 'learning_rate', 'gradient_norm'],
    rows: curves.steps.map((step, index) => [
      step, curves.loss[index], curves.smooth[index], curves.validation[index], curves.learningRate[index], curves.gradientNorm[index],
    ]),
  };
}

/** The checkpoint at or before a step, or the first. */
export function checkpointAt(checkpoints: number[], step: number): number {
  return [...checkpoints].sort((a, b) => a - b).filter((checkpoint) => checkpoint <= step).at(-1) ?? Math.min(...checkpoints);
}

/** One statistic of every head over the checkpoints: a line a head, in the order of the last values. */
export function headLines(byStep: { step: number; heads: HeadStatistics[] }[], key: keyof HeadStatistics): { layer: number; head: number; values: number[] }[] {
  const last = byStep.at(-1);
  if (!last) return [];
  return last.heads
    .map(({ layer, head }) => ({
      layer,
      head,
      values: byStep.map(({ heads }) => heads.find((other) => other.layer === layer && other.head === head)?.[key] ?? NaN),
    }))
    .sort((a, b) => b.values.at(-1)! - a.values.at(-1)!);
}
