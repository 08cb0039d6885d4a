import { expect, it } from 'vitest';
import { arcPath, largest, strongestEdges } from './edges';

// prettier-ignore
const pattern = new Float32Array([
  1, 0, 0, 0,
  0.5, 0.5, 0, 0,
  0.2, 0.7, 0.1, 0,
  0.1, 0.3, 0.59, 0.01,
]);

it('finds the strongest links, without self and first', () => {
  const edges = strongestEdges(pattern, 4, 2);
  expect(edges.map(({ query, key }) => [query, key])).toEqual([[2, 1], [3, 2]]);
  expect(edges[0].weight).toBeCloseTo(0.7);
});

it('lists the largest weights', () => {
  expect(largest(pattern.subarray(12, 16), 3).map(({ position }) => position)).toEqual([2, 1, 0]);
  expect(largest([0, 0], 3)).toEqual([]);
});

it('draws above a line on one line and between lines otherwise', () => {
  const box = (left: number, top: number) => ({ left, top, width: 20, height: 20 });
  expect(arcPath(box(100, 50), box(0, 50))).toMatch(/^M110 50C110 3\d(\.\d)? 10 3\d(\.\d)? 10 50$/);
  expect(arcPath(box(100, 90), box(0, 0))).toBe('M110 90C110 55 10 55 10 20');
});
