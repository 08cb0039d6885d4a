import { expect, test } from 'vitest';
import { apart } from './apart';

const label = (x: number, y: number) => ({ x, y, width: 30, height: 10 });

test('a label over another one, or over what is marked, is left out; labels side by side stay', () => {
  const all = [label(0, 0), label(10, 5), label(30, 0), label(0, 10), label(100, 100)];
  expect(apart(all)).toEqual([all[0], all[2], all[3], all[4]]);
  expect(apart(all, [{ x: 95, y: 95, width: 18, height: 18 }])).toEqual([all[0], all[2], all[3]]);
});
