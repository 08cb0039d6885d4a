import { describe, expect, it } from 'vitest';
import type { HeadStatistics, MetricsRow } from '../../lib/types';
import { changedMost, changeOf, checkpointAt, curvesOf, curvesTable, headLines, samplesOf, smoothed } from './curves';

const rows: MetricsRow[] = [
  { step: 1, loss: 7, learning_rate: 1e-4, gradient_norm: 2 },
  { step: 2, loss: 5, learning_rate: 2e-4, gradient_norm: 1 },
  { step: 2, val_loss: 5.5, val_standard_error: 0.1 },
  { step: 2, sample: 'On the' },
];

describe('curvesOf', () => {
  it('joins the rows of a step', () => {
    const curves = curvesOf(rows);
    expect(curves.steps).toEqual([1, 2]);
    expect(curves.validation).toEqual([null, 5.5]);
    expect(curves.loss).toEqual([7, 5]);
  });
  it('keeps the order of steps when a resumed run repeats some', () => expect(curvesOf([...rows, { step: 1, loss: 6 }]).loss).toEqual([6, 5]));
  it('makes a table', () => expect(curvesTable(curvesOf(rows)).rows[0]).toEqual([1, 7, expect.closeTo(7), null, 1e-4, 2]));
});

describe('smoothing', () => {
  it('keeps a constant and skips steps without a value', () => {
    expect(smoothed([4, 4, null, 4], 0.9)).toEqual([4, 4, null, 4].map((value) => (value === null ? null : expect.closeTo(value))));
    expect(smoothed([3], 0.9)).toEqual([3]);
    expect(smoothed([], 0.9)).toEqual([]);
  });
  it('does not lag behind a falling curve, not even at its end', () => {
    const falling = Array.from({ length: 200 }, (_, step) => 7 - 0.02 * step);
    smoothed(falling, 0.95).forEach((value, step) => expect(value).toBeCloseTo(falling[step], 9));
  });
  it('removes noise', () => {
    const noisy = Array.from({ length: 200 }, (_, step) => 3 + (step % 2 === 0 ? 0.5 : -0.5));
    for (const value of smoothed(noisy, 0.95)) expect(Math.abs(value! - 3)).toBeLessThan(0.1);
  });
});

it('finds samples, the latest of a step', () => {
  expect(samplesOf([...rows, { step: 1, sample: 'a' }, { step: 2, sample: 'On a' }])).toEqual([{ step: 1, text: 'a' }, { step: 2, text: 'On a' }]);
});

it('chooses the checkpoint before a step', () => {
  expect(checkpointAt([0, 250, 500], 400)).toBe(250);
  expect(checkpointAt([100, 200], 5)).toBe(100);
});

it('follows heads over checkpoints', () => {
  const head = (layer: number, previous: number): HeadStatistics => ({ layer, head: 0, previous, entropy: 0, evenness: 0, distance: 0, first: 0, self: 0, duplicate: 0, induction: 0, content_weight: 0, habit: { name: 'back', strength: 0 } });
  const lines = headLines([{ step: 0, heads: [head(0, 0.1), head(1, 0.1)] }, { step: 9, heads: [head(0, 0.2), head(1, 0.8)] }], 'previous');
  expect(lines.map(({ layer, values }) => [layer, ...values])).toEqual([[1, 0.1, 0.8], [0, 0.1, 0.2]]);
});

it('finds the statistic and the head that changed most over checkpoints', () => {
  const head = (layer: number, some: Partial<HeadStatistics>): HeadStatistics => ({ layer, head: 0, previous: 0.2, entropy: 0, evenness: 0.5, distance: 0, first: 0.1, self: 0.1, duplicate: 0, induction: 0, content_weight: 0, habit: { name: 'back', strength: 0 }, ...some });
  const byStep = [
    { step: 0, heads: [head(0, {}), head(1, { first: 0.1 })] },
    { step: 5, heads: [head(0, { distance: 90 }), head(1, { first: 0.8 })] },
    { step: 9, heads: [head(0, { previous: 0.5 }), head(1, { first: 0.3 })] },
  ];
  expect(changedMost(byStep)).toMatchObject({ key: 'first', layer: 1, head: 0 });
  expect(changedMost([])).toBeNull();
  expect(changeOf([NaN, 0.5, 0.2])).toBeCloseTo(0.3, 12);
  expect(changeOf([])).toBe(0);
});
