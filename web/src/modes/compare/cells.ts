// The cells of the map that are large enough for a number.

/** The visible part of the plane: its corner in positions, pixels per position, and its size in pixels. */
export interface Viewport {
  left: number;
  top: number;
  scale: number;
  width: number;
  height: number;
}

export interface Cell {
  query: number;
  key: number;
}

const roomForNumber = 42; // pixels

/** The visible unmasked cells; none where cells are too small for a number. */
export function writtenCells(viewport: Viewport, positions: number): Cell[] {
  if (viewport.scale < roomForNumber) return [];
  const range = (begin: number, pixels: number) => [Math.max(0, Math.floor(begin)), Math.min(positions, Math.ceil(begin + pixels / viewport.scale))];
  const [firstQuery, endQuery] = range(viewport.top, viewport.height);
  const [firstKey, endKey] = range(viewport.left, viewport.width);
  const cells: Cell[] = [];
  for (let query = firstQuery; query < endQuery; query++) {
    for (let key = firstKey; key < Math.min(endKey, query + 1); key++) cells.push({ query, key });
  }
  return cells;
}
