import { expect, it } from 'vitest';
import { movedByHead, rowsOfPattern, tellingHead } from './effect';

const data = Float32Array.from([1, 0, 0.25, 0.75, 1, 0, 0.5, 0.5]);

it('takes one row out of a whole pattern, or the only one', () => {
  expect(rowsOfPattern({ shape: [1, 2, 2, 2], data }, 1).map((row) => [...row])).toEqual([[0.25, 0.75], [0.5, 0.5]]);
  expect(rowsOfPattern({ shape: [1, 4, 1, 2], data }, 1).map((row) => [...row])[1]).toEqual([0.25, 0.75]);
});

it('measures each head', () => {
  const row = (...values: number[]) => Float32Array.from(values);
  expect([...movedByHead([[row(1, 0), row(0, 1)]], [[row(0.5, 0.5), row(0, 1)]])]).toEqual([0.5, 0]);
});

it('shows the head that moved most where the chosen one did not move', () => {
  const moved = [0, 0.004, 0, 0.3, 0.1, 0.2];
  expect(tellingHead(moved, { layer: 0, head: 1, heads: 3 })).toEqual({ layer: 1, head: 0 });
  expect(tellingHead(moved, { layer: 1, head: 1, heads: 3 })).toEqual({ layer: 1, head: 1 });
  expect(tellingHead([0, 0.004, 0, 0.002], { layer: 1, head: 0, heads: 2 })).toEqual({ layer: 1, head: 0 });
});
