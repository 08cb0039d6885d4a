import { expect, it } from 'vitest';
import type { MetricsRow } from '../../lib/types';
import { gradientNormsOf, partName, shades } from './gradients';

it('orders the parts from the embedding to the end, and keeps the latest row of a step', () => {
  const rows: MetricsRow[] = [
    { step: 0, gradient_norms: { final: 4, '10': 3, '2': 2, embedding: 1 } },
    { step: 5, loss: 2 },
    { step: 10, gradient_norms: { embedding: 9 } },
    { step: 10, gradient_norms: { embedding: 5, '2': 6, final: 8 } },
  ];
  const { steps, parts, norms } = gradientNormsOf(rows);
  expect(steps).toEqual([0, 10]);
  expect(parts.map(partName)).toEqual(['embedding', 'block 2', 'block 10', 'last norm']);
  expect(norms).toEqual([1, 5, 2, 6, 3, NaN, 4, 8]);
  expect(gradientNormsOf([{ step: 1, loss: 2 }])).toEqual({ steps: [], parts: [], norms: [] });
});

it('shades by the logarithm', () => {
  expect(shades([0.01, 1, 0.1])).toEqual([0, 1, 0.5]);
  expect(shades([2, NaN])).toEqual([1, NaN]);
});
