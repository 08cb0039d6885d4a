// Models of an encoder and a decoder, or of an encoder alone, as data, and the parameters that follow from it: what src/model/architecture.h
// and src/model/parameters.cc say, by role.

import type { Architecture, Dimensions } from './types';

/** Sizes and parts of one stack. */
export interface Stack extends Omit<Dimensions, 'parameters'> {
  key_value_heads: number;
  norm: Architecture['norm'];
  /** Relative: scores get a learned bias for each of `buckets` distances and each head. */
  positions: Architecture['positions'] | 'relative';
  gated: boolean;
  activation_label: string;
  biases: Architecture['biases'];
  /** Whether its blocks attend to the other stack's result. */
  cross_attention: boolean;
  /** Absent where it is not known: before a branch (pre-norm), or after what it adds (post-norm). */
  norm_placement?: 'pre' | 'post';
  buckets?: number;
  embedding_norm?: boolean;
  /** Vectors for the texts that a sequence joins. */
  token_types?: number;
  final_norm?: boolean;
  /** A linear layer and a norm before the unembedding. */
  prediction_head?: boolean;
  /** Of its own, the token embedding again, or none: an encoder that only feeds a decoder. */
  unembedding: 'own' | 'tied' | 'none';
  unembedding_bias?: boolean;
}

export interface StackedModel {
  name: string;
  encoder: Stack;
  /** Null: the model is an encoder alone. */
  decoder: Stack | null;
  /** One token embedding for both texts. */
  shared_embedding: boolean;
}

export type WeightKind = 'embedding' | 'position' | 'attention' | 'cross_attention' | 'feed_forward' | 'norm' | 'unembedding';

/** A weight, its bias if it has one, and how many blocks have it. */
interface Weight {
  kind: WeightKind;
  shape: number[];
  bias: number;
  copies: number;
}

/** The width of all queries, and of all keys. */
export const queryWidth = ({ heads, head_size }: Stack): number => heads * head_size;
export const keyWidth = ({ key_value_heads, head_size }: Stack): number => key_value_heads * head_size;

function weightsOf(stack: Stack): Weight[] {
  const { layers, channels, vocabulary, context, heads, feed_forward, biases } = stack;
  const [queries, keys] = [queryWidth(stack), keyWidth(stack)];
  const list: Weight[] = [];
  const add = (kind: WeightKind, shape: number[], bias: boolean, copies = 1) => list.push({ kind, shape, bias: bias ? shape[0] : 0, copies });
  const norm = (copies = 1) => add('norm', [channels], biases.norm && stack.norm === 'layer', copies);
  add('embedding', [vocabulary, channels], false);
  if (stack.positions === 'learned') add('position', [context, channels], false);
  if (stack.token_types) add('position', [stack.token_types, channels], false);
  if (stack.positions === 'relative') add('position', [stack.buckets ?? 0, heads], false);
  if (stack.embedding_norm) norm();
  norm(layers);
  add('attention', [queries + 2 * keys, channels], biases.query, layers);
  add('attention', [channels, queries], biases.output, layers);
  if (stack.cross_attention) {
    norm(layers);
    add('cross_attention', [queries, channels], biases.query, layers);
    add('cross_attention', [2 * keys, channels], biases.query, layers);
    add('cross_attention', [channels, queries], biases.output, layers);
  }
  norm(layers);
  if (stack.gated) add('feed_forward', [feed_forward, channels], biases.feed_forward, layers);
  add('feed_forward', [feed_forward, channels], biases.feed_forward, layers);
  add('feed_forward', [channels, feed_forward], biases.feed_forward, layers);
  if (stack.final_norm) norm();
  if (stack.prediction_head) {
    add('unembedding', [channels, channels], true);
    norm();
  }
  if (stack.unembedding === 'own') add('unembedding', [vocabulary, channels], false);
  if (stack.unembedding_bias) list.push({ kind: 'unembedding', shape: [0], bias: vocabulary, copies: 1 });
  return list;
}

/** Parameters of a stack by part; biases are those of linear layers, and norms have their own. */
export interface StackCount extends Record<Exclude<WeightKind, 'norm'>, number> {
  norms: number;
  biases: number;
  total: number;
}

/** Of a stack with its own token embedding. */
export function countStack(stack: Stack): StackCount {
  const count: StackCount = { embedding: 0, position: 0, attention: 0, cross_attention: 0, feed_forward: 0, unembedding: 0, norms: 0, biases: 0, total: 0 };
  for (const { kind, shape, bias, copies } of weightsOf(stack)) {
    const size = copies * shape.reduce((product, extent) => product * extent, 1);
    if (kind === 'norm') count.norms += size + copies * bias;
    else {
      count[kind] += size;
      count.biases += copies * bias;
    }
    count.total += size + copies * bias;
  }
  return count;
}

export interface ModelCount {
  encoder: StackCount;
  /** Without the token embedding where that is the encoder's. */
  decoder: StackCount | null;
  total: number;
}

export function countModel({ encoder, decoder, shared_embedding }: StackedModel): ModelCount {
  const read = countStack(encoder);
  if (!decoder) return { encoder: read, decoder: null, total: read.total };
  const own = countStack(decoder);
  const shared = shared_embedding ? own.embedding : 0;
  const written = { ...own, embedding: own.embedding - shared, total: own.total - shared };
  return { encoder: read, decoder: written, total: read.total + written.total };
}

/** What the server says of a stack: its sizes, and what its blocks are made of. */
export interface DescribedStack extends Omit<Dimensions, 'parameters'> {
  architecture: Omit<Architecture, 'positions'> & { positions: Stack['positions'] };
}

/** Distances that a learned bias of the scores tells apart, where the server does not say it: T5's. */
const usualBuckets = 32;

function stackOf({ layers, heads, head_size, channels, feed_forward, vocabulary, context, architecture }: DescribedStack, role: 'encoder' | 'decoder'): Stack {
  const { key_value_heads, norm, positions, gated, activation_label, biases } = architecture;
  return {
    layers, heads, head_size, channels, feed_forward, vocabulary, context, key_value_heads, norm, positions, gated, activation_label, biases,
    cross_attention: role === 'decoder', unembedding: 'none', ...(positions === 'relative' && { buckets: usualBuckets }),
  };
}

const either = [true, false];

/**
 * A translator as the server describes it. Its last norms and its unembedding follow from its number of parameters: the first usual choice that
 * gives it. Null where none does.
 */
export function modelOf(name: string, encoder: DescribedStack, decoder: DescribedStack, parameters: number): StackedModel | null {
  const [read, written] = [stackOf(encoder, 'encoder'), stackOf(decoder, 'decoder')];
  for (const shared_embedding of either) {
    for (const unembedding of ['tied', 'own'] as const) {
      for (const embedding_norm of [...either].reverse()) {
        for (const final_norm of either) {
          for (const unembedding_bias of [...either].reverse()) {
            const norms = { embedding_norm, final_norm };
            const model = { name, encoder: { ...read, ...norms }, decoder: { ...written, ...norms, unembedding, unembedding_bias }, shared_embedding };
            if (countModel(model).total === parameters) return model;
          }
        }
      }
    }
  }
  return null;
}
