// The layout of a slope chart: the heights of both ends of each line, and labels that do not overlap.

import type { Comparison } from '../../lib/types';

export interface SlopeLine {
  token: number;
  text: string;
  before: number;
  after: number;
  beforeY: number;
  afterY: number;
  beforeLabelY: number;
  afterLabelY: number;
}

/**
 * Moves labels that would overlap apart, keeping their order and staying between `top` and `bottom`
 * where there is room for all.
 */
export function spread(wanted: number[], gap: number, top: number, bottom: number): number[] {
  const order = wanted.map((_, index) => index).sort((a, b) => wanted[a] - wanted[b]);
  const places = [...wanted];
  let least = top;
  for (const index of order) {
    places[index] = Math.max(places[index], least);
    least = places[index] + gap;
  }
  let most = bottom;
  for (const index of order.reverse()) {
    places[index] = Math.min(places[index], most);
    most = places[index] - gap;
  }
  return places;
}

/** `rows` as lines over `height` pixels; the largest probability is at the top. */
export function slopeLines(rows: Comparison['rows'], height: number, gap: number): SlopeLine[] {
  const most = Math.max(...rows.flatMap((row) => [row.before.probability, row.after.probability]), 1e-12);
  const y = (share: number) => (1 - share / most) * (height - gap) + gap / 2;
  const before = rows.map((row) => y(row.before.probability));
  const after = rows.map((row) => y(row.after.probability));
  const beforeLabels = spread(before, gap, gap / 2, height - gap / 2);
  const afterLabels = spread(after, gap, gap / 2, height - gap / 2);
  return rows.map((row, index) => ({
    token: row.token,
    text: row.text,
    before: row.before.probability,
    after: row.after.probability,
    beforeY: before[index],
    afterY: after[index],
    beforeLabelY: beforeLabels[index],
    afterLabelY: afterLabels[index],
  }));
}

/** Half the sum of absolute differences: the fraction of a row's weight that moved. */
export function movedWeight(before: ArrayLike<number>, after: ArrayLike<number>): number {
  let sum = 0;
  for (let index = 0; index < before.length; index++) sum += Math.abs(before[index] - after[index]);
  return sum / 2;
}
