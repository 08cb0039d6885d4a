// What vectors say by depth: the senses of a word, the words that it points to, and what a probe reads.

import type { Token } from './tokens';

/** Words with several senses, of which the server has sentences. */
export interface SenseLibrary {
  source: 'microworld' | 'English';
  words: { word: string; senses: string[] }[];
}

export interface SenseDepth {
  /** hook_embed, then the residual stream before each block and after the last one. */
  point: string;
  /** Of each sentence, in lengths of the word's vector. */
  dots: [number, number][];
  explained: number[];
  identical: boolean;
  /** Mean centred cosines of two sentences. */
  same: number;
  other: number;
  /** `same` with the senses shuffled: the mean, and what one shuffle in twenty exceeds. */
  shuffled_same: number;
  shuffled_high: number;
  p: number;
  apart: boolean;
}

/** One word in sentences of each of its senses. */
export interface WordSenses {
  word: string;
  source: 'microworld' | 'English';
  senses: string[];
  sentences: { text: string; sense: number }[];
  shuffles: number;
  tells_apart: boolean;
  depths: SenseDepth[];
  own: { text: string; position: number; depths: { dot: [number, number]; sense: number | null; margin: number; least: number | null; p: number }[] } | null;
}

/** What a linear probe reads from the last vector of a mystery, by depth. */
export interface CulpritProbe {
  roles: string[];
  training: number;
  held_out: number;
  /** The share of the most frequent role. */
  most_frequent: number;
  /** The control: a bag of words. */
  words: number;
  /** Texts that end with them have a reading. */
  last_words: string;
  depths: { point: string; accuracy: number; shuffled: number; beats_words: boolean }[];
  reading: number[] | null;
}

export interface NearWord {
  token: Token;
  cosine: number;
}

/** The words whose embeddings are nearest to a vector, by depth. */
export interface NearestWords {
  position: number;
  /** How often the vector's numbers were shuffled, as the control. */
  shuffles: number;
  /** `words` are nearer than `chance`, `best` is the nearest of all; `chance` is the largest cosine of any word with shuffled numbers. */
  depths: { point: string; words: NearWord[]; best: NearWord; chance: number }[];
}

/** How much a vector points in the directions of some words, by depth; `mean` and `largest` are of other words. */
export interface WordDirections {
  position: number;
  points: string[];
  words: { token: Token; cosines: number[] }[];
  others: number;
  mean: number[];
  largest: number[];
}
