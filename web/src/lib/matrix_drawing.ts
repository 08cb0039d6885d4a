// Matrices as pictures and tables for export.

import { css, extentOf, valueColour, weightColour } from './colour';
import { letters, wholePicture, type Drawing, type Palette } from './drawing';
import type { Table } from './export';

export interface Matrix {
  name: string;
  rows: number;
  columns: number;
  data: ArrayLike<number>; // (rows, columns)
  kind: 'weight' | 'value';
  rowName: (row: number) => string;
}

const [margin, gap, top, heading, most] = [16, 28, 44, 24, 1160]; // pixels; most: the width of a line of matrices
const letterWidth = 7.3;

/** Matrices side by side, wrapped to the width. */
export function matrixDrawing(title: string, matrices: Matrix[], palette: Palette, isDark: boolean): Drawing {
  const parts = [letters(margin, 26, title, palette.ink, 'font-size="15" font-weight="600"')];
  let [x, y, lineHeight, width] = [margin, top, 0, 320];
  for (const { name, rows, columns, data, kind, rowName } of matrices) {
    const labels = Math.min(120, Math.max(...Array.from({ length: rows }, (_, row) => [...rowName(row)].length), 1) * letterWidth + 8);
    const wide = Math.max(2, Math.min(16, (most - labels) / columns));
    const tall = rows > 64 ? Math.max(2, 640 / rows) : 14;
    const size = { width: Math.max(labels + columns * wide, name.length * letterWidth), height: heading + rows * tall };
    if (x > margin && x + size.width > most) [x, y, lineHeight] = [margin, y + lineHeight + gap, 0];
    const full = kind === 'weight' ? Math.max(...Array.from(data).filter(Number.isFinite), 0) : extentOf(data);
    parts.push(letters(x, y + 14, name, palette.ink, 'font-weight="600"'));
    for (let row = 0; row < rows; row++) {
      const down = y + heading + row * tall;
      if (tall >= 10) parts.push(letters(x + labels - 6, down + tall / 2 + 4, rowName(row), palette.soft, 'text-anchor="end" font-family="ui-monospace, DejaVu Sans Mono, monospace" font-size="11"'));
      for (let column = 0; column < columns; column++) {
        const value = data[row * columns + column];
        if (!Number.isFinite(value)) continue; // masked
        const colour = kind === 'weight' ? weightColour(value, full, isDark) : valueColour(value, full, isDark);
        parts.push(`<rect x="${(x + labels + column * wide).toFixed(2)}" y="${down.toFixed(1)}" width="${wide.toFixed(2)}" height="${tall.toFixed(1)}" fill="${css(colour)}"/>`);
      }
    }
    x += size.width + gap;
    lineHeight = Math.max(lineHeight, size.height);
    width = Math.max(width, x - gap + margin);
  }
  return wholePicture(Math.ceil(width), Math.ceil(y + lineHeight + margin), palette, parts);
}

/** One row for each cell; masked cells are empty. */
export function matrixTable(matrices: Matrix[]): Table {
  return {
    columns: ['matrix', 'row', 'row_name', 'column', 'value'],
    rows: matrices.flatMap(({ name, rows, columns, data, rowName }) =>
      Array.from({ length: rows * columns }, (_, index): Table['rows'][number] => {
        const row = Math.floor(index / columns);
        return [name, row, rowName(row), index % columns, Number.isFinite(data[index]) ? data[index] : null];
      })),
  };
}
