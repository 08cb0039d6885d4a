// The gradient of one loss in the residual stream, as a picture: the last layer on top, positions that get none left empty.

import type { LossGradients } from '../../lib/types';

export interface GradientGrid {
  /** From the top: the server's names. */
  rows: string[];
  columns: number;
  /** (rows, columns); −∞ where no gradient can flow. */
  data: Float32Array;
  /** The ends of a logarithmic colour scale. */
  least: number;
  most: number;
}

/** Factors of ten on the colour scale: gradients shrink from block to block, and smaller ones are all pale. */
const decades = 4;

export function gradientGrid({ rows, norms, position }: LossGradients): GradientGrid {
  const [names, lines] = [[...rows].reverse(), [...norms].reverse()];
  const columns = lines[0]?.length ?? 0;
  const data = Float32Array.from(lines.flatMap((line) => line.map((norm, column) => (column > position ? -Infinity : norm))));
  const most = data.reduce((largest, norm) => Math.max(largest, norm), 0);
  const least = data.reduce((smallest, norm) => (norm > 0 ? Math.min(smallest, norm) : smallest), most);
  return { rows: names, columns, data, most, least: Math.max(least, most / 10 ** decades) };
}

/** The place of a length on the logarithmic scale, 0 to 1. */
export function logShade(norm: number, least: number, most: number): number {
  if (!(norm > least)) return 0;
  return Math.min(1, Math.log(norm / least) / Math.log(most / least));
}

/** A row in words: the stream after a block, or before the first. */
export function gradientRowName(row: string, layers: number): string {
  const block = row === 'final_post' ? layers : Number.parseInt(row);
  return block === 0 ? 'embedding' : `after block ${block - 1}`;
}
