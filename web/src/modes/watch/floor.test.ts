import { expect, it } from 'vitest';
import { curvesOf } from './curves';
import type { MetricsRow } from '../../lib/types';
import { aboveFloor } from './floor';

it('compares the last validation loss with the entropy, else the training loss', () => {
  const rows: MetricsRow[] = [{ step: 1, loss: 4 }, { step: 2, loss: 3 }, { step: 2, val_loss: 2.5 }, { step: 3, loss: 2.2 }];
  expect(aboveFloor(curvesOf(rows), 2)).toEqual({ step: 2, loss: 2.5, what: 'validation', share: 0.25 });
  expect(aboveFloor(curvesOf(rows.slice(0, 1)), 2)).toEqual({ step: 1, loss: 4, what: 'training', share: 1 });
  expect(aboveFloor(curvesOf([...rows, { step: 4, val_loss: 1.9 }]), 2)!.share).toBeCloseTo(-0.05);
  expect(aboveFloor(curvesOf([...rows, { step: 4, val_loss: 1.9 }]), 2, 3)!.loss).toBe(2.5);
  expect(aboveFloor(curvesOf([]), 2)).toBeNull();
});
