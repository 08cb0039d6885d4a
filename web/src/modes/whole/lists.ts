// The words that come in and the likeliest next ones, as lists.

import { percent, tokenText } from '../../lib/numbers';
import type { Found } from './find';
import { cellsOf, type Box } from './parts';
import type { CanvasDrawing } from './canvas_drawing';

function listLabel(drawing: CanvasDrawing, found: Found, area: Box): Box {
  const { ink } = drawing.view;
  const { part } = found;
  const units = cellsOf(part);
  const pixels = found.scale * drawing.view.camera.scale;
  // A list needs only a line for its name.
  const band = Math.min(units.y * pixels, 24);
  if (units.y * pixels >= 10 && area.width >= 30) {
    drawing.font(Math.min(13, Math.max(9.5, band * 0.6)), 600);
    drawing.text(drawing.fitting([`${part.title} · ${part.term}`, part.title], area.width), area.x, area.y + units.y * pixels - band / 2, ink.ink);
  }
  return { x: area.x, y: area.y + units.y * pixels, width: area.width, height: units.height * pixels };
}

export function drawTokens(drawing: CanvasDrawing, found: Found, area: Box): void {
  const { store, ink, pointed } = drawing.view;
  const cells = listLabel(drawing, found, area);
  const rows = found.part.rows;
  const tall = cells.height / rows;
  const context = drawing.context;
  const each = Math.max(1, Math.ceil(11 / tall));
  for (let row = 0; row < rows; ++row) {
    const y = cells.y + row * tall;
    if (y > drawing.view.canvas.height || y + tall < 0) continue;
    const chosen = store !== null && row === store.setting.position - store.setting.first;
    const isPointed = pointed?.cell?.row === row && pointed.path.join('/') === found.path.join('/');
    if (tall >= 2) {
      drawing.rounded({ x: cells.x, y: y + tall * 0.08, width: cells.width, height: tall * 0.84 }, 5);
      context.fillStyle = chosen ? ink.query : isPointed ? ink.accentSoft : ink.sunken;
      context.fill();
    }
    if (!store || (row % each !== 0 && !chosen) || cells.width < 26) continue;
    drawing.font(Math.min(15, Math.max(9, tall * 0.6)), chosen ? 600 : 400, true);
    const text = drawing.fitting([tokenText(store.setting.tokens[store.setting.first + row]?.text ?? '')], cells.width - 8);
    drawing.text(text, cells.x + Math.min(8, cells.width * 0.06), y + tall / 2, chosen ? ink.card : ink.ink);
  }
}

export function drawCandidates(drawing: CanvasDrawing, found: Found, area: Box): void {
  const { candidates, ink, store } = drawing.view;
  const cells = listLabel(drawing, found, area);
  const rows = found.part.rows;
  const tall = cells.height / rows;
  const context = drawing.context;
  const most = Math.max(...candidates.map(({ probability }) => probability), 1e-9);
  const wordsEnd = cells.x + cells.width * 0.46;
  for (let row = 0; row < rows; ++row) {
    const y = cells.y + row * tall;
    const candidate = candidates[row];
    const bar = { x: wordsEnd + 4, y: y + tall * 0.22, width: (candidate && store ? candidate.probability / most : 0.02) * Math.max(4, cells.x + cells.width - wordsEnd - (cells.width < 110 ? 6 : 54)), height: tall * 0.56 };
    context.fillStyle = row === 0 ? ink.accent : ink.strong;
    context.fillRect(bar.x, bar.y, Math.max(1, bar.width), bar.height);
    if (!candidate || tall < 9 || cells.width < 50) continue;
    drawing.font(Math.min(15, Math.max(9, tall * 0.56)), row === 0 ? 600 : 400, true);
    drawing.text(drawing.fitting([tokenText(candidate.token.text)], wordsEnd - cells.x), wordsEnd, y + tall / 2, ink.ink, 'right');
    if (cells.width < 110) continue;
    drawing.font(Math.min(13, Math.max(9, tall * 0.5)));
    drawing.text(percent(candidate.probability), bar.x + bar.width + 5, y + tall / 2, ink.soft);
  }
}
