// How much of a part is drawn, by its size on the screen in pixels.

import type { Found } from './find';
import type { Camera, Size } from './camera';
import type { Box, Part } from './parts';

/** Smaller parts are not drawn. */
export const least = 1.5;
/** A number is written in a cell of this size. */
export const numberCell = { width: 42, height: 15 };
/** A cell can be pointed at. */
export const pointedCell = 5;

/** Width at which a part shows what is inside; a head shows its pattern until then. */
const opens: Partial<Record<Part['kind'], number>> = { model: 0, block: 72, 'feed-forward': 20, head: 150, projection: 16, entry: 30, exit: 30 };
/** Attention shows its heads once they are this wide: there may be very many. */
const headWidth = 5;

function opensAt(part: Part): number {
  if (part.kind === 'attention') return (headWidth * part.inner.width) / part.children[0].box.width;
  return opens[part.kind] ?? Infinity;
}

export function isOpen(part: Part, width: number): boolean {
  return part.children.length > 0 && width >= opensAt(part);
}

/** From 0 to 1 while what is inside appears. */
export function insideShown(part: Part, width: number): number {
  const from = opensAt(part);
  return from === 0 ? 1 : Math.min(1, Math.max(0, (width - from) / (0.35 * from)));
}

export function isVisible(x: number, y: number, width: number, height: number, canvas: Size): boolean {
  return x < canvas.width && y < canvas.height && x + width > 0 && y + height > 0;
}

/** The part that fills the canvas: the deepest one whose middle part is seen and that takes up enough of it. */
export function shownPart(found: Found, children: (found: Found) => Found[], camera: Camera, canvas: Size): Found {
  const { x, y } = camera;
  const enough = 0.55;
  for (;;) {
    const within = ({ box }: Found) => x >= box.x && y >= box.y && x < box.x + box.width && y < box.y + box.height;
    const fills = ({ box }: Found) => Math.max((box.width * camera.scale) / canvas.width, (box.height * camera.scale) / canvas.height) >= enough;
    const next = children(found).find((child) => within(child) && fills(child));
    if (!next) return found;
    found = next;
  }
}

/** Rows and columns of a matrix: [first, end). */
export interface CellRange {
  top: number;
  bottom: number;
  left: number;
  right: number;
}

/** Visible cells of a matrix drawn in `area` (pixels). */
export function visibleCells(area: Box, rows: number, columns: number, canvas: Size): CellRange {
  const clamp = (index: number, count: number) => Math.min(count, Math.max(0, index));
  const [wide, tall] = [area.width / columns, area.height / rows];
  return {
    left: clamp(Math.floor(-area.x / wide), columns),
    right: clamp(Math.ceil((canvas.width - area.x) / wide), columns),
    top: clamp(Math.floor(-area.y / tall), rows),
    bottom: clamp(Math.ceil((canvas.height - area.y) / tall), rows),
  };
}
