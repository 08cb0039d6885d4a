// What a block shows beside its parts: where branches are added, the button that expands it, and its guess.

import { percent, tokenText } from '../../lib/numbers';
import { placeIn, type Found } from './find';
import { inBlock } from './journey';
import { blockUnits, type Box } from './parts';
import type { CanvasDrawing } from './canvas_drawing';
import type { Point } from './scene';

/** Radius in pixels of the button that expands and collapses a block. */
export const toggleRadius = 9;

/** Where a block's button is, on the screen. */
export function toggleOf({ x, y, width }: Box): Point | null {
  return width >= 84 ? { x: x + width - toggleRadius - 6, y: y + toggleRadius + 6 } : null;
}

/** The signs + where a branch is added to the residual stream. */
export function drawSums(drawing: CanvasDrawing, { path, scale }: Found): void {
  const { scene, ink, camera } = drawing.view;
  const pixels = scale * camera.scale;
  const radius = Math.min(13, Math.max(2.5, pixels * 26));
  const context = drawing.context;
  for (const { join } of [blockUnits.attention, blockUnits.feedForward]) {
    const { x, y } = drawing.toScreen(inBlock(scene, placeIn(path).layer, join, blockUnits.residual));
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fillStyle = ink.card;
    context.fill();
    context.lineWidth = radius > 5 ? 1.5 : 1;
    context.strokeStyle = ink.accent;
    context.stroke();
    if (radius < 5) continue;
    const arm = radius * 0.5;
    context.beginPath();
    context.moveTo(x - arm, y);
    context.lineTo(x + arm, y);
    context.moveTo(x, y - arm);
    context.lineTo(x, y + arm);
    context.stroke();
  }
}

/** The button that expands or collapses a block. */
export function drawToggle(drawing: CanvasDrawing, { path }: Found, area: Box): void {
  const { ink, expanded } = drawing.view;
  const at = toggleOf(area);
  if (!at) return;
  const context = drawing.context;
  context.beginPath();
  context.arc(at.x, at.y, toggleRadius, 0, 2 * Math.PI);
  context.fillStyle = ink.accentSoft;
  context.fill();
  context.strokeStyle = ink.accent;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(at.x - 4, at.y);
  context.lineTo(at.x + 4, at.y);
  if (!expanded.has(placeIn(path).layer)) {
    context.moveTo(at.x, at.y - 4);
    context.lineTo(at.x, at.y + 4);
  }
  context.stroke();
}

/** Under a block: what the vector would predict here. */
export function drawGuess(drawing: CanvasDrawing, { path }: Found, { x, y, width, height }: Box): void {
  const { guesses, ink, camera } = drawing.view;
  const guess = guesses[placeIn(path).layer];
  const room = 42 * camera.scale;
  if (!guess || width < 96 || room < 15) return;
  const share = percent(guess.probability);
  drawing.font(11.5);
  const text = tokenText(guess.token.text);
  const line = drawing.fitting([`best guess here: ${text} ${share}`, `${text} ${share}`, text], width - 4);
  drawing.text(line, x + width - 2, y + height + Math.min(12, room * 0.52), ink.soft, 'right');
}
