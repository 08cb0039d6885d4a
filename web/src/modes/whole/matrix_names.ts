// Names of a matrix's rows and columns, and its marked cells.

import type { CellRange } from './detail';
import type { Found } from './find';
import type { Box } from './parts';
import type { CanvasDrawing } from './canvas_drawing';
import { columnName, rowName } from './words';

/** Names of rows and columns, which stay in sight. */
export function drawNames(drawing: CanvasDrawing, found: Found, area: Box, visible: CellRange, wide: number, tall: number): void {
  const { part } = found;
  const { store, ink, canvas, candidates } = drawing.view;
  if (!store || area.width < 0.4 * canvas.width) return;
  const context = drawing.context;
  const tokens = candidates.map(({ token }) => token);
  const chip = (text: string, x: number, y: number, align: 'right' | 'center') => {
    const width = drawing.widthOf(text) + 8;
    const left = align === 'right' ? Math.max(4, x - width) : x - width / 2;
    context.globalAlpha = 0.88;
    context.fillStyle = ink.paper;
    context.fillRect(left, y - 8, width, 16);
    context.globalAlpha = 1;
    drawing.text(text, left + 4, y, ink.soft);
  };
  drawing.font(11, 400, true);
  if (tall >= 14) {
    for (let row = visible.top; row < visible.bottom; ++row) {
      const y = area.y + (row + 0.5) * tall;
      if (y > 8 && y < canvas.height - 8) chip(drawing.fitting([rowName(part, store.setting, tokens, row)], 96), area.x - 3, y, 'right');
    }
  }
  if (wide >= 30) {
    const y = Math.min(area.y + area.height + 10, canvas.height - 10);
    for (let column = visible.left; column < visible.right; ++column) chip(drawing.fitting([columnName(part, store.setting, column), ''], wide - 8), area.x + (column + 0.5) * wide, y, 'center');
  }
}

/** The cell under the pointer and the keyboard's cell. */
export function drawMarks(drawing: CanvasDrawing, { path, part }: Found, area: Box): void {
  const { pointed, cursor, ink } = drawing.view;
  const context = drawing.context;
  const here = path.join('/');
  for (const mark of [pointed, cursor]) {
    if (!mark?.cell || mark.path.join('/') !== here) continue;
    const [wide, tall] = [area.width / part.columns, area.height / part.rows];
    context.strokeStyle = ink.ink;
    context.lineWidth = 2;
    context.strokeRect(area.x + mark.cell.column * wide, area.y + mark.cell.row * tall, wide, tall);
  }
}
