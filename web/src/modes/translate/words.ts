// Words of a pair: which of them is chosen, which are masked, and the weights between them.

import type { Site, PairMeta, PairRow, PairSide } from '../../lib/pair_types';
import type { NumberArray, Word } from '../../lib/types';

export interface ChosenWord {
  side: PairSide;
  index: number;
}

/** t3: word 3 of the target; s:dog: the first word “dog” of the source. Null where there is no such word. */
export function parseWord(text: string | undefined, meta: Pick<PairMeta, 'source' | 'target'>): ChosenWord | null {
  const [, letter, place, name] = /^([st])(?:(\d+)|:(.+))$/.exec(text ?? '') ?? [];
  if (!letter) return null;
  const side: PairSide = letter === 's' ? 'source' : 'target';
  const { words } = meta[side];
  const index = name === undefined ? Number(place) : words.findIndex((word) => word.text === name);
  return index >= 0 && index < words.length ? { side, index } : null;
}

export const formatWord = (word: ChosenWord | null): string => (word ? `${word.side[0]}${word.index}` : '');

/** A token that stands for no text, such as the start of a target. */
export const isSpecial = (text: string): boolean => /^(<[^<>\s]+>|\[[A-Z]+\])$/.test(text);

/** The positions of the decoder that stand for a word: its last token, or those that write its tokens. The start is written by none. */
export function positionsOf({ begin, end }: Word, row: PairRow): number[] {
  if (row === 'read' || begin === 0) return [end - 1];
  return Array.from({ length: end - begin }, (_, at) => begin - 1 + at);
}

export const queryWords = (meta: PairMeta, kind: Site): Word[] => (kind === 'encoder' ? meta.source.words : meta.target.words);
export const keyWords = (meta: PairMeta, kind: Site): Word[] => (kind === 'decoder' ? meta.target.words : meta.source.words);

/** Whether all of a key word comes after what the query word's positions have read. */
export function isLater(query: Word, key: Word, row: PairRow): boolean {
  return key.begin > Math.max(...positionsOf(query, row));
}

/** Row `index` of a matrix. */
export function rowOf({ shape, data }: NumberArray, index: number): Float32Array {
  return data.subarray(index * shape[1], (index + 1) * shape[1]);
}

export function columnOf({ shape, data }: NumberArray, index: number): Float32Array {
  return Float32Array.from({ length: shape[0] }, (_, row) => data[row * shape[1] + index]);
}

/** The mean of matrices of one shape. */
export function meanOf(matrices: NumberArray[]): NumberArray {
  const data = new Float32Array(matrices[0].data.length);
  for (const matrix of matrices) matrix.data.forEach((value, at) => (data[at] += value / matrices.length));
  return { shape: matrices[0].shape, data };
}

export interface WeightedIndex {
  index: number;
  weight: number;
}

/** The largest first; those of no weight are left out. */
export function strongest(weights: ArrayLike<number>, most = weights.length): WeightedIndex[] {
  return Array.from(weights, (weight, index) => ({ index, weight }))
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight || a.index - b.index)
    .slice(0, most);
}
