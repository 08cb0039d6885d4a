// A matrix with its name, its numbers as colours, and from near as figures.

import { inkOn, valueColour, weightColour } from '../../lib/colour';
import { percent, value } from '../../lib/numbers';
import { numberCell, visibleCells, type Sight } from './detail';
import type { Found } from './find';
import { imageOf } from './images';
import { fitting, widthOf } from './ink';
import { drawMarks, drawNames } from './matrix_names';
import { cellsOf, type Box, type Part } from './parts';
import type { Pen } from './pen';
import { mostPieces, type Numbers } from './store';

function drawLabel(pen: Pen, part: Part, { x, y, width, height }: Box): void {
  const { ink, canvas } = pen.view;
  const band = 0.17 * height;
  if (band < 8.5 || width < 26) return;
  const context = pen.context;
  const size = Math.min(14, Math.max(9.5, band * 0.62));
  const bottom = y + band - size * 0.62;
  const left = Math.max(x, 6);
  const room = Math.min(x + width, canvas.width) - left;
  const colour = part.tone === 'plain' ? ink.ink : ink[part.tone];
  pen.font(size, 600);
  let main = fitting(context, [part.title, part.term, part.title], room);
  if (main.endsWith('…')) {
    pen.font(Math.max(9.5, size * 0.76), 600);
    main = fitting(context, [part.title, part.term, part.title], room);
  }
  const used = widthOf(context, main) + 6;
  if (part.key.startsWith('norm')) {
    // The branch runs behind it.
    context.fillStyle = ink.card;
    context.fillRect(left, y + 1, used, band - 2);
  }
  pen.text(main, left, bottom, colour);
  if (main !== part.title) return;
  pen.font(size * 0.9);
  pen.text(fitting(context, [`${part.term} · ${part.rows.toLocaleString('en-US')} × ${part.columns.toLocaleString('en-US')}`, part.term, ''], room - used), left + used, bottom, ink.soft);
}

export function drawMatrix(pen: Pen, found: Found, area: Box): void {
  const { part, path } = found;
  const { store, ink, canvas, camera } = pen.view;
  const context = pen.context;
  const pixels = found.scale * camera.scale;
  const units = cellsOf(part);
  const cells = { x: area.x + units.x * pixels, y: area.y + units.y * pixels, width: units.width * pixels, height: units.height * pixels };
  drawLabel(pen, part, area);
  const sight = visibleCells(cells, part.rows, part.columns, canvas);
  const shownX = Math.max(cells.x, -2);
  const shownY = Math.max(cells.y, -2);
  const frame = { x: shownX, y: shownY, width: Math.min(cells.x + cells.width, canvas.width + 2) - shownX, height: Math.min(cells.y + cells.height, canvas.height + 2) - shownY };
  if (frame.width <= 0 || frame.height <= 0) return;
  context.fillStyle = part.kind === 'matrix' && part.source?.from === 'weights' ? ink.line : ink.sunken;
  context.fillRect(frame.x, frame.y, frame.width, frame.height);
  if (store && sight.right > sight.left && sight.bottom > sight.top) {
    const isWeight = part.source?.from === 'weights';
    const heavy = part.rows * part.columns > 40_000;
    const most = Math.min(canvas.width, cells.width) * Math.min(canvas.height, cells.height);
    const near = isWeight ? cells.width >= Math.max(46, 0.22 * part.columns) && frame.width * frame.height > 0.5 * most : cells.width >= (heavy ? 46 : 20);
    const numbers = isWeight ? store.weights(part, path, near ? sight : null) : store.activation(part, path, !near);
    if (numbers && numbers.filled > 0) drawCells(pen, found, cells, sight, numbers);
    if (isWeight && numbers && numbers.filled === 0 && frame.width >= 74 && frame.height >= 36) drawHint(pen, part, frame, sight, near);
  } else if (!store && cells.width >= 70 && cells.height > 26) {
    pen.font(11);
    pen.text(fitting(context, [`${part.rows.toLocaleString('en-US')} × ${part.columns.toLocaleString('en-US')}`, ''], frame.width - 8), frame.x + frame.width / 2, frame.y + frame.height / 2, ink.soft, 'center');
  }
  context.strokeStyle = part.tone === 'plain' ? ink.strong : ink[part.tone];
  context.lineWidth = 1;
  context.globalAlpha *= 0.6;
  context.strokeRect(frame.x, frame.y, frame.width, frame.height);
  context.globalAlpha = 1;
  drawMarks(pen, found, cells);
}

/** Weights that are not loaded. */
function drawHint(pen: Pen, part: Part, frame: Box, sight: { left: number; right: number }, near: boolean): void {
  const { ink } = pen.view;
  const many = !near || sight.right - sight.left > mostPieces || (part.source?.from === 'weights' && part.source.of === 'output');
  pen.font(11.5);
  const lines = many ? ['zoom in to', 'load weights'] : ['loading'];
  lines.forEach((line, index) => pen.text(line, frame.x + frame.width / 2, frame.y + frame.height / 2 + (index - (lines.length - 1) / 2) * 15, ink.ink, 'center'));
}

function drawCells(pen: Pen, found: Found, area: Box, sight: Sight, numbers: Numbers): void {
  const { part } = found;
  const { ink, canvas } = pen.view;
  const context = pen.context;
  const image = imageOf(numbers, ink.dark);
  const [wide, tall] = [area.width / part.columns, area.height / part.rows];
  const [across, down] = [sight.right - sight.left, sight.bottom - sight.top];
  context.imageSmoothingEnabled = wide < 1 || tall < 1;
  context.imageSmoothingQuality = 'medium';
  context.drawImage(image, sight.left, sight.top, across, down, area.x + sight.left * wide, area.y + sight.top * tall, across * wide, down * tall);
  if (wide >= numberCell.width && tall >= numberCell.height) {
    pen.font(Math.min(15, Math.max(10, Math.min(tall * 0.5, wide * 0.19))));
    for (let row = sight.top; row < sight.bottom; ++row) {
      for (let column = sight.left; column < sight.right; ++column) {
        const number = numbers.data[row * part.columns + column];
        if (Number.isNaN(number)) continue;
        const colour = numbers.kind === 'weight' ? weightColour(number, numbers.extent, ink.dark) : valueColour(number, numbers.extent, ink.dark);
        const text = numbers.kind === 'weight' ? percent(number) : wide > 70 ? value(number, 4) : number.toFixed(2).replace('-', '\u2212');
        pen.text(text, area.x + (column + 0.5) * wide, area.y + (row + 0.5) * tall, inkOn(colour), 'center');
      }
    }
  }
  drawNames(pen, found, area, sight, wide, tall);
  // The chosen token's row.
  const { store } = pen.view;
  if (store && part.source?.from !== 'weights' && tall >= 3) {
    const row = store.setting.position - store.setting.first;
    context.strokeStyle = ink.query;
    context.lineWidth = Math.min(2, tall / 3);
    const left = Math.max(area.x, -4);
    context.strokeRect(left, area.y + row * tall, Math.min(area.x + area.width, canvas.width + 4) - left, tall);
  }
}
