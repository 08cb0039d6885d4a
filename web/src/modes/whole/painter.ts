// Draws what of the scene is in sight, each part in the detail that its size on the screen allows.

import { extentOf, inkOn, valueColour, weightColour } from '../../lib/colour';
import { count as inWords, percent, tokenText, value } from '../../lib/numbers';
import type { Token } from '../../lib/types';
import type { Camera, Size } from './camera';
import { insideShown, isOpen, isVisible, least, numberCell, visibleCells } from './detail';
import { childOf, placeIn, rootOf, type Cell, type Found } from './find';
import { imageOf, sheetOf, stripOf } from './images';
import { fitting, widthOf, type Ink } from './ink';
import { branchPoints, inBlock, partial, passedRoad, pulseAt, type Pulse } from './journey';
import { blockUnits, cellsOf, parametersOf, type Box, type Kind, type Part } from './parts';
import type { Point, Scene } from './scene';
import { mostPieces, type Store } from './store';
import { columnName, rowName } from './words';

export interface Guess {
  token: Token;
  probability: number;
}

export interface View {
  scene: Scene;
  camera: Camera;
  canvas: Size;
  ink: Ink;
  layers: number;
  /** Null where only a shape is shown. */
  store: Store | null;
  candidates: Guess[];
  /** The logit lens after each block, for the chosen token. */
  guesses: (Guess | null)[];
  /** Where the token's data is, in stations; null where it does not move. */
  time: number | null;
  /** The token's vector there. */
  carried: Float32Array | null;
  pointed: { path: string[]; cell: Cell | null } | null;
  /** The cell that the keyboard is at, in the part shown. */
  cursor: { path: string[]; cell: Cell } | null;
  expanded: Set<number>;
}

const titleUnits: Partial<Record<Kind, number>> = { block: 80, attention: 58, 'feed-forward': 58, head: 62, projection: 38, entry: 44, exit: 44 };
/** Radius in pixels of the sign that expands and collapses a block. */
export const signRadius = 9;

/** Where a block's sign is, on the screen. */
export function signOf({ x, y, width }: Box): Point | null {
  return width >= 84 ? { x: x + width - signRadius - 6, y: y + signRadius + 6 } : null;
}

export class Painter {
  #sheet: { data: Float32Array; dark: boolean; image: HTMLCanvasElement; side: number } | null = null;
  #strip: { data: Float32Array; dark: boolean; image: HTMLCanvasElement } | null = null;
  #context!: CanvasRenderingContext2D;
  #view!: View;

  draw(context: CanvasRenderingContext2D, view: View): void {
    this.#context = context;
    this.#view = view;
    const { scene, ink, canvas, time, layers } = view;
    context.fillStyle = ink.paper;
    context.fillRect(0, 0, canvas.width + 1, canvas.height + 1);
    context.textBaseline = 'middle';
    view.store?.begin();
    const root = rootOf(scene);
    const seen = scene.root.children.map((part) => childOf(root, part)).filter((found) => this.#inSight(found));
    for (const found of seen) this.#card(found);
    const pulse = time === null ? null : pulseAt(scene, layers, time);
    this.#road(seen, pulse);
    for (const found of seen) this.#inside(found, pulse);
    if (pulse && time !== null) this.#pulse(pulse);
    view.store?.end();
  }

  /** A part's box in pixels. */
  #onScreen({ box }: { box: Box }): Box {
    const { camera, canvas } = this.#view;
    const { scale } = camera;
    return { x: (box.x - camera.x) * scale + canvas.width / 2, y: (box.y - camera.y) * scale + canvas.height / 2, width: box.width * scale, height: box.height * scale };
  }

  #toScreen({ x, y }: Point): Point {
    const { camera, canvas } = this.#view;
    return { x: (x - camera.x) * camera.scale + canvas.width / 2, y: (y - camera.y) * camera.scale + canvas.height / 2 };
  }

  #inSight(found: Found): boolean {
    const { x, y, width, height } = this.#onScreen(found);
    return width >= least && isVisible(x, y, width, height, this.#view.canvas);
  }

  #font(size: number, weight = 400, mono = false): void {
    const { ink } = this.#view;
    this.#context.font = `${weight} ${Math.round(2 * size) / 2}px ${mono ? ink.mono : ink.sans}`;
  }

  #text(text: string, x: number, y: number, colour: string, align: CanvasTextAlign = 'left'): void {
    this.#context.fillStyle = colour;
    this.#context.textAlign = align;
    this.#context.fillText(text, x, y);
  }

  #rounded({ x, y, width, height }: Box, radius: number): void {
    const context = this.#context;
    context.beginPath();
    // Far beyond the canvas, corners are out of sight and large numbers lose precision.
    const { canvas } = this.#view;
    const far = 200;
    const [left, top] = [Math.max(x, -far), Math.max(y, -far)];
    const [right, bottom] = [Math.min(x + width, canvas.width + far), Math.min(y + height, canvas.height + far)];
    context.roundRect(left, top, right - left, bottom - top, Math.min(radius, width / 2, height / 2));
  }

  #card(found: Found): void {
    const { ink, pointed } = this.#view;
    const area = this.#onScreen(found);
    const context = this.#context;
    this.#rounded(area, Math.min(14, area.width * 0.06));
    context.fillStyle = found.part.kind === 'attention' || found.part.kind === 'feed-forward' ? ink.sunken : ink.card;
    context.fill();
    const isPointed = pointed !== null && pointed.path.join('/') === found.path.join('/');
    context.lineWidth = isPointed ? 2 : 1;
    context.strokeStyle = isPointed ? ink.accent : ink.line;
    context.stroke();
  }

  #line(points: Point[], width: number, colour: string, alpha: number): void {
    const context = this.#context;
    context.beginPath();
    points.forEach((point, index) => {
      const { x, y } = this.#toScreen(point);
      if (index === 0) context.moveTo(x, y);
      else if (index === points.length - 1) context.lineTo(x, y);
      else {
        const next = this.#toScreen(points[index + 1]);
        const before = this.#toScreen(points[index - 1]);
        const radius = Math.min(14, Math.hypot(next.x - x, next.y - y) / 2, Math.hypot(before.x - x, before.y - y) / 2);
        context.arcTo(x, y, next.x, next.y, radius);
      }
    });
    context.lineWidth = width;
    context.lineCap = 'butt';
    context.strokeStyle = colour;
    context.globalAlpha = alpha;
    context.stroke();
    context.globalAlpha = 1;
  }

  #roadWidth(scale: number): number {
    return Math.min(12, Math.max(2, scale * this.#view.camera.scale * 26));
  }

  #road(seen: Found[], pulse: Pulse | null): void {
    const { scene, ink, time, layers, camera } = this.#view;
    const wide = Math.min(12, Math.max(2, camera.scale * 5.2));
    const pale = ink.dark ? 0.4 : 0.26;
    for (const leg of scene.legs) this.#line(leg, wide, ink.accent, pale);
    for (const { part, box, path, scale } of seen) {
      if (part.kind === 'block') {
        const layer = placeIn(path).layer;
        this.#line([inBlock(scene, layer, 0, blockUnits.road), inBlock(scene, layer, blockUnits.width, blockUnits.road)], this.#roadWidth(scale), ink.accent, pale);
        if (box.width * camera.scale > 70) for (const half of ['attention', 'mlp'] as const) this.#line(branchPoints(scene, layer, half), this.#roadWidth(scale) * 0.5, ink.accent, pale);
      } else {
        const middle = box.y + box.height / 2;
        const inner = part.kind === 'entry' ? [{ x: box.x + 128 * scale, y: middle }, { x: box.x + box.width, y: middle }] : [{ x: box.x, y: middle }, { x: box.x + 136 * scale, y: middle }];
        this.#line(inner, wide, ink.accent, pale);
      }
    }
    if (!pulse || time === null) return;
    // The passed road is continuous but for the blocks' different scales; only what is in sight is drawn.
    this.#line(passedRoad(scene, layers, time), Math.max(2, wide * 0.72), ink.accent, 1);
    for (const { part, path, scale, box } of seen) {
      if (part.kind !== 'block' || box.width * camera.scale < 40) continue;
      const layer = placeIn(path).layer;
      const ways = [inBlock(scene, layer, 0, blockUnits.road), inBlock(scene, layer, blockUnits.width, blockUnits.road)];
      const isHere = pulse.layer === layer && Math.abs(pulse.at.y - ways[0].y) < 1e-6 * (1 + Math.abs(ways[0].y));
      if (pulse.layer > layer || (isHere && pulse.at.x > ways[0].x)) this.#line([ways[0], isHere ? { x: Math.min(pulse.at.x, ways[1].x), y: ways[0].y } : ways[1]], this.#roadWidth(scale), ink.accent, 1);
      for (const half of ['attention', 'mlp'] as const) {
        const now = pulse.branch?.layer === layer && pulse.branch.half === half ? pulse.branch.progress : this.#isPassed(pulse, layer, half) ? 1 : 0;
        if (now > 0) this.#line(partial(branchPoints(scene, layer, half), now), this.#roadWidth(scale) * 0.5, ink.accent, 1);
      }
    }
  }

  #isPassed(pulse: Pulse, layer: number, half: 'attention' | 'mlp'): boolean {
    if (pulse.layer !== layer) return pulse.layer > layer;
    const { join } = half === 'attention' ? blockUnits.attention : blockUnits.feedForward;
    const at = inBlock(this.#view.scene, layer, join, blockUnits.road);
    return pulse.at.x >= at.x && Math.abs(pulse.at.y - at.y) < 1e-6 * (1 + Math.abs(at.y));
  }

  /** What a part shows once its box is drawn. */
  #inside(found: Found, pulse: Pulse | null): void {
    const { part } = found;
    const area = this.#onScreen(found);
    if (part.kind === 'tokens') return this.#tokens(found, area);
    if (part.kind === 'candidates') return this.#candidates(found, area);
    if (part.kind === 'matrix') return this.#matrix(found, area);
    const open = isOpen(part, area.width);
    const shown = open ? insideShown(part, area.width) : 0;
    if (shown < 1) {
      this.#context.globalAlpha = 1 - shown;
      this.#summary(found, area);
      this.#context.globalAlpha = 1;
    }
    if (part.kind !== 'head' || shown > 0) this.#title(found, area);
    if (!open) return;
    const children = part.children.map((child) => childOf(found, child)).filter((child) => this.#inSight(child));
    if (shown < 1) this.#context.globalAlpha = shown;
    if (part.kind === 'head') this.#arrows(found);
    for (const child of children) {
      if (child.part.kind !== 'matrix' && child.part.kind !== 'tokens' && child.part.kind !== 'candidates') this.#card(child);
      if (pulse?.branch && (child.part.kind === 'attention' || child.part.kind === 'feed-forward')) this.#lit(child, pulse);
      this.#inside(child, pulse);
      if (shown < 1) this.#context.globalAlpha = shown;
    }
    this.#context.globalAlpha = 1;
    if (part.kind === 'block') {
      this.#sums(found);
      this.#sign(found, area);
      this.#guess(found, area);
    }
  }

  /** A branch shines while the data is in it. */
  #lit(found: Found, { branch }: Pulse): void {
    const { layer } = placeIn(found.path);
    if (!branch || branch.layer !== layer || found.part.key !== branch.half) return;
    const { ink } = this.#view;
    const context = this.#context;
    const strength = Math.sin(Math.PI * Math.min(1, branch.progress));
    this.#rounded(this.#onScreen(found), 12);
    context.globalAlpha = strength * 0.9;
    context.fillStyle = ink.accentSoft;
    context.fill();
    context.lineWidth = 2;
    context.strokeStyle = ink.accent;
    context.stroke();
    context.globalAlpha = 1;
  }

  #title(found: Found, { x, y, width }: Box): void {
    const { ink, camera } = this.#view;
    const { part } = found;
    const band = (titleUnits[part.kind] ?? 0) * found.scale * camera.scale;
    if (band < 11 || width < 40) return;
    const size = Math.min(16, Math.max(10.5, band * 0.6));
    const context = this.#context;
    const pad = Math.min(12, width * 0.05);
    const left = Math.max(x + pad, 8);
    const room = Math.min(x + width, this.#view.canvas.width) - left - pad - (part.kind === 'block' ? 2 * signRadius + 8 : 0);
    const name = part.kind === 'head' ? `L${placeIn(found.path).layer}H${placeIn(found.path).head}` : part.title;
    const middle = y + Math.min(band, 40) * 0.56;
    this.#font(size, 600);
    const main = fitting(context, part.kind === 'attention' || part.kind === 'feed-forward' || part.kind === 'projection' ? [name, part.term] : [name], room);
    this.#text(main, left, middle, ink.ink);
    const used = widthOf(context, main) + 8;
    if (main !== name) return;
    this.#font(size * 0.88);
    const more = part.kind === 'block' && width > 420 ? [`layer · ${inWords(parametersOf(part))} parameters`, ''] : [part.term, ''];
    this.#text(fitting(context, more, room - used), left + used, middle, ink.soft);
  }

  /** A closed part: a head's pattern, or a plain box. */
  #summary(found: Found, area: Box): void {
    const { part, path } = found;
    const { ink } = this.#view;
    const context = this.#context;
    if (part.kind !== 'head') {
      if (part.kind === 'block') this.#two(area);
      else if (part.kind === 'attention') this.#many(area);
      return;
    }
    const side = Math.min(area.height * 0.84, area.width * 0.84);
    if (side < 3) return;
    const { layer, head } = placeIn(path);
    const named = area.width >= 58;
    const x = named ? area.x + area.width - side - area.height * 0.08 : area.x + (area.width - side) / 2;
    const y = area.y + (area.height - side) / 2;
    const sheet = this.#thumbnails();
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
      this.#font(Math.min(13, Math.max(10, area.height * 0.22)), 600);
      this.#text(fitting(context, [`L${layer}H${head}`, `H${head}`, ''], x - area.x - 8), area.x + 6, area.y + area.height / 2, ink.soft);
    }
  }

  /** The two halves of a block that is too small to be opened. */
  #two({ x, y, width, height }: Box): void {
    const context = this.#context;
    context.fillStyle = this.#view.ink.line;
    for (const left of [0.03, 0.53]) context.fillRect(x + left * width, y + 0.09 * height, 0.44 * width, 0.49 * height);
  }

  /** Heads too small to be drawn one by one. */
  #many({ x, y, width, height }: Box): void {
    const context = this.#context;
    context.fillStyle = this.#view.ink.line;
    context.fillRect(x + 0.03 * width, y + 0.13 * height, 0.72 * width, 0.83 * height);
    context.fillRect(x + 0.78 * width, y + 0.13 * height, 0.2 * width, 0.83 * height);
  }

  #thumbnails(): { image: HTMLCanvasElement; side: number } | null {
    const { store, ink } = this.#view;
    const array = store?.thumbnails();
    if (!array) return null;
    if (this.#sheet?.data !== array.data || this.#sheet.dark !== ink.dark) this.#sheet = { ...sheetOf(array.shape, array.data, ink.dark), data: array.data, dark: ink.dark };
    return this.#sheet;
  }

  /** How numbers flow in a head. */
  #arrows(found: Found): void {
    const { ink, camera } = this.#view;
    const pixels = found.scale * camera.scale;
    if (pixels < 0.25) return;
    const context = this.#context;
    const part = (key: string) => this.#onScreen(childOf(found, found.part.children.find((child) => child.key === key)!));
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
    between(right(part('q')), left(part('pattern'), 0.35), ink.query);
    between(right(part('k')), left(part('pattern'), 0.75), ink.key);
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

  /** The signs + where a branch is added to the road. */
  #sums({ path, scale }: Found): void {
    const { scene, ink, camera } = this.#view;
    const pixels = scale * camera.scale;
    const radius = Math.min(13, Math.max(2.5, pixels * 26));
    const context = this.#context;
    for (const { join } of [blockUnits.attention, blockUnits.feedForward]) {
      const { x, y } = this.#toScreen(inBlock(scene, placeIn(path).layer, join, blockUnits.road));
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
  #sign({ path }: Found, area: Box): void {
    const { ink, expanded } = this.#view;
    const at = signOf(area);
    if (!at) return;
    const context = this.#context;
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
  #guess({ path }: Found, { x, y, width, height }: Box): void {
    const { guesses, ink, camera } = this.#view;
    const guess = guesses[placeIn(path).layer];
    const room = 42 * camera.scale;
    if (!guess || width < 96 || room < 15) return;
    const context = this.#context;
    const share = percent(guess.probability);
    this.#font(11.5);
    const text = tokenText(guess.token.text);
    const line = fitting(context, [`best guess here: ${text} ${share}`, `${text} ${share}`, text], width - 4);
    this.#text(line, x + width - 2, y + height + Math.min(12, room * 0.52), ink.soft, 'right');
  }

  #label(part: Part, { x, y, width, height }: Box): void {
    const { ink, canvas } = this.#view;
    const band = 0.17 * height;
    if (band < 8.5 || width < 26) return;
    const context = this.#context;
    const size = Math.min(14, Math.max(9.5, band * 0.62));
    const bottom = y + band - size * 0.62;
    const left = Math.max(x, 6);
    const room = Math.min(x + width, canvas.width) - left;
    const colour = part.tone === 'plain' ? ink.ink : ink[part.tone];
    this.#font(size, 600);
    let main = fitting(context, [part.title, part.term, part.title], room);
    if (main.endsWith('…')) {
      this.#font(Math.max(9.5, size * 0.76), 600);
      main = fitting(context, [part.title, part.term, part.title], room);
    }
    const used = widthOf(context, main) + 6;
    if (part.key.startsWith('norm')) {
      // The branch runs behind it.
      context.fillStyle = ink.card;
      context.fillRect(left, y + 1, used, band - 2);
    }
    this.#text(main, left, bottom, colour);
    if (main !== part.title) return;
    this.#font(size * 0.9);
    this.#text(fitting(context, [`${part.term} · ${part.rows.toLocaleString('en-US')} × ${part.columns.toLocaleString('en-US')}`, part.term, ''], room - used), left + used, bottom, ink.soft);
  }

  #matrix(found: Found, area: Box): void {
    const { part, path } = found;
    const { store, ink, canvas, camera } = this.#view;
    const context = this.#context;
    const pixels = found.scale * camera.scale;
    const units = cellsOf(part);
    const cells = { x: area.x + units.x * pixels, y: area.y + units.y * pixels, width: units.width * pixels, height: units.height * pixels };
    this.#label(part, area);
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
      if (numbers && numbers.filled > 0) this.#cells(found, cells, sight, numbers);
      if (isWeight && numbers && numbers.filled === 0 && frame.width >= 74 && frame.height >= 36) this.#hint(part, frame, sight, near);
    } else if (!store && cells.width >= 70 && cells.height > 26) {
      this.#font(11);
      this.#text(fitting(context, [`${part.rows.toLocaleString('en-US')} × ${part.columns.toLocaleString('en-US')}`, ''], frame.width - 8), frame.x + frame.width / 2, frame.y + frame.height / 2, ink.soft, 'center');
    }
    context.strokeStyle = part.tone === 'plain' ? ink.strong : ink[part.tone];
    context.lineWidth = 1;
    context.globalAlpha *= 0.6;
    context.strokeRect(frame.x, frame.y, frame.width, frame.height);
    context.globalAlpha = 1;
    this.#marks(found, cells);
  }

  /** Weights that are not loaded. */
  #hint(part: Part, frame: Box, sight: { left: number; right: number }, near: boolean): void {
    const { ink } = this.#view;
    const many = !near || sight.right - sight.left > mostPieces || (part.source?.from === 'weights' && part.source.of === 'output');
    this.#font(11.5);
    const lines = many ? ['zoom in to', 'load weights'] : ['loading'];
    lines.forEach((line, index) => this.#text(line, frame.x + frame.width / 2, frame.y + frame.height / 2 + (index - (lines.length - 1) / 2) * 15, ink.ink, 'center'));
  }

  #cells(found: Found, area: Box, sight: { top: number; bottom: number; left: number; right: number }, numbers: NonNullable<ReturnType<Store['activation']>>): void {
    const { part } = found;
    const { ink, canvas } = this.#view;
    const context = this.#context;
    const image = imageOf(numbers, ink.dark);
    const [wide, tall] = [area.width / part.columns, area.height / part.rows];
    const [across, down] = [sight.right - sight.left, sight.bottom - sight.top];
    context.imageSmoothingEnabled = wide < 1 || tall < 1;
    context.imageSmoothingQuality = 'medium';
    context.drawImage(image, sight.left, sight.top, across, down, area.x + sight.left * wide, area.y + sight.top * tall, across * wide, down * tall);
    if (wide >= numberCell.width && tall >= numberCell.height) {
      this.#font(Math.min(15, Math.max(10, Math.min(tall * 0.5, wide * 0.19))));
      for (let row = sight.top; row < sight.bottom; ++row) {
        for (let column = sight.left; column < sight.right; ++column) {
          const number = numbers.data[row * part.columns + column];
          if (Number.isNaN(number)) continue;
          const colour = numbers.kind === 'weight' ? weightColour(number, numbers.extent, ink.dark) : valueColour(number, numbers.extent, ink.dark);
          const text = numbers.kind === 'weight' ? percent(number) : wide > 70 ? value(number, 4) : number.toFixed(2).replace('-', '\u2212');
          this.#text(text, area.x + (column + 0.5) * wide, area.y + (row + 0.5) * tall, inkOn(colour), 'center');
        }
      }
    }
    this.#names(found, area, sight, wide, tall);
    // The chosen token's row.
    const { store } = this.#view;
    if (store && part.source?.from !== 'weights' && tall >= 3) {
      const row = store.setting.position - store.setting.first;
      context.strokeStyle = ink.query;
      context.lineWidth = Math.min(2, tall / 3);
      const left = Math.max(area.x, -4);
      context.strokeRect(left, area.y + row * tall, Math.min(area.x + area.width, canvas.width + 4) - left, tall);
    }
  }

  /** Names of rows and columns, which stay in sight. */
  #names(found: Found, area: Box, sight: { top: number; bottom: number; left: number; right: number }, wide: number, tall: number): void {
    const { part } = found;
    const { store, ink, canvas, candidates } = this.#view;
    if (!store || area.width < 0.4 * canvas.width) return;
    const context = this.#context;
    const tokens = candidates.map(({ token }) => token);
    const chip = (text: string, x: number, y: number, align: 'right' | 'center') => {
      const width = widthOf(context, text) + 8;
      const left = align === 'right' ? Math.max(4, x - width) : x - width / 2;
      context.globalAlpha = 0.88;
      context.fillStyle = ink.paper;
      context.fillRect(left, y - 8, width, 16);
      context.globalAlpha = 1;
      this.#text(text, left + 4, y, ink.soft);
    };
    this.#font(11, 400, true);
    if (tall >= 14) {
      for (let row = sight.top; row < sight.bottom; ++row) {
        const y = area.y + (row + 0.5) * tall;
        if (y > 8 && y < canvas.height - 8) chip(fitting(context, [rowName(part, store.setting, tokens, row)], 96), area.x - 3, y, 'right');
      }
    }
    if (wide >= 30) {
      const y = Math.min(area.y + area.height + 10, canvas.height - 10);
      for (let column = sight.left; column < sight.right; ++column) chip(fitting(context, [columnName(part, store.setting, column), ''], wide - 8), area.x + (column + 0.5) * wide, y, 'center');
    }
  }

  /** The cell under the pointer and the keyboard's cell. */
  #marks({ path, part }: Found, area: Box): void {
    const { pointed, cursor, ink } = this.#view;
    const context = this.#context;
    const here = path.join('/');
    for (const mark of [pointed, cursor]) {
      if (!mark?.cell || mark.path.join('/') !== here) continue;
      const [wide, tall] = [area.width / part.columns, area.height / part.rows];
      context.strokeStyle = ink.ink;
      context.lineWidth = 2;
      context.strokeRect(area.x + mark.cell.column * wide, area.y + mark.cell.row * tall, wide, tall);
    }
  }

  #listLabel(found: Found, area: Box): Box {
    const { ink } = this.#view;
    const { part } = found;
    const units = cellsOf(part);
    const pixels = found.scale * this.#view.camera.scale;
    // A list needs only a line for its name.
    const band = Math.min(units.y * pixels, 24);
    if (units.y * pixels >= 10 && area.width >= 30) {
      this.#font(Math.min(13, Math.max(9.5, band * 0.6)), 600);
      this.#text(fitting(this.#context, [`${part.title} · ${part.term}`, part.title], area.width), area.x, area.y + units.y * pixels - band / 2, ink.ink);
    }
    return { x: area.x, y: area.y + units.y * pixels, width: area.width, height: units.height * pixels };
  }

  #tokens(found: Found, area: Box): void {
    const { store, ink, pointed } = this.#view;
    const cells = this.#listLabel(found, area);
    const rows = found.part.rows;
    const tall = cells.height / rows;
    const context = this.#context;
    const each = Math.max(1, Math.ceil(11 / tall));
    for (let row = 0; row < rows; ++row) {
      const y = cells.y + row * tall;
      if (y > this.#view.canvas.height || y + tall < 0) continue;
      const chosen = store !== null && row === store.setting.position - store.setting.first;
      const isPointed = pointed?.cell?.row === row && pointed.path.join('/') === found.path.join('/');
      if (tall >= 2) {
        this.#rounded({ x: cells.x, y: y + tall * 0.08, width: cells.width, height: tall * 0.84 }, 5);
        context.fillStyle = chosen ? ink.query : isPointed ? ink.accentSoft : ink.sunken;
        context.fill();
      }
      if (!store || (row % each !== 0 && !chosen) || cells.width < 26) continue;
      this.#font(Math.min(15, Math.max(9, tall * 0.6)), chosen ? 600 : 400, true);
      const text = fitting(context, [tokenText(store.setting.tokens[store.setting.first + row]?.text ?? '')], cells.width - 8);
      this.#text(text, cells.x + Math.min(8, cells.width * 0.06), y + tall / 2, chosen ? ink.card : ink.ink);
    }
  }

  #candidates(found: Found, area: Box): void {
    const { candidates, ink, store } = this.#view;
    const cells = this.#listLabel(found, area);
    const rows = found.part.rows;
    const tall = cells.height / rows;
    const context = this.#context;
    const most = Math.max(...candidates.map(({ probability }) => probability), 1e-9);
    const wordsEnd = cells.x + cells.width * 0.46;
    for (let row = 0; row < rows; ++row) {
      const y = cells.y + row * tall;
      const candidate = candidates[row];
      const bar = { x: wordsEnd + 4, y: y + tall * 0.22, width: (candidate && store ? candidate.probability / most : 0.02) * Math.max(4, cells.x + cells.width - wordsEnd - (cells.width < 110 ? 6 : 54)), height: tall * 0.56 };
      context.fillStyle = row === 0 ? ink.accent : ink.strong;
      context.fillRect(bar.x, bar.y, Math.max(1, bar.width), bar.height);
      if (!candidate || tall < 9 || cells.width < 50) continue;
      this.#font(Math.min(15, Math.max(9, tall * 0.56)), row === 0 ? 600 : 400, true);
      this.#text(fitting(context, [tokenText(candidate.token.text)], wordsEnd - cells.x), wordsEnd, y + tall / 2, ink.ink, 'right');
      if (cells.width < 110) continue;
      this.#font(Math.min(13, Math.max(9, tall * 0.5)));
      this.#text(percent(candidate.probability), bar.x + bar.width + 5, y + tall / 2, ink.soft);
    }
  }

  /** The token's data on its way: its word and its vector. */
  #pulse({ at, branch }: Pulse): void {
    const { ink, carried, store, canvas } = this.#view;
    const context = this.#context;
    const { x, y } = this.#toScreen(at);
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
    if (branch && branch.progress < 1) {
      const part = partial(branch.points, branch.progress);
      dot(this.#toScreen(part[part.length - 1]), 5);
    }
    dot({ x, y }, 6.5);
    // At rest beside the words, the word is named there.
    if (!store || (this.#view.time ?? 0) < 0.2 || x < -200 || x > canvas.width + 200 || y < -200 || y > canvas.height + 200) return;
    const word = tokenText(store.setting.tokens[store.setting.position]?.text ?? '');
    this.#font(12, 600, true);
    const text = fitting(context, [word], 120);
    const strip = 76;
    const width = Math.max(strip, widthOf(context, text)) + 16;
    const height = carried ? 40 : 24;
    const left = Math.min(canvas.width - width - 4, Math.max(4, x - width / 2));
    const top = y - height - 14 < 4 ? y + 14 : y - height - 14;
    this.#rounded({ x: left, y: top, width, height }, 8);
    context.fillStyle = ink.card;
    context.fill();
    context.lineWidth = 1.5;
    context.strokeStyle = ink.query;
    context.stroke();
    this.#text(text, left + width / 2, top + 12, ink.query, 'center');
    if (!carried) return;
    if (this.#strip?.data !== carried || this.#strip.dark !== ink.dark) this.#strip = { data: carried, dark: ink.dark, image: stripOf(carried, extentOf(carried), ink.dark) };
    context.imageSmoothingEnabled = true;
    context.drawImage(this.#strip.image, left + 8, top + 22, width - 16, 11);
    context.strokeStyle = ink.line;
    context.lineWidth = 1;
    context.strokeRect(left + 8, top + 22, width - 16, 11);
  }
}
