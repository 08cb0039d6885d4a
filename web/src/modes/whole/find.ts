// Parts by their path ("b3/attention/h1/q"), where they are, and what is at a point.

import { cellsOf, type Box, type Part } from './parts';
import type { Point, Scene } from './scene';

export interface Found {
  path: string[];
  part: Part;
  /** In the scene's units. */
  box: Box;
  /** Scene units per own unit. */
  scale: number;
}

export interface Cell {
  row: number;
  column: number;
}

export function rootOf({ root }: Scene): Found {
  return { path: [], part: root, box: root.box, scale: 1 };
}

export function childOf(around: Found, part: Part): Found {
  const { box, scale } = around;
  const place = { x: box.x + part.box.x * scale, y: box.y + part.box.y * scale, width: part.box.width * scale, height: part.box.height * scale };
  return { path: [...around.path, part.key], part, box: place, scale: place.width / part.inner.width };
}

/** The part with a path; where there is none, the nearest part around it. */
export function find(scene: Scene, path: string[]): Found {
  let found = rootOf(scene);
  for (const key of path) {
    const part = found.part.children.find((child) => child.key === key);
    if (!part) break;
    found = childOf(found, part);
  }
  return found;
}

export function contains({ x, y, width, height }: Box, point: Point): boolean {
  return point.x >= x && point.y >= y && point.x < x + width && point.y < y + height;
}

/** The deepest part at a point; `isOpen` says whether a part shows what is inside. */
export function hit(scene: Scene, point: Point, isOpen: (found: Found) => boolean = () => true): Found {
  let found = rootOf(scene);
  while (isOpen(found)) {
    const inside: Found | undefined = found.part.children.map((part) => childOf(found, part)).find(({ box }) => contains(box, point));
    if (!inside) break;
    found = inside;
  }
  return found;
}

/** The cell of a matrix at a point, or null beside them. */
export function cellAt({ part, box, scale }: Found, point: Point): Cell | null {
  if (part.rows === 0 || part.columns === 0) return null;
  const cells = cellsOf(part);
  const [across, down] = [((point.x - box.x) / scale - cells.x) / cells.width, ((point.y - box.y) / scale - cells.y) / cells.height];
  if (across < 0 || down < 0 || across >= 1 || down >= 1) return null;
  return { row: Math.floor(down * part.rows), column: Math.floor(across * part.columns) };
}

/** The place of a cell in the scene. */
export function cellBox({ part, box, scale }: Found, { row, column }: Cell): Box {
  const cells = cellsOf(part);
  const [width, height] = [(cells.width * scale) / part.columns, (cells.height * scale) / part.rows];
  return { x: box.x + cells.x * scale + column * width, y: box.y + cells.y * scale + row * height, width, height };
}

/** The block and head of a path; −1 where there is none. */
export function placeIn(path: string[]): { layer: number; head: number } {
  const block = path.find((key) => /^b\d+$/.test(key));
  const head = path.find((key) => /^h\d+$/.test(key));
  return { layer: block ? Number(block.slice(1)) : -1, head: head ? Number(head.slice(1)) : -1 };
}

/** The size of the smallest cell anywhere, in scene units: how far zooming in makes sense. */
export function smallestCell(scene: Scene): number {
  let smallest = Infinity;
  const look = (around: Found) => {
    const { part } = around;
    if (part.rows > 0) {
      const { width, height } = cellBox(around, { row: 0, column: 0 });
      smallest = Math.min(smallest, width, height);
    }
    const seen = new Set<string>();
    for (const child of part.children) {
      // Blocks and heads are alike inside.
      if (child.kind === 'block' || child.kind === 'head') {
        if (seen.has(child.kind)) continue;
        seen.add(child.kind);
      }
      look(childOf(around, child));
    }
  };
  look(rootOf(scene));
  return smallest;
}

/** The part that a click opens: one level below the part shown, or beside it. */
export function towards(shown: string[], clicked: string[]): string[] {
  let common = 0;
  while (common < shown.length && common < clicked.length && shown[common] === clicked[common]) ++common;
  return clicked.slice(0, Math.min(clicked.length, common + 1));
}
