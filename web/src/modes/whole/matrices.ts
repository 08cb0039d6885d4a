// A matrix with its name, its numbers as colours, and from near as figures.

import { inkOn, valueColour, weightColour } from '../../lib/colour';
import { percent, value } from '../../lib/numbers';
import { numberCell, visibleCells, type CellRange } from './detail';
import type { Found } from './find';
import { drawMarks, drawNames } from './matrix_names';
import type { Numbers } from './numbers';
import { cellsOf, type Box, type Part } from './parts';
import type { CanvasDrawing } from './canvas_drawing';
import { mostTiles, tilesIn } from './weight_tiles';
import { sizeOf } from './words';

/** Numbers written while the camera moves. */
const mostMovingNumbers = 120;

function drawLabel(drawing: CanvasDrawing, part: Part, { x, y, width, height }: Box): void {
  const { ink, canvas } = drawing.view;
  const band = 0.17 * height;
  if (band < 8.5 || width < 26) return;
  const context = drawing.context;
  const size = Math.min(14, Math.max(9.5, band * 0.62));
  const bottom = y + band - size * 0.62;
  const left = Math.max(x, 6);
  const room = Math.min(x + width, canvas.width) - left;
  const colour = part.tone === 'plain' ? ink.ink : ink[part.tone];
  drawing.font(size, 600);
  let main = drawing.fitting([part.title, part.term, part.title], room);
  if (main.endsWith('…')) {
    drawing.font(Math.max(9.5, size * 0.76), 600);
    main = drawing.fitting([part.title, part.term, part.title], room);
  }
  const used = drawing.widthOf(main) + 6;
  if (part.key.startsWith('norm')) {
    // The branch runs behind it.
    context.fillStyle = ink.card;
    context.fillRect(left, y + 1, used, band - 2);
  }
  drawing.text(main, left, bottom, colour);
  if (main !== part.title) return;
  drawing.font(size * 0.9);
  drawing.text(drawing.fitting([`${part.term} · ${sizeOf(part)}`, part.term, ''], room - used), left + used, bottom, ink.soft);
}

export function drawMatrix(drawing: CanvasDrawing, found: Found, area: Box): void {
  const { part, path } = found;
  const { store, ink, canvas, camera } = drawing.view;
  const context = drawing.context;
  const pixels = found.scale * camera.scale;
  const units = cellsOf(part);
  const cells = { x: area.x + units.x * pixels, y: area.y + units.y * pixels, width: units.width * pixels, height: units.height * pixels };
  drawLabel(drawing, part, area);
  const visible = visibleCells(cells, part.rows, part.columns, canvas);
  const shownX = Math.max(cells.x, -2);
  const shownY = Math.max(cells.y, -2);
  const frame = { x: shownX, y: shownY, width: Math.min(cells.x + cells.width, canvas.width + 2) - shownX, height: Math.min(cells.y + cells.height, canvas.height + 2) - shownY };
  if (frame.width <= 0 || frame.height <= 0) return;
  context.fillStyle = part.kind === 'matrix' && part.source?.from === 'weights' ? ink.line : ink.sunken;
  context.fillRect(frame.x, frame.y, frame.width, frame.height);
  if (store && visible.right > visible.left && visible.bottom > visible.top) {
    const isWeight = part.source?.from === 'weights';
    const heavy = part.rows * part.columns > 40_000;
    const near = cells.width >= (isWeight ? 30 : heavy ? 46 : 20) && (!isWeight || isNear(part, cells, visible));
    const numbers = isWeight ? store.weights(part, path, near ? visible : null) : store.activation(part, path, !near);
    if (numbers && numbers.filled > 0) drawCells(drawing, found, cells, visible, numbers);
    if (isWeight && !numbers?.filled && frame.width >= 74 && frame.height >= 36) drawHint(drawing, frame, store.hasFailed(part, path) ? ['could not', 'be loaded'] : near ? ['loading'] : ['zoom in to', 'load weights']);
  } else if (!store && cells.width >= 70 && cells.height > 26) {
    drawing.font(11);
    drawing.text(drawing.fitting([sizeOf(part), ''], frame.width - 8), frame.x + frame.width / 2, frame.y + frame.height / 2, ink.soft, 'center');
  }
  context.strokeStyle = part.tone === 'plain' ? ink.strong : ink[part.tone];
  context.lineWidth = 1;
  context.globalAlpha *= 0.6;
  context.strokeRect(frame.x, frame.y, frame.width, frame.height);
  context.globalAlpha = 1;
  drawMarks(drawing, found, cells);
}

/** Whether a weight matrix is loaded: large ones when few of their tiles are in sight. */
function isNear({ rows, columns }: Part, cells: Box, visible: CellRange): boolean {
  return tilesIn(rows, columns, { top: 0, bottom: rows, left: 0, right: columns }) === 1 || (cells.width >= 0.1 * columns && tilesIn(rows, columns, visible) <= mostTiles);
}

/** Why there are no weights. */
function drawHint(drawing: CanvasDrawing, frame: Box, lines: string[]): void {
  drawing.font(11.5);
  lines.forEach((line, index) => drawing.text(line, frame.x + frame.width / 2, frame.y + frame.height / 2 + (index - (lines.length - 1) / 2) * 15, drawing.view.ink.ink, 'center'));
}

function drawCells(drawing: CanvasDrawing, found: Found, area: Box, visible: CellRange, numbers: Numbers): void {
  const { part } = found;
  const { ink, canvas } = drawing.view;
  const context = drawing.context;
  const image = drawing.imageOf(numbers);
  if (!image) return;
  const [wide, tall] = [area.width / part.columns, area.height / part.rows];
  const [across, down] = [visible.right - visible.left, visible.bottom - visible.top];
  context.imageSmoothingEnabled = wide < 1 || tall < 1;
  context.imageSmoothingQuality = drawing.view.moving ? 'low' : 'medium';
  context.drawImage(image, visible.left, visible.top, across, down, area.x + visible.left * wide, area.y + visible.top * tall, across * wide, down * tall);
  if (wide >= numberCell.width && tall >= numberCell.height && (!drawing.view.moving || across * down <= mostMovingNumbers)) {
    drawing.font(Math.min(15, Math.max(10, Math.min(tall * 0.5, wide * 0.19))));
    for (let row = visible.top; row < visible.bottom; ++row) {
      for (let column = visible.left; column < visible.right; ++column) {
        const number = numbers.data[row * part.columns + column];
        if (Number.isNaN(number)) continue;
        const colour = numbers.kind === 'weight' ? weightColour(number, numbers.extent, ink.dark) : valueColour(number, numbers.extent, ink.dark);
        const text = numbers.kind === 'weight' ? percent(number) : wide > 70 ? value(number, 4) : number.toFixed(2).replace('-', '\u2212');
        drawing.text(text, area.x + (column + 0.5) * wide, area.y + (row + 0.5) * tall, inkOn(colour), 'center');
      }
    }
  }
  drawNames(drawing, found, area, visible, wide, tall);
  // The chosen token's row.
  const { store } = drawing.view;
  if (store && part.source?.from !== 'weights' && tall >= 3) {
    const row = store.setting.position - store.setting.first;
    context.strokeStyle = ink.query;
    context.lineWidth = Math.min(2, tall / 3);
    const left = Math.max(area.x, -4);
    context.strokeRect(left, area.y + row * tall, Math.min(area.x + area.width, canvas.width + 4) - left, tall);
  }
}
