// Next tokens: candidates, sampling and generation.

import type { Token } from './tokens';
import type { Intervention } from './traces';

export interface Candidate {
  id: number;
  token: string;
  logit: number;
  scaled: number;
  probability: number;
  drawn: number;
  rank: number;
  after: Record<string, number>;
  removed_by: string | null;
}

export interface NextTokens {
  sampling: Sampling;
  vocabulary: number;
  kept: number;
  entropy: number;
  /** The token that follows in the text. */
  actual: { token: Token; probability: number } | null;
  candidates: Candidate[];
}

/** By the name of the option. */
export type Sampling = Record<string, number>;

/** A row of the server's table of sampling options. */
export interface SamplingOption {
  name: string;
  /** As candidates call the stage of sampling that it belongs to. */
  stage: string;
  label: string;
  help: string;
  default: number;
  /** The value that changes nothing. */
  unmodified: number;
  min: number;
  max: number;
  step: number;
  /** What 0 means, or empty. */
  at_zero: string;
}

export interface GeneratedToken {
  step: number;
  token: Token;
  text: string;
  probability: number;
  drawn: number;
  candidates: Candidate[];
}

export interface GenerateRequest {
  text?: string;
  tokens?: number[];
  max_new_tokens: number;
  seed?: number;
  interventions?: Intervention[];
  top?: number;
}
