// What a block shows beside its parts: where branches are added, the sign that expands it, and its guess.

import { percent, tokenText } from '../../lib/numbers';
import { placeIn, type Found } from './find';
import { inBlock } from './journey';
import { blockUnits, type Box } from './parts';
import type { Pen } from './pen';
import type { Point } from './scene';

/** Radius in pixels of the sign that expands and collapses a block. */
export const signRadius = 9;

/** Where a block's sign is, on the screen. */
export function signOf({ x, y, width }: Box): Point | null {
  return width >= 84 ? { x: x + width - signRadius - 6, y: y + signRadius + 6 } : null;
}

/** The signs + where a branch is added to the road. */
export function drawSums(pen: Pen, { path, scale }: Found): void {
  const { scene, ink, camera } = pen.view;
  const pixels = scale * camera.scale;
  const radius = Math.min(13, Math.max(2.5, pixels * 26));
  const context = pen.context;
  for (const { join } of [blockUnits.attention, blockUnits.feedForward]) {
    const { x, y } = pen.toScreen(inBlock(scene, placeIn(path).layer, join, blockUnits.road));
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

/** The sign that expands or collapses a block. */
export function drawSign(pen: Pen, { path }: Found, area: Box): void {
  const { ink, expanded } = pen.view;
  const at = signOf(area);
  if (!at) return;
  const context = pen.context;
  context.beginPath();
  context.arc(at.x, at.y, signRadius, 0, 2 * Math.PI);
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
export function drawGuess(pen: Pen, { path }: Found, { x, y, width, height }: Box): void {
  const { guesses, ink, camera } = pen.view;
  const guess = guesses[placeIn(path).layer];
  const room = 42 * camera.scale;
  if (!guess || width < 96 || room < 15) return;
  const share = percent(guess.probability);
  pen.font(11.5);
  const text = tokenText(guess.token.text);
  const line = pen.fitting([`best guess here: ${text} ${share}`, `${text} ${share}`, text], width - 4);
  pen.text(line, x + width - 2, y + height + Math.min(12, room * 0.52), ink.soft, 'right');
}
