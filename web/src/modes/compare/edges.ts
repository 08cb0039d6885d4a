// The strongest edges of a pattern, and their arcs over wrapped text.

export interface Edge {
  query: number;
  key: number;
  weight: number;
}

/**
 * The strongest edges of a causal pattern (T, T), without those to the token itself and to the first token,
 * which take most of many heads' weight and would hide the rest.
 */
export function strongestEdges(pattern: Float32Array, positions: number, most: number, least = 0.05): Edge[] {
  const edges: Edge[] = [];
  for (let query = 1; query < positions; query++) {
    for (let key = 1; key < query; key++) {
      const weight = pattern[query * positions + key];
      if (weight >= least) edges.push({ query, key, weight });
    }
  }
  return edges.sort((a, b) => b.weight - a.weight).slice(0, most);
}

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** An arc from one word's box to another's: above the words on one line, between the lines otherwise. */
export function arcPath(from: Box, to: Box): string {
  const x1 = from.left + from.width / 2;
  const x2 = to.left + to.width / 2;
  const number = (value: number) => Number(value.toFixed(1));
  if (Math.abs(from.top - to.top) < from.height / 2) {
    const rise = Math.min(from.height * 1.3, 6 + Math.abs(x1 - x2) * 0.12);
    const y = from.top;
    return `M${number(x1)} ${number(y)}C${number(x1)} ${number(y - rise)} ${number(x2)} ${number(y - rise)} ${number(x2)} ${number(y)}`;
  }
  const y1 = from.top > to.top ? from.top : from.top + from.height;
  const y2 = from.top > to.top ? to.top + to.height : to.top;
  const middle = (y1 + y2) / 2;
  return `M${number(x1)} ${number(y1)}C${number(x1)} ${number(middle)} ${number(x2)} ${number(middle)} ${number(x2)} ${number(y2)}`;
}

/** The largest of `count` values with their positions, largest first. */
export function largest(values: ArrayLike<number>, count: number): { position: number; weight: number }[] {
  return Array.from(values, (weight, position) => ({ position, weight }))
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight || a.position - b.position)
    .slice(0, count);
}
