import { expect, it } from 'vitest';
import { gradientGrid, gradientRowName, logShade } from './gradient_rows';

const answer = { position: 1, token: { id: 3, text: ' a' }, loss: 2, rows: ['0_pre', '1_pre', 'final_post'], norms: [[0.5, 1, 0], [0.25, 2, 0], [0, 3, 0]] };

it('the gradient is drawn with the last layer on top, and none after its position', () => {
  const { rows, columns, data, most, least } = gradientGrid(answer);
  expect(rows).toEqual(['final_post', '1_pre', '0_pre']);
  expect(columns).toBe(3);
  expect([...data]).toEqual([0, 3, -Infinity, 0.25, 2, -Infinity, 0.5, 1, -Infinity]);
  expect([most, least]).toEqual([3, 0.25]);
  expect(gradientGrid({ ...answer, norms: [[0.5, 1e6, 0]], rows: ['0_pre'] }).least).toBe(100);
});

it('its rows are named by the blocks', () => {
  expect(answer.rows.map((row) => gradientRowName(row, 2))).toEqual(['embedding', 'after block 0', 'after block 1']);
});

it('its colours are logarithmic', () => {
  expect([0, 0.1, 1, 10, 100].map((norm) => logShade(norm, 0.1, 10))).toEqual([0, 0, 0.5, 1, 1]);
  expect(logShade(-Infinity, 0.1, 10)).toBe(0);
});
