import { expect, it } from 'vitest';
import { attendedOf, blanksOf, mixedOf } from './worksheet';

const answers = [1, 2, 0.5, null].map((score, index) => ({ token: `t${index}`, score, share: [0.24, 0.65, 0.11, 0][index], value: [index + 1, 9] }));

it('has powers whose shares are the weights, without the masked words', () => {
  const rows = attendedOf(answers);
  expect(rows.map(({ text }) => text)).toEqual(['t0', 't1', 't2']);
  const total = rows.reduce((sum, { power }) => sum + power, 0);
  const powers = [1, 2, 0.5].map(Math.exp);
  rows.forEach(({ power }, index) => expect(power / total).toBeCloseTo(powers[index] / powers.reduce((sum, one) => sum + one, 0), 12));
});

it('leaves the three largest weights blank, in the order of the words', () => {
  const row = (share: number) => ({ text: '', score: 0, share, power: 0, value: 0 });
  expect(blanksOf([0.1, 0.4, 0.05, 0.3, 0.15].map(row))).toEqual([1, 3, 4]);
  expect(blanksOf([1].map(row))).toEqual([0]);
});

it('mixes the values by their weights', () => {
  expect(mixedOf(attendedOf(answers))).toBeCloseTo(0.24 + 1.3 + 0.33, 12);
});
