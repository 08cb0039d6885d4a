// Where the curves between the words of two texts run. Texts stand in two lines, the source above, or on narrow
// screens in two columns, the source on the left.

export type Direction = 'lines' | 'columns';

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Pixels of a letter, around a word, and of the narrowest word, which has room for its percentage. */
export interface WordSize {
  letter: number;
  around: number;
  narrowest: number;
}

/** Pixels that words take in a line. */
export function lineWidth(words: { text: string }[], { letter, around, narrowest }: WordSize): number {
  return words.reduce((sum, { text }) => sum + Math.max(narrowest, [...text].length * letter + around), 0);
}

const point = (x: number, y: number) => `${Number(x.toFixed(1))} ${Number(y.toFixed(1))}`;

/** From a word of the target to one of the source. */
export function linkPath(target: Box, source: Box, direction: Direction): string {
  if (direction === 'lines') {
    const [x1, y1, x2, y2] = [target.left + target.width / 2, target.top, source.left + source.width / 2, source.top + source.height];
    const middle = (y1 + y2) / 2;
    return `M${point(x1, y1)}C${point(x1, middle)} ${point(x2, middle)} ${point(x2, y2)}`;
  }
  const [x1, y1, x2, y2] = [target.left, target.top + target.height / 2, source.left + source.width, source.top + source.height / 2];
  const middle = (x1 + x2) / 2;
  return `M${point(x1, y1)}C${point(middle, y1)} ${point(middle, y2)} ${point(x2, y2)}`;
}

/** How far the highest arc may rise over the words. */
export const arcRoom = { lines: 52, columns: 30 };

/** Between two words of one text, on the side that is turned away from the other text. */
export function arcPath(from: Box, to: Box, side: 'source' | 'target', direction: Direction): string {
  const outwards = side === 'source' ? -1 : 1;
  if (direction === 'lines') {
    const edge = ({ top, height }: Box) => (side === 'source' ? top : top + height);
    const [x1, x2] = [from.left + from.width / 2, to.left + to.width / 2];
    const rise = outwards * (4 / 3) * Math.min(arcRoom.lines, 12 + Math.abs(x2 - x1) * 0.12);
    return `M${point(x1, edge(from))}C${point(x1, edge(from) + rise)} ${point(x2, edge(to) + rise)} ${point(x2, edge(to))}`;
  }
  // The words of a column are of different widths: the arcs begin at its edge.
  const edge = side === 'source' ? Math.min(from.left, to.left) : Math.max(from.left + from.width, to.left + to.width);
  const [y1, y2] = [from.top + from.height / 2, to.top + to.height / 2];
  const rise = outwards * (4 / 3) * Math.min(arcRoom.columns, 8 + Math.abs(y2 - y1) * 0.12);
  return `M${point(edge, y1)}C${point(edge + rise, y1)} ${point(edge + rise, y2)} ${point(edge, y2)}`;
}
