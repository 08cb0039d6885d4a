// A model's shape as sliders know it, in a link and out of a preset's config.

import type { ParameterCount } from '../../lib/types';

export interface Shape {
  layers: number;
  heads: number;
  head_size: number;
  feed_forward: number;
  vocabulary: number;
  context: number;
  tied: boolean;
}

export const sizes = ['layers', 'heads', 'head_size', 'feed_forward', 'vocabulary', 'context'] as const;

/** A preset's config names its sizes plainly, a model's as Hugging Face does for GPT-2. */
export function shapeOf(config: Record<string, unknown>): Shape {
  const number = (plain: string, theirs: string, other?: number) => Number(config[plain] ?? config[theirs] ?? other);
  const width = number('channels', 'n_embd');
  const heads = number('heads', 'n_head');
  return {
    layers: number('layers', 'n_layer'),
    heads,
    head_size: number('head_size', '', width / heads),
    feed_forward: number('feed_forward', 'n_inner', 4 * width),
    vocabulary: number('vocabulary', 'vocab_size'),
    context: number('context', 'n_positions'),
    tied: (config.tied ?? config.tie_word_embeddings) !== false,
  };
}

export function writeShape(shape: Shape): Record<string, string> {
  return { shape: [...sizes.map((name) => shape[name]), shape.tied ? 'tied' : 'untied'].join(' ') };
}

export function readShape(text: string | undefined): Shape | null {
  const parts = (text ?? '').split(' ');
  const numbers = parts.slice(0, sizes.length).map(Number);
  if (parts.length !== sizes.length + 1 || !numbers.every((number) => Number.isInteger(number) && number > 0)) return null;
  return { ...Object.fromEntries(sizes.map((name, index) => [name, numbers[index]])), tied: parts[sizes.length] === 'tied' } as Shape;
}

export function channels(shape: Shape): number {
  return shape.heads * shape.head_size;
}

export interface Part {
  id: string;
  name: string;
  group: 'words' | 'attention' | 'feed-forward' | 'rest';
  /** How the count comes about, such as "12,288 × 128 × 96 heads × 96 blocks". */
  factors: [number, string][];
  parameters: number;
  /** Multiplications and additions for one token, in a full context's mean. */
  work: number;
  what: string;
}

/** Bytes of a parameter as it is trained: f32. */
export const parameterBytes = 4;

/** Every parameter in exactly one part; the counts are the server's. Parts without parameters do work only. */
export function partsOf(count: ParameterCount, shape: Shape): Part[] {
  const width = channels(shape);
  const { layers, heads, head_size, feed_forward, vocabulary, context } = shape;
  const inHeads = (one: number) => one * heads * layers;
  const ofHeads: [number, string][] = [[heads, 'heads'], [layers, 'blocks']];
  const half = count.feed_forward_total / 2;
  // Each number of a matrix is multiplied and added once a token; rows of a table are only looked up.
  const matrices = new Set(['query', 'key', 'value', 'output', 'up', 'down', 'head']);
  const parts: Omit<Part, 'work'>[] = [
    { id: 'embedding', name: 'Token table', group: 'words', factors: [[vocabulary, 'tokens'], [width, 'channels']], parameters: count.embedding, what: 'one row for each token' },
    { id: 'position', name: 'Position table', group: 'words', factors: [[context, 'positions'], [width, 'channels']], parameters: count.position, what: 'one row for each place in the text' },
    { id: 'query', name: 'Query', group: 'attention', factors: [[width, 'channels'], [head_size, 'head size'], ...ofHeads], parameters: inHeads(count.per_head.query), what: 'what is each word looking for?' },
    { id: 'key', name: 'Key', group: 'attention', factors: [[width, 'channels'], [head_size, 'head size'], ...ofHeads], parameters: inHeads(count.per_head.key), what: 'what does each word offer?' },
    { id: 'value', name: 'Value', group: 'attention', factors: [[width, 'channels'], [head_size, 'head size'], ...ofHeads], parameters: inHeads(count.per_head.value_down), what: 'what does it hand over?' },
    { id: 'output', name: 'Output', group: 'attention', factors: [[head_size, 'head size'], [width, 'channels'], ...ofHeads], parameters: inHeads(count.per_head.value_up), what: 'from the heads back into the stream' },
    { id: 'up', name: 'Feed-forward, in', group: 'feed-forward', factors: [[width, 'channels'], [feed_forward, 'neurons'], [layers, 'blocks']], parameters: half, what: 'what each neuron looks for' },
    { id: 'down', name: 'Feed-forward, out', group: 'feed-forward', factors: [[feed_forward, 'neurons'], [width, 'channels'], [layers, 'blocks']], parameters: half, what: 'what each neuron writes' },
    { id: 'biases', name: 'Biases', group: 'rest', factors: [], parameters: count.biases, what: 'one number added to each output' },
    { id: 'norms', name: 'Norms', group: 'rest', factors: [], parameters: count.norms, what: 'a gain and a shift for each channel' },
    { id: 'head', name: 'Last table', group: 'words', factors: [[width, 'channels'], [vocabulary, 'tokens']], parameters: count.head, what: 'from the stream to a score for each token' },
  ];
  const worked: Part[] = parts.map((part) => ({ ...part, work: matrices.has(part.id) ? 2 * part.parameters : 0 }));
  const between: Part = { id: 'between', name: 'Between words', group: 'attention', factors: [], parameters: 0, work: 2 * layers * width * context, what: 'scores and shares of all earlier words; half the context on average' };
  const again: Part = { id: 'again', name: 'Token table again', group: 'words', factors: [], parameters: 0, work: count.head > 0 ? 0 : 2 * vocabulary * width, what: 'from the stream to a score for each token' };
  return [...worked, between, again].filter(({ parameters, work }) => parameters > 0 || work > 0);
}
