// What the server answers about a translator and pairs of texts, and what it is asked.

import type { Dimensions, Habit, Intervention, Read, Token, TraceMeta, Unread, Word } from './types';

type TraceModel = TraceMeta['model'];

/** A model of two stacks: an encoder, and the decoder that attends to it. */
export interface TranslatorModel {
  name: string;
  parameters: number;
  encoder: Dimensions;
  decoder: Dimensions;
}

/** What GET /api/model answers where the model is a translator. */
export interface ServedTranslator extends TranslatorModel {
  is_translator: true;
}

/** A source to look at, and what to look at there: a head of cross-attention and a word of the target. */
export interface TranslatorExample {
  id: string;
  title: string;
  source: string;
  /** Without one: the model's own translation. */
  target?: string | null;
  layer?: number | null;
  head?: number | null;
  /** Counted as in the pair's words, or the word itself. */
  target_word?: number | string | null;
  says?: string | null;
}

export interface TranslatorCard extends TranslatorModel {
  /** Whether it comes with heed. */
  embedded?: boolean;
  /** From, to. */
  languages?: string[] | null;
  read?: Read | null;
  examples?: TranslatorExample[];
}

/** Of the source among itself, of the target with its past, and of the target with the source. */
export type Site = 'encoder' | 'decoder' | 'cross';

export type PairSide = 'source' | 'target';

export interface PairText {
  tokens: Token[];
  /** Every token belongs to one of them, in order; special tokens are words of their own. */
  words: Word[];
  /** Null where it is not known what the model has read. */
  unread?: Unread | null;
}

export interface SiteMeta {
  site: Site;
  layers: number;
  heads: number;
  queries: number;
  keys: number;
  causal: boolean;
  levels: number;
}

/** One pass over a source and a target; the target's tokens are those that the decoder reads, its start first. */
export interface PairMeta {
  id: string;
  source: PairText;
  target: PairText & { is_translation: boolean };
  sites: SiteMeta[];
  interventions: Intervention[];
  base: string | null;
  model: TraceModel;
  bytes: number;
  seconds: number;
}

export interface PairRequest {
  source?: string;
  source_tokens?: number[];
  /** None: the model's greedy translation. */
  target?: string;
  target_tokens?: number[];
  interventions?: Intervention[];
}

/** Means over the rows of a pattern; null where the two texts differ. */
export interface PairHeadStatistics {
  site: Site;
  layer: number;
  head: number;
  entropy: number;
  evenness: number;
  largest: number;
  first: number;
  last: number;
  self: number | null;
  previous: number | null;
  next: number | null;
  distance: number | null;
  habit: Habit;
}

/** The positions that stand for a word of the target: its last token, or those that write it. */
export type PairRow = 'read' | 'written';

export interface PairLink {
  target: number;
  source: number;
  weight: number;
}

export interface PairAlignment {
  layer: number;
  head: number | null;
  row: PairRow;
  links: PairLink[];
}

/** What a pair's interventions change in the prediction after every token that the decoder reads. */
export interface PairEffect {
  positions: {
    position: number;
    /** Total variation distance, 0 to 1. */
    moved: number;
    actual: { token: Token; before: number; after: number } | null;
  }[];
}

/** How far another token moves the vectors at the end of both stacks, relative to their length; 0: not a bit. */
export interface PairInfluence {
  side: PairSide;
  position: number;
  token: Token;
  encoder: number[];
  decoder: number[];
}

export interface GreedyTranslation {
  text: string;
  tokens: Token[];
  finished: boolean;
  log_probability: number;
}

export interface PairTranslations extends GreedyTranslation {
  without: GreedyTranslation;
}

export interface BeamRequest {
  beams: number;
  /** The exponent of the length in a score. */
  length_penalty: number;
  /** Tokens, the end included. */
  max_length: number;
}

/** A token that beam search looked at, after the tokens of its ancestors. */
export interface BeamNode {
  id: number;
  /** Null for the start, which has no token. */
  parent: number | null;
  /** Tokens up to this one, itself included. */
  step: number;
  token: Token | null;
  log_probability: number;
  /** Of all tokens up to this one. */
  sum: number;
  /** Kept nodes go on, finished ones are the end of a text. */
  state: 'kept' | 'dropped' | 'finished';
}

export interface Hypothesis {
  /** Its last token. */
  node: number;
  score: number;
  log_probability: number;
  /** It ended by itself; otherwise it was cut off at the longest length. */
  finished: boolean;
  text: string;
  tokens: Token[];
}

export interface BeamSearch extends BeamRequest {
  /** The start, then the candidates of each step, the likeliest first. */
  nodes: BeamNode[];
  /** The best first. */
  hypotheses: Hypothesis[];
}
