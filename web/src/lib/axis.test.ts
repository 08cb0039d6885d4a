import { expect, it } from 'vitest';
import { axisLabels, labelStep } from './axis';

it('shows fewer labels as positions shrink', () => {
  expect(labelStep(20, 14)).toBe(1);
  expect(labelStep(8, 14)).toBe(2);
  expect(labelStep(0.5, 14)).toBe(50);
});

it('labels the middle of each visible position', () => {
  const labels = axisLabels(2.5, 60, 20, 100, 14);
  expect(labels.map(({ position }) => position)).toEqual([2, 3, 4, 5]);
  expect(labels.map(({ offset }) => offset)).toEqual([0, 20, 40, 60]);
});

it('labels nothing beyond the text', () => {
  expect(axisLabels(-3, 200, 10, 4, 10).map(({ position }) => position)).toEqual([0, 1, 2, 3]);
});
