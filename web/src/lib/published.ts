// Published models that are not one decoder, as src/model/architecture_presets.cc describes them.

import type { Stack, StackedModel } from './stacks';

const all = { norm: true, query: true, output: true, feed_forward: true };
const none = { norm: false, query: false, output: false, feed_forward: false };

/** The encoder of these sizes, and the decoder that attends to it; one embedding for both texts and the output. */
function pairOf(name: string, stack: Omit<Stack, 'cross_attention' | 'unembedding'>): StackedModel {
  return { name, encoder: { ...stack, cross_attention: false, unembedding: 'none' }, decoder: { ...stack, cross_attention: true, unembedding: 'tied' }, shared_embedding: true };
}

const proportions = (layers: number, heads: number, channels: number, context: number, vocabulary: number) =>
  ({ layers, heads, key_value_heads: heads, head_size: channels / heads, channels, feed_forward: 4 * channels, context, vocabulary });

/** Vaswani et al. 2017: 6 + 6 blocks whose norms come after what they add. */
const transformer = (name: string, heads: number, channels: number) =>
  pairOf(name, { ...proportions(6, heads, channels, 1024, 37000), norm: 'layer', norm_placement: 'post', positions: 'sinusoidal', gated: false, activation_label: 'ReLU', biases: all });

/** Raffel et al. 2020: no biases, and positions only as biases of the scores. */
const t5 = (name: string, layers: number, heads: number, channels: number) =>
  pairOf(name, { ...proportions(layers, heads, channels, 512, 32128), norm: 'rms', norm_placement: 'pre', positions: 'relative', buckets: 32, gated: false, activation_label: 'ReLU', biases: none, final_norm: true });

/** Devlin et al. 2019, with the head of its masked language model. */
const bert: StackedModel = {
  name: 'bert-base-uncased',
  encoder: {
    ...proportions(12, 12, 768, 512, 30522), norm: 'layer', norm_placement: 'post', positions: 'learned', gated: false, activation_label: 'GELU', biases: all, cross_attention: false,
    embedding_norm: true, token_types: 2, prediction_head: true, unembedding: 'tied', unembedding_bias: true,
  },
  decoder: null,
  shared_embedding: false,
};

export const published: StackedModel[] = [transformer('transformer-base', 8, 512), transformer('transformer-big', 16, 1024), t5('t5-small', 6, 8, 512), t5('t5-base', 12, 12, 768), bert];
