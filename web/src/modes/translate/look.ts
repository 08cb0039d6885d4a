// The attention that the picture of the two texts shows, by words: of one pair, so that words and numbers agree.

import { hasCausalEncoder } from './edits';
import type { PairRow } from '../../lib/pair_types';
import type { NumberArray } from '../../lib/types';
import type { HeadChoice } from '../../lib/head_choice';
import type { Pair } from './pairs.svelte';

export interface Look {
  pair: Pair;
  row: PairRow;
  heads: Record<'cross' | 'encoder' | 'decoder', HeadChoice>;
  /** (query words, key words) each. */
  cross: NumberArray;
  encoder: NumberArray;
  decoder: NumberArray;
  /** Whether the encoder has a causal mask. */
  masked: boolean;
}

export async function lookAt(pair: Pair, row: PairRow, heads: Look['heads']): Promise<Look> {
  const [cross, encoder, decoder] = await Promise.all([pair.weights('cross', heads.cross, row), pair.weights('encoder', heads.encoder, row), pair.weights('decoder', heads.decoder, row)]);
  const masked = hasCausalEncoder(pair.meta);
  return { pair, row, heads, cross, encoder, decoder, masked };
}
