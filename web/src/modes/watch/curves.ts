// The metrics of a run as curves, samples and a table.

import type { HeadStatistics, MetricsRow } from '../../lib/types';
import { statisticNames, type StatisticKey } from '../../lib/statistics';
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

export type CurveName = 'loss' | 'learningRate' | 'gradientNorm';
export const curveTitles: Record<CurveName, string> = { loss: 'Loss, nats per token', learningRate: 'Learning rate', gradientNorm: 'Gradient norm' };
/** The line that no loss is below, on average. */
export const floorName = 'entropy of the text';

const numberOf = (row: MetricsRow, name: string): number | null => (typeof row[name] === 'number' ? (row[name] as number) : null);

/** One entry a step, in order: its training and validation rows joined. */
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

/** Weighted sums over points at distance d on one side: Σw, Σwd, Σwd², Σwy, Σwdy, with w = keep^|d|. */
interface Moments {
  w: number;
  wd: number;
  wdd: number;
  wy: number;
  wdy: number;
}

/** The sums at each point over itself and those before it, whose distances are negative. */
function moments(values: number[], keep: number): Moments[] {
  const all: Moments[] = [];
  let last: Moments = { w: 0, wd: 0, wdd: 0, wy: 0, wdy: 0 };
  for (const value of values) {
    const { w, wd, wdd, wy, wdy } = last;
    last = { w: keep * w + 1, wd: keep * (wd - w), wdd: keep * (wdd - 2 * wd + w), wy: keep * wy + value, wdy: keep * (wdy - wy) };
    all.push(last);
  }
  return all;
}

/**
 * A line fitted around each point, weighted by keep^|distance| on both sides: unlike a running mean, it neither
 * lags behind a falling curve nor is pulled by its first value.
 */
export function smoothed(values: (number | null)[], keep: number): (number | null)[] {
  const known = values.filter((value) => value !== null);
  const before = moments(known, keep);
  const after = moments([...known].reverse(), keep).reverse();
  const fitted = known.map((value, index) => {
    const [left, right] = [before[index], after[index]];
    const w = left.w + right.w - 1;
    const wd = left.wd - right.wd;
    const wdd = left.wdd + right.wdd;
    const wy = left.wy + right.wy - value;
    const wdy = left.wdy - right.wdy;
    const spread = w * wdd - wd * wd;
    return spread > 0 ? (wdd * wy - wd * wdy) / spread : value;
  });
  let index = 0;
  return values.map((value) => (value === null ? null : fitted[index++]));
}

/** One sample a step, the latest where a resumed run repeats some. */
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

/** How far a head's statistic moved over the checkpoints. */
export function changeOf(values: number[]): number {
  const known = values.filter(Number.isFinite);
  return known.length > 0 ? Math.max(...known) - Math.min(...known) : 0;
}

/** The statistic, of those that are shares, in which one head changed most. */
export function changedMost(byStep: { step: number; heads: HeadStatistics[] }[]): { key: StatisticKey; layer: number; head: number } | null {
  const lines = statisticNames.filter(({ unit }) => unit === 'share').flatMap(({ key }) => headLines(byStep, key).map(({ layer, head, values }) => ({ key, layer, head, change: changeOf(values) })));
  return lines.length > 0 ? lines.reduce((most, one) => (one.change > most.change ? one : most)) : null;
}


/** One statistic of every head over the checkpoints, sorted by the last value. */
export function headLines(byStep: { step: number; heads: HeadStatistics[] }[], key: StatisticKey): { layer: number; head: number; values: number[] }[] {
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
