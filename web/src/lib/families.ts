// Descriptions of models for tests.

import type { Architecture } from './types';
import { gpt2 } from './architecture';

const none = { norm: false, query: false, output: false, feed_forward: false };

export const llama: Architecture = {
  family: 'llama', norm: 'rms', positions: 'rotary', key_value_heads: 2, windows: [], gated: true, activation_label: 'SiLU', query_key_norm: false, residual: 'sequential',
  rotary: { base: 10000, channels: 8 }, biases: none,
};
export const mistral: Architecture = { ...llama, family: 'mistral', windows: [7, 7] };
export const qwen2: Architecture = { ...llama, family: 'qwen2', key_value_heads: 1, windows: [0, 5, 5], biases: { ...none, query: true } };
export const qwen3: Architecture = { ...llama, family: 'qwen3', query_key_norm: true };
export const neox: Architecture = {
  ...gpt2(2), family: 'neox', positions: 'rotary', residual: 'parallel', rotary: { base: 10000, channels: 4 },
};
export const families = { gpt2: gpt2(4), llama, mistral, qwen2, qwen3, neox };
