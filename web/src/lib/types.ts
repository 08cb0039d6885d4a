// The server's JSON documents. Layers, heads, positions and neurons count from 0.

export interface Token {
  id: number;
  text: string;
  bytes?: number[];
}

export interface Dimensions {
  vocabulary: number;
  context: number;
  channels: number;
  layers: number;
  heads: number;
  head_size: number;
  feed_forward: number;
  parameters: number;
}

/** What a model is made of. */
export interface Architecture {
  /** A checkpoint format, or "custom". */
  family: string;
  norm: 'layer' | 'rms';
  positions: 'learned' | 'rotary' | 'sinusoidal' | 'none';
  key_value_heads: number;
  /** For each layer, how many positions a query attends to, its own included; 0: all before it. Empty: none has a window. */
  windows: number[];
  /** Whether each neuron is multiplied by a second projection. */
  gated: boolean;
  /** As papers call it: GELU. */
  activation_label: string;
  query_key_norm: boolean;
  /** Parallel: attention and feed-forward read the same stream. */
  residual: 'sequential' | 'parallel';
  /** `channels` of each head rotate. */
  rotary?: { base: number; channels: number; scaling?: Record<string, unknown> };
  biases: { norm: boolean; query: boolean; output: boolean; feed_forward: boolean };
}

/** An intervention, and what it does to the probability of a next token. */
export interface Trial {
  label: string;
  /** As a link writes changes. */
  changes: string;
  /** The extra `cuts` of such a link. */
  cuts?: string;
  token: string;
  before: number;
  after: number;
  /** The token that takes its place. */
  instead?: { token: string; before: number; after: number };
}

export interface Example {
  id: string;
  title: string;
  text: string;
  layer?: number;
  head?: number;
  position?: number;
  /** What the head reads at the position: its tokens. */
  evidence?: { begin: number; end: number };
  note?: string;
  trials?: Trial[];
}

/** A model that the server holds, finds or may download. */
export interface ListedModel {
  /** As links and requests name it. */
  name: string;
  /** For people. */
  title: string;
  /** What it has read, in one line; null where nothing says so. */
  about: string | null;
  /** The served one is that of the command line; it may be one of the others. */
  kind: 'served' | 'embedded' | 'pulled' | 'published';
  parameters: number | null;
  /** Of its weights, as stored. */
  bytes: number;
  /** Of them, what a download that ended early has left to go on from. */
  partial_bytes: number;
  /** Whether it can be shown now, has to be downloaded, is being downloaded, or has files that cannot be read. */
  state: 'ready' | 'absent' | 'downloading' | 'damaged';
  /** Whether the server has it in memory. */
  loaded: boolean;
  /** Why it is damaged. */
  message?: string;
}

export interface Download {
  name: string;
  state: 'running' | 'finished' | 'cancelled' | 'failed';
  /** What is being done, such as "downloading model.safetensors". */
  doing: string;
  /** Of the file at hand. */
  done: number;
  total: number;
  /** Why it failed. */
  error: { type: string; message: string } | null;
}

export interface ModelList {
  models: ListedModel[];
  downloads: { allowed: boolean; why_not: string | null };
  /** The last one that was asked for. */
  download: Download | null;
}

/** What a model has read, as far as it is known. */
export interface Read {
  title: string;
  tokens: number;
  /** How many different words; null where that is not known. */
  words: number | null;
  /** Of a translator's targets. */
  target_words: number | null;
}

/** The words of a text that the model has not read. Ranges are [begin, end). */
export interface Unread {
  /** How many different words the text has. */
  of: number;
  words: { text: string; bytes: [number, number]; tokens: [number, number] }[];
  /** A sentence that says so; null where the model has read every word. */
  note: string | null;
}

export interface ModelCard {
  name: string;
  /** Which of the models that heed carries it is, under whatever name; null: none. */
  embedded: string | null;
  version: string;
  dimensions: Dimensions;
  tied: boolean;
  architecture: Architecture;
  dtype: string;
  has_tokenizer: boolean;
  read?: Read | null;
  examples: Example[];
  limits: { prompt_tokens: number; trace_bytes: number };
  runs: string[];
}

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

/** The text between spaces, without surrounding punctuation; or a token that belongs to no word. Its tokens are [begin, end). */
export interface Word {
  text: string;
  begin: number;
  end: number;
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

export type WeightRole = 'attention.query' | 'attention.key' | 'attention.value' | 'attention.output' | 'feed_forward.up' | 'feed_forward.gate' | 'feed_forward.down';

/** One number of a trace: `point` is a TransformerLens name, `index` counts within its last dimension. */
export interface PointElement {
  point: string;
  layer?: number;
  head?: number;
  position?: number;
  index?: number;
  key?: number;
}

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

export interface ParameterCount {
  name: string;
  total: number;
  embedding: number;
  position: number;
  per_head: { query: number; key: number; value_down: number; value_up: number; total: number };
  attention_block: number;
  attention_total: number;
  feed_forward_block: number;
  feed_forward_total: number;
  biases: number;
  norms: number;
  unembedding: number;
  run_bytes: number;
  train_bytes: number;
  key_value_bytes_per_token: number;
  flops_per_token: number;
  train_flops_per_token: number;
  architecture?: Architecture;
  /** Null where no checkpoint format can say it. */
  config: Record<string, unknown> | null;
  parts: { name: string; parameters: number; share: number }[];
}

/** What a process exchanges in a step. */
export interface PlannedExchange {
  bytes: number;
  transfer_seconds: number;
  latency_seconds: number;
  hidden_seconds: number;
  exposed_seconds: number;
}

/** Training on a cluster, as `heed plan --json` predicts it. */
export interface ScalingPlan {
  name: string;
  parameters: number;
  flops_per_token: number;
  cluster: { nodes: number; processes: number; cores_per_node: number; memory_per_node: number; bandwidth: number; latency: number };
  run: { sequences_per_step: number; batch_size: number; accumulation: number; own_sequences: number; context: number; tokens_per_step: number; precision: string; shard: number };
  /** Of a core: operations and bytes a second. */
  rates: { block_forward: number; block_backward: number; ends: number; memory: number; copies: number };
  memory: { parameters: number; gradients: number; moments: number; activations: number; working: number; exchange: number; total: number; fits: boolean };
  least_nodes: number | null;
  step_seconds: { forward: number; backward: number; update: number; gradients: PlannedExchange; parameters: PlannedExchange; ring: PlannedExchange; agreement: number; compute: number; hidden: number; exposed: number; total: number };
  tokens_per_s: number;
  flops_per_s: number;
  efficiency: number;
  limit: 'memory' | 'batch' | 'bandwidth' | 'latency' | 'compute';
  sentence: string;
  training: { tokens: number; steps: number; operations: number; seconds: number; days: number; node_hours: number };
  sweep: { nodes: number; step_seconds: number; tokens_per_s: number; efficiency: number; days: number; memory: number; fits: boolean; limit: string }[];
}

export interface Preset {
  name: string;
  config: Record<string, unknown>;
  parameters: number;
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

export interface Run {
  name: string;
  path_shown: string;
  settings: Record<string, unknown>;
  steps_total: number;
  step: number;
  /** Whether a process trains it now. */
  live: boolean;
  /** A text that its models can take. */
  sentence?: string;
  checkpoints: number[];
  parameters: number;
  /** Comes with heed, was trained by this server, or was given with --run. */
  origin?: 'recorded' | 'live' | 'given';
  /** Of its text, in nats: no model has a lower average loss. Null where it is not known. */
  entropy_per_token?: number | null;
}

/** A run that cannot be read. */
export interface DamagedRun {
  name: string;
  path_shown: string;
  error: string;
}

export type MetricsRow = Record<string, number | string | null | Record<string, number>>;

export type TrainingState = 'none' | 'preparing' | 'running' | 'paused' | 'stopping' | 'finished' | 'stopped' | 'failed';

/** What the server trains now, or trained last. */
export interface Training {
  allowed: boolean;
  why_not?: string | null;
  state: TrainingState;
  /** The name of the run that it writes. */
  run: string | null;
  step: number;
  steps: number;
  learning_rate: number | null;
  learning_rate_factor: number;
  preparing: { what: string; done: number; total: number } | null;
  error: string | null;
  presets: TrainingPreset[];
  limits: Record<TrainingNumber, [number, number]> & { text_bytes: number };
}

export type TrainingNumber = 'layers' | 'heads' | 'width' | 'context' | 'steps' | 'batch_size' | 'learning_rate';

export interface TrainingPreset extends Record<TrainingNumber, number> {
  name: string;
  title: string;
  note: string;
  /** About how long it takes, where it is known. */
  seconds?: number | null;
}

export interface TrainingRequest {
  preset?: string;
  /** Without a text it trains on stories of the microworld. */
  text?: string;
  tokenizer?: 'char' | 'bpe';
  settings?: Partial<Record<TrainingNumber | 'seed', number>>;
}

export interface ServerStatus {
  traces: TraceMeta[];
  trace_bytes: number;
  trace_budget: number;
  uptime_seconds: number;
  requests_processing: number;
}
