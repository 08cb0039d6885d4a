import { expect, it } from 'vitest';
import { formatIds, meanSurprise, parseIds, positionOfStep, seedOfStep, type Step } from './session';

const step = (id: number, probability: number | null = 0.5): Step => ({ token: { id, text: 'x' }, candidates: null, probability, drawn: 1 });

it('keeps ids in the link', () => {
  expect(parseIds(formatIds([step(5), step(17), step(0)]))).toEqual([5, 17, 0]);
  expect(parseIds('')).toEqual([]);
  expect(parseIds('5.x')).toEqual([]);
});

it('gives each step its own seed within 32 bits', () => {
  const seeds = new Set(Array.from({ length: 1000 }, (_, index) => seedOfStep(7, index)));
  expect(seeds.size).toBe(1000);
  expect(Math.max(...seeds)).toBeLessThan(2 ** 32);
  expect(seedOfStep(7, 0)).toBe(7);
});

it('finds the query position of a step', () => expect(positionOfStep(10, 0)).toBe(9));

it('averages the surprise over steps with a known probability', () => {
  expect(meanSurprise([step(1, 0.5), step(2, null), step(3, 0.125)])).toBeCloseTo((Math.log(2) + Math.log(8)) / 2);
  expect(meanSurprise([step(1, null)])).toBeNull();
});
