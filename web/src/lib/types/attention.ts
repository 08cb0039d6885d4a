// Heads: their statistics, one computation step by step, and the edge that decides.

import type { Token, Word } from './tokens';

/** What characterises a head, by one rule of the server for all views. */
export interface Habit {
  name: 'first' | 'last' | 'self' | 'previous' | 'next' | 'duplicate' | 'induction' | 'even' | 'back' | 'peak';
  /** A share of the weight; of `even` the evenness; of `back` tokens. */
  strength: number;
}

export interface HeadStatistics {
  layer: number;
  head: number;
  entropy: number;
  evenness: number;
  distance: number;
  first: number;
  self: number;
  previous: number;
  duplicate: number;
  induction: number;
  content_weight: number;
  habit: Habit;
}

export interface WeightedPosition {
  position: number;
  weight: number;
  token: Token;
}

export interface WalkAnswer {
  position: number;
  token: string;
  masked: boolean;
  key: number[];
  value: number[];
  product: number;
  scaled: number;
  score: number | null;
  share: number;
  value_length: number;
  contribution_length: number;
}

export interface WeightedWord extends Word {
  word: number;
  weight: number;
}

/** A token's probability as the model predicts, and with an edge cut. */
export interface TokenChange {
  token: Token;
  before: number;
  after: number;
}

/** What a head reads at a position from another word, and what the prediction has of it. Effects are total variation distances, 0 to 1. */
export interface ShownEdge {
  layer: number;
  head: number;
  query: number;
  /** Tokens [begin, end). */
  key: Word;
  weight: number;
  /** With the edge cut and the row renormalised. */
  cut: number;
  /** The part of that which the head itself writes. */
  direct: number | null;
  /** The mean with other words read in its place. */
  replaced: number | null;
  /** The mean of cutting another edge of the head. */
  others: { count: number; cut: number | null };
  threshold: number;
  decides: boolean;
  /** With the edges of every head to this word cut. */
  word_cut: number;
  likeliest: TokenChange;
  likeliest_without: TokenChange;
  gained: TokenChange[];
  measured: number;
  positions_read: number;
}

/** The edge to show at a position; null where no word stands before it. */
export interface EdgeToShow {
  position: number;
  unit: 'tokens' | 'words';
  edge: ShownEdge | null;
}

/** The computation of one query position in one head: scores, weights, weighted values and the output. */
export interface Walk {
  word: string;
  word_positions: number[];
  position: number;
  layer: number;
  head: number;
  head_size: number;
  query: number[];
  answers: WalkAnswer[];
  output: number[];
  concatenation: number[];
  head_projection: number[];
  attention_out: number[];
  residual_before: number[];
  /** After attention; no part of a parallel block reads it. */
  residual_after: number[];
}
