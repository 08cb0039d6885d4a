// What explains a prediction: lens, attributions, gradients, neurons and vectors.

import type { Token } from './tokens';

/** Norms of the gradient of one loss with respect to the residual stream. */
export interface LossGradients {
  position: number;
  token: Token;
  /** −log p(token | text up to `position`), nats. */
  loss: number;
  /** As the lens names them: 0_pre, …, final_post. */
  rows: string[];
  norms: number[][];
}

export interface LensCell {
  tokens: Token[];
  probabilities: number[];
  entropy: number;
  divergence: number;
}

export interface Lens {
  rows: string[];
  positions: number[];
  cells: LensCell[][];
}

export interface AttributionPart {
  name: string;
  value: number;
  position?: number;
}

export interface Attribution {
  logit: number;
  parts: AttributionPart[];
  baseline?: number;
  completeness_error?: number;
}

export interface NeuronActivity {
  neuron: number;
  activation: number;
  promotes: Token[];
  /** How much it adds to the stream: |activation| times the length of its output vector. */
  contribution: number;
  /** What it adds to the log-probability of the likeliest next token past all later blocks. */
  direct: number;
}

/** What neurons of a block do to the likeliest next token. */
export interface NeuronEffects {
  layer: number;
  position: number;
  token: Token;
  probability: number;
  /** `direct`: what it adds to the log-probability past all later blocks; `without`: the probability with the neuron off. */
  neurons: { neuron: number; activation: number; direct: number; without: number }[];
  /** The first neuron's activation times another neuron's output vector taken away. */
  controls: { neuron: number; without: number }[];
  matters: boolean;
  largest: { layer: number; neuron: number; direct: number };
}

/** A feature of a transcoder; `words`: at the peaks of its strongest contexts, `of` in all, `context` up to the peak of the strongest. */
export interface CauseFeature {
  feature: number;
  activation: number;
  words: { token: Token; contexts: number }[];
  context: Token[];
  of: number;
}

/** A path to the likeliest next token: neurons, or features, of a block at a position that read most of all from the token `from`. */
export interface CausePath {
  from: number;
  token: Token;
  layer: number;
  position: number;
  neurons: number[];
  features: CauseFeature[];
  share: number;
  /** The word’s probability with the neurons off, or without what the features write, and the token that is likeliest then. */
  without: number;
  instead: Token;
  instead_probability: number;
  /** The word’s probability where as much is taken away in other directions; `control` moves it most. */
  controls: number[];
  control: number;
  cause: boolean;
}

export interface WordCauses {
  position: number;
  token: Token;
  probability: number;
  unit: 'neuron' | 'feature';
  graph_units: number;
  paths: CausePath[];
}

export interface WeightedToken {
  token: Token;
  value: number;
}

export interface Neuron {
  layer: number;
  neuron: number;
  promotes: WeightedToken[];
  suppresses: WeightedToken[];
  activations: number[] | null;
}

export interface NeuronContext {
  activation: number;
  tokens: Token[];
  position: number;
}

export type WeightRole = 'attention.query' | 'attention.key' | 'attention.value' | 'attention.output' | 'feed_forward.up' | 'feed_forward.gate' | 'feed_forward.down';

export interface ComparedSide {
  logit: number;
  probability: number;
  rank: number;
}

export interface Comparison {
  kl: number;
  rows: { token: number; text: string; before: ComparedSide; after: ComparedSide }[];
}

export interface VectorComparison {
  layers: { point: string; cosine: number; distance: number; first_norm: number; second_norm: number }[];
}

export interface Projection {
  points: { trace: string; position: number; x: number; y: number }[];
  explained: number[];
}
