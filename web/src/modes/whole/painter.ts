// Draws what of the scene is in sight, each part in the detail that its size on the screen allows.

import { count as inWords } from '../../lib/numbers';
import { insideShown, isOpen } from './detail';
import { childOf, placeIn, rootOf, type Found } from './find';
import { drawArrows, drawClosed } from './heads';
import { pulseAt, type Pulse } from './journey';
import { drawCandidates, drawTokens } from './lists';
import { drawMatrix } from './matrices';
import { parametersOf, type Box, type Kind } from './parts';
import { CanvasDrawing } from './canvas_drawing';
import { drawPulse, drawResidualPath } from './residual_path';
import { drawGuess, drawToggle, drawSums, toggleRadius } from './block_marks';
import type { View } from './view';

const titleUnits: Partial<Record<Kind, number>> = { block: 80, attention: 58, 'feed-forward': 58, head: 62, projection: 38, entry: 44, exit: 44 };

/** Returns whether something is left for the next frame. */
export function draw(context: CanvasRenderingContext2D, view: View): boolean {
  const drawing = new CanvasDrawing(context, view);
  const { scene, ink, canvas, time, layers } = view;
  context.fillStyle = ink.paper;
  context.fillRect(0, 0, canvas.width + 1, canvas.height + 1);
  context.textBaseline = 'middle';
  view.store?.begin(view.moving);
  const root = rootOf(scene);
  const seen = scene.root.children.map((part) => childOf(root, part)).filter((found) => drawing.scrollToSelected(found));
  for (const found of seen) drawing.card(found);
  const pulse = time === null ? null : pulseAt(scene, layers, time);
  drawResidualPath(drawing, seen, pulse);
  for (const found of seen) drawInside(drawing, found, pulse);
  if (pulse && time !== null) drawPulse(drawing, pulse);
  view.store?.end();
  return drawing.unfinished;
}

/** What a part shows once its box is drawn. */
function drawInside(drawing: CanvasDrawing, found: Found, pulse: Pulse | null): void {
  const { part } = found;
  const area = drawing.onScreen(found);
  if (part.kind === 'tokens') return drawTokens(drawing, found, area);
  if (part.kind === 'candidates') return drawCandidates(drawing, found, area);
  if (part.kind === 'matrix') return drawMatrix(drawing, found, area);
  const open = isOpen(part, area.width);
  const shown = open ? insideShown(part, area.width) : 0;
  if (shown < 1) {
    drawing.context.globalAlpha = 1 - shown;
    drawClosed(drawing, found, area);
    drawing.context.globalAlpha = 1;
  }
  if (part.kind !== 'head' || shown > 0) drawTitle(drawing, found, area);
  if (!open) return;
  const children = part.children.map((child) => childOf(found, child)).filter((child) => drawing.scrollToSelected(child));
  if (shown < 1) drawing.context.globalAlpha = shown;
  if (part.kind === 'head') drawArrows(drawing, found);
  for (const child of children) {
    if (child.part.kind !== 'matrix' && child.part.kind !== 'tokens' && child.part.kind !== 'candidates') drawing.card(child);
    if (pulse && (child.part.kind === 'attention' || child.part.kind === 'feed-forward')) drawLit(drawing, child, pulse);
    drawInside(drawing, child, pulse);
    if (shown < 1) drawing.context.globalAlpha = shown;
  }
  drawing.context.globalAlpha = 1;
  if (part.kind === 'block') {
    drawSums(drawing, found);
    drawToggle(drawing, found, area);
    drawGuess(drawing, found, area);
  }
}

/** A branch shines while the data is in it. */
function drawLit(drawing: CanvasDrawing, found: Found, { branches }: Pulse): void {
  const { layer } = placeIn(found.path);
  const branch = branches.find((one) => one.layer === layer && one.half === found.part.key);
  if (!branch) return;
  const { ink } = drawing.view;
  const context = drawing.context;
  const strength = Math.sin(Math.PI * Math.min(1, branch.progress));
  drawing.rounded(drawing.onScreen(found), 12);
  context.globalAlpha = strength * 0.9;
  context.fillStyle = ink.accentSoft;
  context.fill();
  context.lineWidth = 2;
  context.strokeStyle = ink.accent;
  context.stroke();
  context.globalAlpha = 1;
}

function drawTitle(drawing: CanvasDrawing, found: Found, { x, y, width }: Box): void {
  const { ink, camera } = drawing.view;
  const { part } = found;
  const band = (titleUnits[part.kind] ?? 0) * found.scale * camera.scale;
  if (band < 11 || width < 40) return;
  const size = Math.min(16, Math.max(10.5, band * 0.6));
  const pad = Math.min(12, width * 0.05);
  const left = Math.max(x + pad, 8);
  const room = Math.min(x + width, drawing.view.canvas.width) - left - pad - (part.kind === 'block' ? 2 * toggleRadius + 8 : 0);
  const name = part.kind === 'head' ? `L${placeIn(found.path).layer}H${placeIn(found.path).head}` : part.title;
  const middle = y + Math.min(band, 40) * 0.56;
  drawing.font(size, 600);
  const main = drawing.fitting(part.kind === 'attention' || part.kind === 'feed-forward' || part.kind === 'projection' ? [name, part.term] : [name], room);
  drawing.text(main, left, middle, ink.ink);
  const used = drawing.widthOf(main) + 8;
  if (main !== name) return;
  drawing.font(size * 0.88);
  const more = part.kind === 'block' && width > 420 ? [`layer · ${inWords(parametersOf(part))} parameters`, ''] : [part.term, ''];
  drawing.text(drawing.fitting(more, room - used), left + used, middle, ink.soft);
}
