// A head's pattern and arrows, and parts too small to be opened.

import { childOf, placeIn, type Found } from './find';
import { sheetOf, type Sheet } from './images';
import type { Box } from './parts';
import type { CanvasDrawing } from './canvas_drawing';
import type { Point } from './scene';

/** A closed part: a head's pattern, or a plain box. */
export function drawClosed(drawing: CanvasDrawing, found: Found, area: Box): void {
  const { part, path } = found;
  const { ink } = drawing.view;
  const context = drawing.context;
  if (part.kind !== 'head') {
    if (part.kind === 'block') drawHalves(drawing, area);
    else if (part.kind === 'attention') drawManyHeads(drawing, area);
    return;
  }
  const side = Math.min(area.height * 0.84, area.width * 0.84);
  if (side < 3) return;
  const { layer, head } = placeIn(path);
  const named = area.width >= 58;
  const x = named ? area.x + area.width - side - area.height * 0.08 : area.x + (area.width - side) / 2;
  const y = area.y + (area.height - side) / 2;
  const sheet = thumbnails(drawing);
  if (sheet) {
    context.imageSmoothingEnabled = side < sheet.side;
    context.drawImage(sheet.image, head * sheet.side, layer * sheet.side, sheet.side, sheet.side, x, y, side, side);
  } else {
    // Without numbers: only the positions that a word may look at.
    context.fillStyle = ink.line;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x, y + side);
    context.lineTo(x + side, y + side);
    context.fill();
  }
  if (named) {
    drawing.font(Math.min(13, Math.max(10, area.height * 0.22)), 600);
    drawing.text(drawing.fitting([`L${layer}H${head}`, `H${head}`, ''], x - area.x - 8), area.x + 6, area.y + area.height / 2, ink.soft);
  }
}

/** The two halves of a block that is too small to be opened. */
function drawHalves(drawing: CanvasDrawing, { x, y, width, height }: Box): void {
  const context = drawing.context;
  context.fillStyle = drawing.view.ink.line;
  for (const left of [0.03, 0.53]) context.fillRect(x + left * width, y + 0.09 * height, 0.44 * width, 0.49 * height);
}

/** Heads too small to be drawn one by one. */
function drawManyHeads(drawing: CanvasDrawing, { x, y, width, height }: Box): void {
  const context = drawing.context;
  context.fillStyle = drawing.view.ink.line;
  context.fillRect(x + 0.03 * width, y + 0.13 * height, 0.72 * width, 0.83 * height);
  context.fillRect(x + 0.78 * width, y + 0.13 * height, 0.2 * width, 0.83 * height);
}

function thumbnails(drawing: CanvasDrawing): Sheet | null {
  const { store, ink } = drawing.view;
  const array = store?.thumbnails();
  if (!array) return null;
  return sheetOf(array, ink.dark);
}

/** How numbers flow in a head. */
export function drawArrows(drawing: CanvasDrawing, found: Found): void {
  const { ink, camera } = drawing.view;
  const pixels = found.scale * camera.scale;
  if (pixels < 0.25) return;
  const context = drawing.context;
  const has = (key: string) => found.part.children.some((child) => child.key === key);
  const part = (key: string) => drawing.onScreen(childOf(found, found.part.children.find((child) => child.key === key)!));
  const between = (from: Point, to: Point, colour: string) => {
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(from.x, from.y);
    const bend = (to.x - from.x) / 2;
    context.bezierCurveTo(from.x + bend, from.y, to.x - bend, to.y, to.x - 5, to.y);
    context.stroke();
    context.beginPath();
    context.moveTo(to.x, to.y);
    context.lineTo(to.x - 7, to.y - 4);
    context.lineTo(to.x - 7, to.y + 4);
    context.fill();
  };
  const right = ({ x, y, width, height }: Box, share = 0.58): Point => ({ x: x + width + 3, y: y + share * height });
  const left = ({ x, y, height }: Box, share = 0.58): Point => ({ x: x - 3, y: y + share * height });
  for (const [weights, vectors, colour] of [['wq', 'q', ink.query], ['wk', 'k', ink.key], ['wv', 'v', ink.value]] as const) between(right(part(weights)), left(part(vectors)), colour);
  // What attention reads: rotated where queries and keys rotate.
  for (const [of, colour, share] of [['q', ink.query, 0.35], ['k', ink.key, 0.75]] as const) {
    const read = has(`rot_${of}`) ? `rot_${of}` : of;
    if (read !== of) between(right(part(of)), left(part(read)), colour);
    between(right(part(read)), left(part('pattern'), share), colour);
  }
  between(right(part('v')), left(part('z')), ink.value);
  between(right(part('z')), left(part('wo')), ink.value);
  const vertical = (from: Box, to: Box, colour: string, up: boolean) => {
    const x = from.x + from.width / 2;
    const [start, end] = up ? [from.y - 2, to.y + to.height + 3] : [from.y + from.height + 3, to.y - 2];
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(x, start);
    context.lineTo(x, end);
    context.stroke();
    const tip = up ? 6 : -6;
    context.beginPath();
    context.moveTo(x, end);
    context.lineTo(x - 4, end + tip);
    context.lineTo(x + 4, end + tip);
    context.fill();
  };
  vertical(part('pattern'), part('z'), ink.soft, false);
  vertical(part('wo'), part('result'), ink.soft, true);
}
