import { expect, it } from 'vitest';
import { matrixDrawing, matrixTable, type Matrix } from './matrix_drawing';

const palette = { paper: '#fff', ink: '#111', soft: '#555', line: '#ddd', accent: '#33a', key: '#950', query: '#829', pale: '#888' };
const matrix = (name: string, rows: number, columns: number): Matrix => ({
  name, rows, columns, kind: 'value', rowName: (row) => `word ${row}`, data: Float32Array.from({ length: rows * columns }, (_, index) => index - 2),
});
const rects = (text: string) => [...text.matchAll(/<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"/g)].map(([, ...found]) => found.map(Number));

it('draws every cell inside the picture, without overlaps', () => {
  const { text, width, height } = matrixDrawing('<Two>', [matrix('Q', 3, 40), matrix('K', 3, 40)], palette, false);
  expect(rects(text)).toHaveLength(240);
  for (const [x, y, wide, tall] of rects(text)) expect(x + wide <= width && y + tall <= height).toBe(true);
  expect(new Set(rects(text).map(([, y]) => y)).size).toBe(6); // too wide for one line
  expect(text).toContain('&#60;Two&#62;');
});
it('skips masked cells', () => {
  const masked = { ...matrix('S', 1, 3), data: Float32Array.of(1, -Infinity, 2) };
  expect(rects(matrixDrawing('S', [masked], palette, true).text)).toHaveLength(2);
  expect(matrixTable([masked]).rows).toEqual([['S', 0, 'word 0', 0, 1], ['S', 0, 'word 0', 1, null], ['S', 0, 'word 0', 2, 2]]);
});
