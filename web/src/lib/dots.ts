// Weights as dots, beside colours: the area of a dot is its weight's share of the largest.

import { css, valueColour, weightColour } from './colour';
import { page } from './state.svelte';

/** How weights are drawn, as the link says: draw=dots. */
export const drawn = {
  get dots(): boolean {
    return page.view.extra.draw === 'dots';
  },
  choose(to: 'colours' | 'dots'): void {
    page.view.extra.draw = to === 'dots' ? 'dots' : '';
  },
};

/** The largest dot's share of its cell's width. */
const largest = 0.94;

/** In the unit of `cell`, the width of a cell. */
export function dotRadius(weight: number, most: number, cell: number): number {
  return weight > 0 && most > 0 ? 0.5 * largest * cell * Math.sqrt(Math.min(1, weight / most)) : 0;
}

export interface DottedPattern {
  data: ArrayLike<number>; // (rows, columns)
  rows: number;
  columns: number;
  /** The weight of the largest dot. */
  most: number;
  /** Pixels. */
  cellWidth: number;
  cellHeight?: number;
  /** Numbers of either sign: the colour says the sign. */
  signed?: true;
  visible?: (row: number, column: number) => boolean;
}

/** Draws at the origin; cells that are not visible stay empty. */
export function drawDots(context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D, pattern: DottedPattern, isDark: boolean): void {
  const { data, rows, columns, most, cellWidth, cellHeight = cellWidth, signed, visible = () => true } = pattern;
  const cells = Array.from({ length: rows * columns }, (_, index) => ({ number: data[index], row: Math.floor(index / columns), column: index % columns })).filter(({ number, row, column }) => Number.isFinite(number) && visible(row, column));
  context.fillStyle = css(weightColour(0, 1, isDark));
  for (const { row, column } of cells) context.fillRect(column * cellWidth, row * cellHeight, cellWidth, cellHeight);
  const colours = signed ? [1, -1].map((sign) => ({ sign, colour: valueColour(0.7 * sign, 1, isDark) })) : [{ sign: 1, colour: weightColour(0.75, 1, isDark) }];
  for (const { sign, colour } of colours) {
    context.fillStyle = css(colour);
    context.beginPath();
    for (const { number, row, column } of cells) {
      const radius = dotRadius(sign * number, most, Math.min(cellWidth, cellHeight));
      if (radius === 0) continue;
      const [x, y] = [(column + 0.5) * cellWidth, (row + 0.5) * cellHeight];
      context.moveTo(x + radius, y);
      context.arc(x, y, radius, 0, 2 * Math.PI);
    }
    context.fill();
  }
}
