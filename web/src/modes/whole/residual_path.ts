// The residual of the residual stream, and the token's data on its way along it.

import { tokenText } from '../../lib/numbers';
import { placeIn, type Found } from './find';
import { stripOf } from './images';
import { branchPoints, inBlock, partial, travelledPath, type Pulse } from './journey';
import { blockUnits } from './parts';
import type { CanvasDrawing } from './canvas_drawing';
import type { Point } from './scene';

function pathWidth(drawing: CanvasDrawing, scale: number): number {
  return Math.min(12, Math.max(2, scale * drawing.view.camera.scale * 26));
}

export function drawResidualPath(drawing: CanvasDrawing, seen: Found[], pulse: Pulse | null): void {
  const { scene, ink, time, layers, camera } = drawing.view;
  const wide = Math.min(12, Math.max(2, camera.scale * 5.2));
  const pale = ink.dark ? 0.4 : 0.26;
  for (const leg of scene.legs) drawing.line(leg, wide, ink.accent, pale);
  for (const { part, box, path, scale } of seen) {
    if (part.kind === 'block') {
      const layer = placeIn(path).layer;
      drawing.line([inBlock(scene, layer, 0, blockUnits.residual), inBlock(scene, layer, blockUnits.width, blockUnits.residual)], pathWidth(drawing, scale), ink.accent, pale);
      if (box.width * camera.scale > 70) for (const half of ['attention', 'mlp'] as const) drawing.line(branchPoints(scene, layer, half), pathWidth(drawing, scale) * 0.5, ink.accent, pale);
    } else {
      const middle = box.y + box.height / 2;
      const inner = part.kind === 'entry' ? [{ x: box.x + 128 * scale, y: middle }, { x: box.x + box.width, y: middle }] : [{ x: box.x, y: middle }, { x: box.x + 136 * scale, y: middle }];
      drawing.line(inner, wide, ink.accent, pale);
    }
  }
  if (!pulse || time === null) return;
  // The passed residual is continuous but for the blocks' different scales; only what is in sight is drawn.
  drawing.line(travelledPath(scene, layers, time), Math.max(2, wide * 0.72), ink.accent, 1);
  for (const { part, path, scale, box } of seen) {
    if (part.kind !== 'block' || box.width * camera.scale < 40) continue;
    const layer = placeIn(path).layer;
    const ways = [inBlock(scene, layer, 0, blockUnits.residual), inBlock(scene, layer, blockUnits.width, blockUnits.residual)];
    const isHere = pulse.layer === layer && Math.abs(pulse.at.y - ways[0].y) < 1e-6 * (1 + Math.abs(ways[0].y));
    if (pulse.layer > layer || (isHere && pulse.at.x > ways[0].x)) drawing.line([ways[0], isHere ? { x: Math.min(pulse.at.x, ways[1].x), y: ways[0].y } : ways[1]], pathWidth(drawing, scale), ink.accent, 1);
    for (const half of ['attention', 'mlp'] as const) {
      const now = pulse.branches.find((branch) => branch.layer === layer && branch.half === half)?.progress ?? (isPassed(drawing, pulse, layer, half) ? 1 : 0);
      if (now > 0) drawing.line(partial(branchPoints(scene, layer, half), now), pathWidth(drawing, scale) * 0.5, ink.accent, 1);
    }
  }
}

function isPassed(drawing: CanvasDrawing, pulse: Pulse, layer: number, half: 'attention' | 'mlp'): boolean {
  if (pulse.layer !== layer) return pulse.layer > layer;
  const { join } = half === 'attention' ? blockUnits.attention : blockUnits.feedForward;
  const at = inBlock(drawing.view.scene, layer, join, blockUnits.residual);
  return pulse.at.x >= at.x && Math.abs(pulse.at.y - at.y) < 1e-6 * (1 + Math.abs(at.y));
}

/** The token's data on its way: its word and its vector. */
export function drawPulse(drawing: CanvasDrawing, { at, branches }: Pulse): void {
  const { ink, carried, store, canvas } = drawing.view;
  const context = drawing.context;
  const { x, y } = drawing.toScreen(at);
  const dot = (place: Point, radius: number) => {
    context.globalAlpha = 0.25;
    context.fillStyle = ink.query;
    context.beginPath();
    context.arc(place.x, place.y, radius * 2.1, 0, 2 * Math.PI);
    context.fill();
    context.globalAlpha = 1;
    context.beginPath();
    context.arc(place.x, place.y, radius, 0, 2 * Math.PI);
    context.fill();
  };
  for (const { points, progress } of branches) {
    if (progress >= 1) continue;
    const part = partial(points, progress);
    dot(drawing.toScreen(part[part.length - 1]), 5);
  }
  dot({ x, y }, 6.5);
  // At rest beside the words, the word is named there.
  if (!store || (drawing.view.time ?? 0) < 0.2 || x < -200 || x > canvas.width + 200 || y < -200 || y > canvas.height + 200) return;
  const word = tokenText(store.setting.tokens[store.setting.position]?.text ?? '');
  drawing.font(12, 600, true);
  const text = drawing.fitting([word], 120);
  const strip = 76;
  const width = Math.max(strip, drawing.widthOf(text)) + 16;
  const height = carried ? 40 : 24;
  const left = Math.min(canvas.width - width - 4, Math.max(4, x - width / 2));
  const top = y - height - 14 < 4 ? y + 14 : y - height - 14;
  drawing.rounded({ x: left, y: top, width, height }, 8);
  context.fillStyle = ink.card;
  context.fill();
  context.lineWidth = 1.5;
  context.strokeStyle = ink.query;
  context.stroke();
  drawing.text(text, left + width / 2, top + 12, ink.query, 'center');
  if (!carried) return;
  context.imageSmoothingEnabled = true;
  context.drawImage(stripOf(carried, ink.dark), left + 8, top + 22, width - 16, 11);
  context.strokeStyle = ink.line;
  context.lineWidth = 1;
  context.strokeRect(left + 8, top + 22, width - 16, 11);
}
