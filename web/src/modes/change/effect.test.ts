import { expect, it } from 'vitest';
import { movedByHead, rowsOfPattern } from './effect';

const data = Float32Array.from([1, 0, 0.25, 0.75, 1, 0, 0.5, 0.5]);

it('takes one row out of a whole pattern, or the only one', () => {
  expect(rowsOfPattern({ shape: [1, 2, 2, 2], data }, 1).map((row) => [...row])).toEqual([[0.25, 0.75], [0.5, 0.5]]);
  expect(rowsOfPattern({ shape: [1, 4, 1, 2], data }, 1).map((row) => [...row])[1]).toEqual([0.25, 0.75]);
});

it('measures each head', () => {
  const row = (...values: number[]) => Float32Array.from(values);
  expect([...movedByHead([[row(1, 0), row(0, 1)]], [[row(0.5, 0.5), row(0, 1)]])]).toEqual([0.5, 0]);
});
