// Which blocks of a weight matrix are loaded: small matrices as a whole, large ones in tiles.

import type { CellRange } from './detail';

/** At most this many numbers come with one answer. */
const wholeNumbers = 256 * 1024;
const tileSide = 512;
/** A matrix with more tiles in sight asks for closer zoom. */
export const mostTiles = 24;

interface Steps {
  rows: number;
  columns: number;
}

/** Rows and columns of a tile; tiles of a matrix are about equally large. */
function stepsOf(rows: number, columns: number): Steps {
  if (rows * columns <= wholeNumbers) return { rows, columns };
  // A matrix with few rows has wide tiles.
  const tall = Math.ceil(rows / Math.ceil(rows / tileSide));
  const side = Math.max(tileSide, Math.floor(wholeNumbers / tall));
  return { rows: tall, columns: Math.ceil(columns / Math.ceil(columns / side)) };
}

/** How many tiles of a matrix are in sight. */
export function tilesIn(rows: number, columns: number, visible: CellRange): number {
  const steps = stepsOf(rows, columns);
  const across = Math.ceil(visible.right / steps.columns) - Math.floor(visible.left / steps.columns);
  const down = Math.ceil(visible.bottom / steps.rows) - Math.floor(visible.top / steps.rows);
  return Math.max(0, across) * Math.max(0, down);
}

/** The tiles in sight, from the middle outwards; none where there are too many. */
export function tilesOf(rows: number, columns: number, visible: CellRange): CellRange[] {
  if (tilesIn(rows, columns, visible) > mostTiles) return [];
  const steps = stepsOf(rows, columns);
  const tiles: CellRange[] = [];
  for (let top = Math.floor(visible.top / steps.rows) * steps.rows; top < visible.bottom; top += steps.rows) {
    for (let left = Math.floor(visible.left / steps.columns) * steps.columns; left < visible.right; left += steps.columns) {
      tiles.push({ top, left, bottom: Math.min(rows, top + steps.rows), right: Math.min(columns, left + steps.columns) });
    }
  }
  const distance = (tile: CellRange) => Math.hypot((tile.left + tile.right - visible.left - visible.right) / steps.columns, (tile.top + tile.bottom - visible.top - visible.bottom) / steps.rows);
  return tiles.sort((one, other) => distance(one) - distance(other));
}
