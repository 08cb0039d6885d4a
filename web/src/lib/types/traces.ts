// A pass over a text, what changes it, and one number of it.

import type { Dimensions } from './shape';
import type { Token, Unread, Word } from './tokens';

export type InterventionKind = 'ablate' | 'mean' | 'scale' | 'add' | 'swap' | 'freeze' | 'cut' | 'cut_words' | 'mask';

/** A change of a pass over one text or two. */
export interface Intervention {
  kind: InterventionKind;
  /** Such as L1H2, L1.mlp; of two texts cross.L1H2, cross.L1, cross, encoder.L0H3, decoder.L1.mlp. */
  point?: string;
  positions?: string;
  factor?: number;
  vector?: number[];
  from?: string;
  from_positions?: string;
  edges?: [number, number][];
  layer?: number;
  head?: number;
  /** cut_words: from this word of the queries to that of the keys. */
  target?: number;
  source?: number;
  renormalise?: boolean;
  mask?: 'causal' | 'none';
}

export interface TraceMeta {
  id: string;
  tokens: Token[];
  /** Every token belongs to one of them, in order. */
  words: Word[];
  /** Null where it is not known what the model has read. */
  unread?: Unread | null;
  bytes: number;
  seconds: number;
  interventions: Intervention[];
  base: string | null;
  model: { name: string; run: string | null; step: number | null };
  layers: number;
  heads: number;
  levels: number;
  dimensions: Dimensions;
}

export interface TraceRequest {
  text?: string;
  tokens?: number[];
  interventions?: Intervention[];
  model?: { run: string; step: number };
  base?: string;
}

/** An array in row-major order. */
export interface NumberArray {
  shape: number[];
  data: Float32Array;
}

export interface DerivationTerm {
  label: string;
  left: number | null;
  right: number | null;
  value: number;
}

/** The computation of one number: the terms shown, the rest and the bias add up to the value. */
export interface Derivation {
  name: string;
  value: number;
  formula: string;
  latex: string;
  /** Made by the page itself: `shares` is a sum of percentages, `steps` are successive values that are not summed. */
  operation: 'sum' | 'softmax' | 'norm' | 'activation' | 'rotation' | 'mean' | 'shares' | 'steps';
  terms: DerivationTerm[];
  count: number;
  rest: number;
  bias: number | null;
}

/** One number of a trace: `point` is a TransformerLens name, `index` counts within its last dimension. */
export interface PointElement {
  point: string;
  layer?: number;
  head?: number;
  position?: number;
  index?: number;
  key?: number;
}
