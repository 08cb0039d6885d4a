// The model laid out: blocks in lines like a text, the residual of the residual stream through all of them.

import { isParallel } from '../../lib/architecture';
import { blockParts, blockUnits, cellsOf, entryPart, entryWidth, exitPart, exitWidth, type Box, type Part, type Subject } from './parts';

export interface Point {
  x: number;
  y: number;
}

export interface Scene {
  root: Part;
  /** The residual stream between the blocks: `legs[0]` leads to block 0, the last one to the exit. */
  legs: Point[][];
  /** Where the chosen token's data sets out. */
  start: Point;
  columns: number;
  /** Whether both halves of a block leave the residual stream before either is added. */
  parallel: boolean;
}

const blockScale = 0.22;
/** An expanded block is this many times as large. */
export const expandedTimes = 3.2;
const gap = 40;
const lineGap = 84;
const small = { width: blockUnits.width * blockScale, height: blockUnits.height * blockScale };

function endScale(gridHeight: number): number {
  return Math.min(3.2, Math.max(1, gridHeight / 480));
}

const stackedHeight = 320;

function stackedScale(gridWidth: number): number {
  return Math.min(3.2, Math.max(1, gridWidth / 660));
}

function endHeight(gridHeight: number): number {
  return Math.max(300, Math.min(gridHeight, 480 * endScale(gridHeight)));
}

/** How many blocks stand in a line, and whether the words and the prediction are above and below them rather than beside. */
export interface Arrangement {
  columns: number;
  stacked: boolean;
}

const besides = 3.6 * gap;

function sizeOf(layers: number, { columns, stacked }: Arrangement): { width: number; height: number } {
  const rows = Math.ceil(layers / columns);
  const grid = { width: columns * (small.width + gap) - gap, height: rows * small.height + (rows - 1) * lineGap };
  const scale = stacked ? stackedScale(grid.width) : endScale(grid.height);
  if (stacked) return { width: Math.max(grid.width, scale * exitWidth) + 1.2 * gap, height: grid.height + 2 * (lineGap + stackedHeight * scale) };
  return { width: grid.width + besides + scale * (entryWidth + exitWidth), height: Math.max(grid.height, endHeight(grid.height)) };
}

/** The arrangement that suits a canvas of this width : height. */
export function arrangementFor(layers: number, aspect: number): Arrangement {
  let best: Arrangement & { scale: number } = { columns: 1, stacked: false, scale: 0 };
  for (const stacked of [false, true]) {
    for (let columns = 1; columns <= layers; ++columns) {
      const size = sizeOf(layers, { columns, stacked });
      const scale = Math.min(aspect / size.width, 1 / size.height);
      // Full lines look calmer than a last line that is nearly empty.
      const filled = layers / (columns * Math.ceil(layers / columns));
      if (scale * (0.65 + 0.35 * filled) > best.scale) best = { columns, stacked, scale: scale * (0.65 + 0.35 * filled) };
    }
  }
  return { columns: best.columns, stacked: best.stacked };
}

/** `expansion` of each block, from 0 (collapsed) to 1 (expanded). */
export function layOut(subject: Subject, { columns, stacked }: Arrangement, expansion: ArrayLike<number>, inside: Part[] = blockParts(subject)): Scene {
  const { layers } = subject.shape;
  const rows = Math.ceil(layers / columns);
  const times = (layer: number) => 1 + (expandedTimes - 1) * (expansion[layer] ?? 0);
  const residualShare = blockUnits.residual / blockUnits.height;

  const blocks: Part[] = [];
  const lines: { residual: number; right: number; bottom: number }[] = [];
  let top = 0;
  for (let row = 0; row < rows; ++row) {
    const inRow = Array.from({ length: Math.min(columns, layers - row * columns) }, (_, index) => row * columns + index);
    const tallest = small.height * Math.max(...inRow.map(times));
    const residual = top + residualShare * tallest;
    let x = 0;
    for (const layer of inRow) {
      const [width, height] = [small.width * times(layer), small.height * times(layer)];
      blocks.push({
        key: `b${layer}`, kind: 'block', box: { x, y: residual - residualShare * height, width, height }, inner: { width: blockUnits.width, height: blockUnits.height },
        title: `Block ${layer}`, term: 'layer', tone: 'plain', rows: 0, columns: 0, counted: {}, children: inside,
      });
      x += width + gap;
    }
    lines.push({ residual, right: x - gap, bottom: top + tallest });
    top += tallest + lineGap;
  }
  const grid = { width: Math.max(...lines.map(({ right }) => right)), height: top - lineGap };
  const resting = { width: Math.min(columns, layers) * (small.width + gap) - gap, height: rows * small.height + (rows - 1) * lineGap };
  const scale = stacked ? stackedScale(resting.width) : endScale(resting.height);
  const height = stacked ? stackedHeight * scale : endHeight(resting.height);
  const middle = (grid.height - height) / 2;
  const place = (x: number, y: number, width: number): Box => ({ x, y, width: scale * width, height });
  const [entryPlace, exitPlace] = stacked
    ? [place(0, -lineGap - height, entryWidth), place(0, grid.height + lineGap, exitWidth)]
    : [place(-scale * entryWidth - 1.8 * gap, middle, entryWidth), place(grid.width + 1.8 * gap, middle, exitWidth)];
  const entry = entryPart(subject, entryPlace, { width: entryWidth, height: height / scale });
  const exit = exitPart(subject, exitPlace, { width: exitWidth, height: height / scale });

  const legs: Point[][] = [];
  const left = -0.6 * gap;
  // Beside the turns of the lines.
  const first = -1.25 * gap;
  const out = { x: entryPlace.x + entryPlace.width, y: entryPlace.y + height / 2 };
  const beside = out.x + 0.6 * gap;
  const into = [{ x: left, y: lines[0].residual }, { x: 0, y: lines[0].residual }];
  legs.push(stacked ? [out, { x: beside, y: out.y }, { x: beside, y: -lineGap / 2 }, { x: left, y: -lineGap / 2 }, ...into] : [out, { x: first, y: out.y }, { x: first, y: lines[0].residual }, into[1]]);
  for (let layer = 1; layer < layers; ++layer) {
    const [before, here] = [lines[Math.floor((layer - 1) / columns)], lines[Math.floor(layer / columns)]];
    const from = { x: blocks[layer - 1].box.x + blocks[layer - 1].box.width, y: before.residual };
    const to = { x: blocks[layer].box.x, y: here.residual };
    const between = before.bottom + lineGap / 2;
    const right = before.right + 0.6 * gap;
    legs.push(before === here ? [from, to] : [from, { x: right, y: before.residual }, { x: right, y: between }, { x: left, y: between }, { x: left, y: here.residual }, to]);
  }
  const last = lines[rows - 1];
  const end = { x: exitPlace.x, y: exitPlace.y + height / 2 };
  const below = grid.height + lineGap / 2;
  const turn = stacked ? last.right + 0.6 * gap : grid.width + 1.25 * gap;
  const from = [{ x: last.right, y: last.residual }, { x: turn, y: last.residual }];
  legs.push(stacked ? [...from, { x: turn, y: below }, { x: left, y: below }, { x: left, y: end.y }, end] : [...from, { x: turn, y: end.y }, end]);

  const corner = { x: stacked ? left : entryPlace.x, y: Math.min(0, entryPlace.y) };
  const width = Math.max(grid.width, exitPlace.x + exitPlace.width, stacked ? grid.width + 0.6 * gap : 0) - corner.x;
  // The guesses are below the last line.
  const tall = Math.max(grid.height + 0.4 * lineGap, exitPlace.y + height) - corner.y;
  const root: Part = {
    key: '', kind: 'model', box: { x: 0, y: 0, width, height: tall }, inner: { width, height: tall },
    title: 'Model', term: 'GPT', tone: 'plain', rows: 0, columns: 0, counted: {}, children: [],
  };
  // Positions count from the root's corner.
  const shift = <T extends Point>(at: T): T => ({ ...at, x: at.x - corner.x, y: at.y - corner.y });
  root.children = [entry, ...blocks, exit].map((child) => ({ ...child, box: shift(child.box) }));
  const words = entry.children[0];
  const rowsOf = cellsOf(words);
  const start = {
    x: entry.box.x + scale * (words.box.x + words.box.width),
    y: entry.box.y + scale * (words.box.y + rowsOf.y + (rowsOf.height * (subject.chosen + 0.5)) / words.rows),
  };
  return { root, start: shift(start), legs: legs.map((leg) => leg.map(shift)), columns, parallel: isParallel(subject.architecture) };
}
