// The shape of a model: from a preset's config, in a link, and its parameters by part.

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

/** Reads the size names of a preset and those of Hugging Face's GPT-2 config. */
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

/** Whether all sizes are the same, tied or not. */
export function isSameSize(one: Shape, other: Shape): boolean {
  return sizes.every((name) => one[name] === other[name]);
}

/** A query, a key, and the value as two factors: from the stream to the head, and back. */
export const matricesOfHead = 4;

/** The weights of attention, multiplied out from one matrix to all blocks. */
export function attentionOf(shape: Shape): { matrix: number; head: number; block: number; all: number; wholeValue: number } {
  const matrix = channels(shape) * shape.head_size;
  const head = matricesOfHead * matrix;
  const block = shape.heads * head;
  return { matrix, head, block, all: shape.layers * block, wholeValue: channels(shape) ** 2 };
}

export interface Counted {
  name: string;
  parameters: number;
  /** Whether it is in the sum of all numbers that a tied model stores. */
  inTied: boolean;
  /** Whether it is in the sum of weight matrices alone, with an unembedding of its own. */
  inUntied: boolean;
}

/** The parts of a GPT-2-shaped model with biases, and which of two usual sums counts them. */
export function waysToCount(shape: Shape): { rows: Counted[]; tied: number; untied: number } {
  const width = channels(shape);
  const { layers, feed_forward, vocabulary, context } = shape;
  const rows: Counted[] = [
    { name: 'token embedding', parameters: vocabulary * width, inTied: true, inUntied: true },
    { name: 'attention', parameters: attentionOf(shape).all, inTied: true, inUntied: true },
    { name: 'feed-forward', parameters: 2 * width * feed_forward * layers, inTied: true, inUntied: true },
    { name: 'unembedding of its own', parameters: width * vocabulary, inTied: false, inUntied: true },
    { name: 'position embedding', parameters: context * width, inTied: true, inUntied: false },
    // Query, key, value and output, and the two layers of the feed-forward network.
    { name: 'biases', parameters: layers * (4 * width + feed_forward + width), inTied: true, inUntied: false },
    // A gain and a bias, twice in each block and once at the end.
    { name: 'norms', parameters: 2 * width * (2 * layers + 1), inTied: true, inUntied: false },
  ];
  const sum = (counted: Counted[]) => counted.reduce((total, { parameters }) => total + parameters, 0);
  return { rows, tied: sum(rows.filter(({ inTied }) => inTied)), untied: sum(rows.filter(({ inUntied }) => inUntied)) };
}

/** The scores of a text: one for each pair of tokens, in each head of each block. */
export function scoresOf(shape: Shape, tokens: number): { head: number; seen: number; block: number; all: number } {
  const head = tokens * tokens;
  return { head, seen: (tokens * (tokens + 1)) / 2, block: shape.heads * head, all: shape.layers * shape.heads * head };
}

/** "just under 58 billion" for 57,982,058,496: where a count is within 1 % below a whole number; otherwise ''. */
export function justUnder(number: number): string {
  const [size, name] = number >= 1e9 ? [1e9, 'billion'] : [1e6, 'million'];
  const whole = Math.ceil(number / size);
  return whole >= 2 && number < whole * size && number > 0.99 * whole * size ? `just under ${whole} ${name}` : '';
}

export interface Part {
  id: string;
  name: string;
  group: 'words' | 'attention' | 'feed-forward' | 'rest';
  /** The factors of the count, such as "12,288 × 128 × 96 heads × 96 blocks". */
  factors: [number, string][];
  parameters: number;
  /** Multiplications and additions for one token, averaged over a full context. */
  work: number;
  what: string;
}

/** Bytes of an f32 parameter. */
export const parameterBytes = 4;

/** Each parameter is in exactly one part; the counts are the server's. Some parts have operations only. */
export function partsOf(count: ParameterCount, shape: Shape): Part[] {
  const width = channels(shape);
  const { layers, heads, head_size, feed_forward, vocabulary, context } = shape;
  const inHeads = (one: number) => one * heads * layers;
  const ofHeads: [number, string][] = [[heads, 'heads'], [layers, 'blocks']];
  const half = count.feed_forward_total / 2;
  // Each element of a matrix is multiplied and added once for each token; embedding rows are only looked up.
  const matrices = new Set(['query', 'key', 'value', 'output', 'up', 'down', 'unembedding']);
  const parts: Omit<Part, 'work'>[] = [
    { id: 'embedding', name: 'Token embedding', group: 'words', factors: [[vocabulary, 'tokens'], [width, 'channels']], parameters: count.embedding, what: 'one row for each token' },
    { id: 'position', name: 'Position embedding', group: 'words', factors: [[context, 'positions'], [width, 'channels']], parameters: count.position, what: 'one row for each position' },
    { id: 'query', name: 'Query', group: 'attention', factors: [[width, 'channels'], [head_size, 'head size'], ...ofHeads], parameters: inHeads(count.per_head.query), what: 'what is each word looking for?' },
    { id: 'key', name: 'Key', group: 'attention', factors: [[width, 'channels'], [head_size, 'head size'], ...ofHeads], parameters: inHeads(count.per_head.key), what: 'what can each word be found by?' },
    { id: 'value', name: 'Value', group: 'attention', factors: [[width, 'channels'], [head_size, 'head size'], ...ofHeads], parameters: inHeads(count.per_head.value_down), what: 'what does it pass on?' },
    { id: 'output', name: 'Output', group: 'attention', factors: [[head_size, 'head size'], [width, 'channels'], ...ofHeads], parameters: inHeads(count.per_head.value_up), what: 'from the heads to the residual stream' },
    { id: 'up', name: 'Feed-forward, in', group: 'feed-forward', factors: [[width, 'channels'], [feed_forward, 'neurons'], [layers, 'blocks']], parameters: half, what: 'input weights of the neurons' },
    { id: 'down', name: 'Feed-forward, out', group: 'feed-forward', factors: [[feed_forward, 'neurons'], [width, 'channels'], [layers, 'blocks']], parameters: half, what: 'output weights of the neurons' },
    { id: 'biases', name: 'Biases', group: 'rest', factors: [], parameters: count.biases, what: 'one number added to each output' },
    { id: 'norms', name: 'Norms', group: 'rest', factors: [], parameters: count.norms, what: 'a gain and a bias for each channel' },
    { id: 'unembedding', name: 'Unembedding', group: 'words', factors: [[width, 'channels'], [vocabulary, 'tokens']], parameters: count.unembedding, what: 'from the residual stream to a logit for each token' },
  ];
  const worked: Part[] = parts.map((part) => ({ ...part, work: matrices.has(part.id) ? 2 * part.parameters : 0 }));
  const between: Part = { id: 'between', name: 'Attention products', group: 'attention', factors: [], parameters: 0, work: 2 * layers * width * context, what: 'scores and weighted sums over earlier positions; half the context on average' };
  const again: Part = { id: 'again', name: 'Unembedding (tied)', group: 'words', factors: [], parameters: 0, work: count.unembedding > 0 ? 0 : 2 * vocabulary * width, what: 'from the residual stream to a logit for each token' };
  return [...worked, between, again].filter(({ parameters, work }) => parameters > 0 || work > 0);
}
