// What models are made of, and what their parts count.

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

export interface Preset {
  name: string;
  config: Record<string, unknown>;
  parameters: number;
}
