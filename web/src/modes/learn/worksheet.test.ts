import { describe, expect, it } from 'vitest';
import { attendedOf, blanksOf, fixed, headToCalculate, printedChance, restOf, sumOf, surpriseOf } from './worksheet';

const answers = [1, 2, 0.5, null].map((score, index) => ({ token: `t${index}`, score, share: [0.2312, 0.6285, 0.1402, 0][index], value: [index + 1.004, 9] }));

describe('a row of attention', () => {
  it('has powers whose shares are the weights, without the masked words', () => {
    const rows = attendedOf(answers);
    expect(rows.map(({ text }) => text)).toEqual(['t0', 't1', 't2']);
    // Each printed number is off by half a unit of its last place; so are the shares of printed powers, of which the sum is at least 1.
    rows.forEach(({ share }, index) => expect(Math.abs(share - answers[index].share)).toBeLessThan(0.002));
  });

  it('has products and a sum of the numbers that are printed', () => {
    const rows = attendedOf(answers);
    for (const { share, value, product } of rows) expect(fixed(Number(share.toFixed(3)) * Number(value.toFixed(2)), 3)).toBe(fixed(product, 3));
    expect(sumOf(rows.map(({ product }) => product), 3)).toBeCloseTo(0.2312 + 2 * 0.6285 + 3 * 0.1402, 2);
  });

  it('leaves the three largest weights blank, in the order of the words', () => {
    const row = (share: number) => ({ text: '', score: 0, share, power: 0, value: 0, product: 0 });
    expect(blanksOf([0.1, 0.4, 0.05, 0.3, 0.15].map(row))).toEqual([1, 3, 4]);
    expect(blanksOf([1].map(row))).toEqual([0]);
  });

  it('is of a head with something to calculate', () => {
    const rows = [[0.003, 0.997], [0.1, 0.9], [0.45, 0.55]].map((row, head) => ({ layer: 4, head, row }));
    expect(headToCalculate(rows)).toEqual({ layer: 4, head: 2 });
    expect(headToCalculate([{ layer: 4, head: 5, row: [0.3, 0.7] }, ...rows]), 'the one that is shown').toEqual({ layer: 4, head: 5 });
  });
});

it('answers from the probabilities that are printed', () => {
  expect(printedChance(0.99918)).toBe('0.9992');
  expect(surpriseOf('0.9992')).toBe(0);
  expect(fixed(surpriseOf('1.0000'), 2)).toBe('0.00');
  expect(surpriseOf('0.0521')).toBe(2.95);
  expect(printedChance(0.00002)).toBe('0.00002');
  expect(Number.isFinite(surpriseOf(printedChance(1e-9)))).toBe(true);
  // 52.8 + 46.2 + 0.2 + 0.1 + 0.1 are printed.
  expect(restOf([0.52771, 0.46205, 0.00155, 0.00145, 0.0011])).toBe(0.6);
  expect(restOf([0.99996, 0.00004])).toBe(0);
});

it('writes minus signs, and no minus zero', () => {
  expect([fixed(-1.25, 1), fixed(-0.001, 2), fixed(0, 2), fixed(2, 0)]).toEqual(['−1.3', '0.00', '0.00', '2']);
});
