// What exercises and questions ask of the model at hand, on the shown text.

import type { HeadStatistics, Intervention, LensCell, ShownEdge, Token, Word } from '../../lib/types';
import type { Surprised } from './surprise';

export interface World {
  tokens: Token[];
  words: Word[];
  layers: number;
  heads: number;
  /** The longest text, in tokens. */
  context: number;
  layer: number;
  head: number;
  position: number;
  extra: Record<string, string>;
  /** The weights of a query on all positions; those that are masked are 0. */
  row(layer: number, head: number, position: number): Promise<ArrayLike<number>>;
  statistics(): Promise<HeadStatistics[]>;
  vector(point: string, position: number): Promise<ArrayLike<number>>;
  /** The edge of attention, by words, on which the prediction at a position rests most; null where no word stands before it. */
  edge(position: number): Promise<ShownEdge | null>;
  /** The logit lens at a position, from before the first block to the end, with the two likeliest tokens of each depth. */
  lens(position: number): Promise<LensCell[]>;
  surprises(): Promise<Surprised[]>;
  /** How many tokens a text becomes. */
  tokensOf(text: string): Promise<Token[]>;
  /** How far a change moves the prediction at a position: KL divergence in nats. */
  moved(interventions: Intervention[], position: number): Promise<number>;
  /** A point's vectors at two positions of other tokens. */
  vectorsOf(tokens: number[], point: string, positions: number[]): Promise<ArrayLike<number>[]>;
}

export function lengthOf(vector: ArrayLike<number>): number {
  return Math.sqrt(Array.from(vector).reduce((sum, number) => sum + number * number, 0));
}

export function distanceOf(one: ArrayLike<number>, other: ArrayLike<number>): number {
  return lengthOf(Array.from(one, (number, index) => number - other[index]));
}

/** The index of the largest number, the first of several. */
export function largestOf(numbers: ArrayLike<number>): number {
  return Array.from(numbers).reduce((best, number, index, all) => (number > all[best] ? index : best), 0);
}

/** After how many blocks the final first choice is on top to stay: 0 before any, L where only the last block brings it there. */
export function settledAfter(cells: Pick<LensCell, 'tokens'>[]): number {
  const choices = cells.map(({ tokens }) => tokens[0].id);
  let after = choices.length - 1;
  while (after > 0 && choices[after - 1] === choices.at(-1)) after -= 1;
  return after;
}
