// A pattern as the heat map draws it: names of rows and columns, and −∞ where the mask hides a key.

import { hasCausalEncoder } from './edits';
import type { Site, PairMeta, PairRow } from '../../lib/pair_types';
import type { NumberArray } from '../../lib/types';
import { siteOf } from './heads';
import { isLater, keyWords, queryWords } from './words';

export interface PatternMap {
  rows: string[];
  columns: string[];
  data: Float32Array;
}

/** Whether the kind's queries see no later keys: by the model, or by a change. */
export function isCausal(meta: PairMeta, kind: Site): boolean {
  return siteOf(meta, kind).causal || (kind === 'encoder' && hasCausalEncoder(meta));
}

export function mapOf(meta: PairMeta, kind: Site, weights: NumberArray, row: PairRow, unit: 'words' | 'tokens'): PatternMap {
  const single = (tokens: { text: string }[]) => tokens.map(({ text }, at) => ({ text, begin: at, end: at + 1 }));
  const [queries, keys] = unit === 'words'
    ? [queryWords(meta, kind), keyWords(meta, kind)]
    : [single(kind === 'encoder' ? meta.source.tokens : meta.target.tokens), single(kind === 'decoder' ? meta.target.tokens : meta.source.tokens)];
  const causal = isCausal(meta, kind);
  const rows: PairRow = unit === 'tokens' || kind === 'encoder' ? 'read' : row;
  const data = weights.data.map((weight, cell) => (causal && isLater(queries[Math.floor(cell / keys.length)], keys[cell % keys.length], rows) ? -Infinity : weight));
  return { rows: queries.map(({ text }) => text), columns: keys.map(({ text }) => text), data };
}
