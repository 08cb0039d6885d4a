// The shape of a model: from a preset's config or the served model, in a link, and its parameters by part.

import { gpt2, isGrouped } from '../../lib/architecture';
import type { Architecture, ParameterCount } from '../../lib/types';

export interface Shape {
  layers: number;
  heads: number;
  key_value_heads: number;
  head_size: number;
  channels: number;
  feed_forward: number;
  vocabulary: number;
  context: number;
  tied: boolean;
  gated: boolean;
  norm: Architecture['norm'];
  positions: Architecture['positions'];
  residual: Architecture['residual'];
  /** Whether all layers have biases, or none; absent where only some have, as in the served model. */
  bias?: boolean;
}

export const sizes = ['layers', 'heads', 'head_size', 'feed_forward', 'vocabulary', 'context'] as const;

/** Whether all layers have biases, or none. */
function biasOf({ norm, biases }: Architecture): boolean | undefined {
  const all = [biases.query, biases.output, biases.feed_forward, ...(norm === 'rms' ? [] : [biases.norm])];
  return all.every((one) => one === all[0]) ? all[0] : undefined;
}

/** Reads the size names of a preset or a model and those of Hugging Face's GPT-2 config. */
export function shapeOf(config: Record<string, unknown>, described?: Architecture): Shape {
  const number = (plain: string, theirs: string, other?: number) => Number(config[plain] ?? config[theirs] ?? other);
  const width = number('channels', 'n_embd');
  const heads = number('heads', 'n_head');
  const architecture = described ?? (config.architecture as Architecture | undefined) ?? gpt2(heads);
  const bias = described || config.bias === undefined ? biasOf(architecture) : config.bias !== false;
  const { key_value_heads, gated, norm, positions, residual } = architecture;
  return {
    layers: number('layers', 'n_layer'),
    heads,
    key_value_heads,
    head_size: number('head_size', '', width / heads),
    channels: width,
    feed_forward: number('feed_forward', 'n_inner', 4 * width),
    vocabulary: number('vocabulary', 'vocab_size'),
    context: number('context', 'n_positions'),
    tied: (config.tied ?? config.tie_word_embeddings) !== false,
    gated, norm, positions, residual,
    ...(bias !== undefined && { bias }),
  };
}

/** What a shape says about a model, where nothing more is known. */
export function describedBy(shape: Shape): Architecture {
  const { heads, key_value_heads, gated, norm, positions, residual, bias = true } = shape;
  return { ...gpt2(heads), family: 'custom', key_value_heads, gated, norm, positions, residual, biases: { norm: bias && norm === 'layer', query: bias, output: bias, feed_forward: bias } };
}

/** The parameters of a request for the counts of a shape. */
export function queryOf(shape: Shape): Record<string, string | number | boolean> {
  const { positions, ...rest } = shape;
  return { ...rest, ...(positions !== 'sinusoidal' && { positions }) };
}

const [norms, positionKinds] = [['layer', 'rms'], ['learned', 'rotary', 'sinusoidal', 'none']] as const;

/** Sizes, "tied" or "untied", and then a word for each way in which the shape is not GPT-2's. */
export function writeShape(shape: Shape): Record<string, string> {
  const { heads, head_size, key_value_heads, channels: width, gated, norm, positions, residual, bias } = shape;
  const others = [
    key_value_heads !== heads && `shared:${key_value_heads}`, width !== heads * head_size && `channels:${width}`, gated && 'gated', norm === 'rms' && 'rms', positions !== 'learned' && `positions:${positions}`,
    residual === 'parallel' && 'parallel', bias === false && 'unbiased', bias === undefined && 'biased:some',
  ];
  return { shape: [...sizes.map((name) => shape[name]), shape.tied ? 'tied' : 'untied', ...others.filter(Boolean)].join(' ') };
}

export function readShape(text: string | undefined): Shape | null {
  const parts = (text ?? '').split(' ');
  const whole = (word: string | undefined) => (Number.isInteger(Number(word)) && Number(word) > 0 ? Number(word) : null);
  const numbers = parts.slice(0, sizes.length).map(whole);
  if (parts.length <= sizes.length || numbers.some((number) => number === null)) return null;
  const [tied, ...others] = parts.slice(sizes.length);
  const named = new Map(others.map((word) => word.split(':') as [string, string | undefined]));
  const size = Object.fromEntries(sizes.map((name, index) => [name, numbers[index]])) as Record<(typeof sizes)[number], number>;
  const shared = whole(named.get('shared')) ?? size.heads;
  if (size.heads % shared !== 0) return null;
  const position = positionKinds.find((kind) => kind === named.get('positions'));
  return {
    ...size, key_value_heads: shared, channels: whole(named.get('channels')) ?? size.heads * size.head_size, tied: tied === 'tied', gated: named.has('gated'), norm: norms[Number(named.has('rms'))],
    positions: position ?? 'learned', residual: named.has('parallel') ? 'parallel' : 'sequential', ...(!named.has('biased') && { bias: !named.has('unbiased') }),
  };
}

/** A shape with other heads: groups stay as large where they can, and the stream as wide as the heads where it was. */
export function withHeads(shape: Shape, change: { heads?: number; head_size?: number }): Shape {
  const { heads, head_size } = { ...shape, ...change };
  const group = shape.heads / shape.key_value_heads;
  const follows = shape.channels === shape.heads * shape.head_size;
  return { ...shape, heads, head_size, key_value_heads: heads % group === 0 ? heads / group : heads, channels: follows ? heads * head_size : shape.channels };
}

/** The numbers of key/value heads that query heads can share evenly, the most first. */
export function divisorsOf(heads: number): number[] {
  return Array.from({ length: heads }, (_, index) => heads - index).filter((one) => heads % one === 0);
}

/** Whether all sizes are the same, tied or not. */
export function isSameSize(one: Shape, other: Shape): boolean {
  return sizes.every((name) => one[name] === other[name]) && one.key_value_heads === other.key_value_heads && one.gated === other.gated && one.norm === other.norm;
}

/** A query, a key, and the value as two factors: from the stream to the head, and back. */
export const matricesOfHead = 4;

export interface Product {
  name: string;
  factors: number[];
  units: string[];
  product: number;
}

const plural = (count: number, name: string) => (count === 1 ? name : `${name}s`);

/** The weights of attention by the server's counts, from one matrix to all blocks. */
export function attentionSteps({ per_head: head, attention_block, attention_total }: ParameterCount, shape: Shape): Product[] {
  const { channels, head_size, heads, key_value_heads, layers } = shape;
  const matrix = { name: 'one query, key or value matrix of a head', factors: [channels, head_size], units: ['channels', 'head size'], product: head.query };
  const all = { name: 'all attention', factors: [layers, attention_block], units: [plural(layers, 'block'), ''], product: attention_total };
  if (!isGrouped(describedBy(shape), heads)) {
    return [
      matrix,
      { name: 'a head: query, key, value down, value up', factors: [matricesOfHead, head.query], units: ['matrices', ''], product: head.total },
      { name: 'a block', factors: [heads, head.total], units: [plural(heads, 'head'), ''], product: attention_block },
      all,
    ];
  }
  return [
    matrix,
    { name: 'a block: two matrices of each query head, two of each key/value head', factors: [2 * (heads + key_value_heads), head.query], units: ['matrices', ''], product: attention_block },
    all,
  ];
}

export interface Counted {
  name: string;
  parameters: number;
  /** Whether it is in the sum of all numbers that a tied model stores. */
  inTied: boolean;
  /** Whether it is in the sum of weight matrices alone, with an unembedding of its own. */
  inUntied: boolean;
}

/** The parts of a model, and which of two usual sums counts them. */
export function waysToCount(count: ParameterCount): { rows: Counted[]; tied: number; untied: number } {
  const rows: Counted[] = [
    { name: 'token embedding', parameters: count.embedding, inTied: true, inUntied: true },
    { name: 'attention', parameters: count.attention_total, inTied: true, inUntied: true },
    { name: 'feed-forward', parameters: count.feed_forward_total, inTied: true, inUntied: true },
    // As large as the token embedding.
    { name: 'unembedding of its own', parameters: count.embedding, inTied: false, inUntied: true },
    { name: 'position embedding', parameters: count.position, inTied: true, inUntied: false },
    { name: 'biases', parameters: count.biases, inTied: true, inUntied: false },
    { name: 'norms', parameters: count.norms, inTied: true, inUntied: false },
  ];
  const sum = (counted: Counted[]) => counted.reduce((total, { parameters }) => total + parameters, 0);
  return { rows, tied: sum(rows.filter(({ inTied }) => inTied)), untied: sum(rows.filter(({ inUntied }) => inUntied)) };
}

/** The scores of a text: one for each pair of tokens, in each head of each block. */
export function scoresOf(shape: Shape, tokens: number): { head: number; block: number; all: number } {
  const head = tokens * tokens;
  return { head, block: shape.heads * head, all: shape.layers * shape.heads * head };
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
  group: 'words' | 'attention' | 'cross' | 'feed-forward' | 'rest';
  /** The stack that it belongs to, where there are two. */
  stack?: string;
  /** The factors of the count, such as "12,288 × 128 × 96 heads × 96 blocks". */
  factors: [number, string][];
  parameters: number;
  /** Multiplications and additions: for one token, averaged over a full context; for both texts, where there are two. */
  work: number;
  what: string;
}

/** Bytes of an f32 parameter. */
export const parameterBytes = 4;

/** Each parameter is in exactly one part; the counts are the server's. Some parts have operations only. */
export function partsOf(count: ParameterCount, shape: Shape): Part[] {
  const { layers, heads, key_value_heads: shared, head_size, channels: width, feed_forward, vocabulary, context, gated, norm } = shape;
  const grouped = shared < heads;
  const architecture = count.architecture ?? describedBy(shape);
  const inHeads = (one: number, of = heads) => one * of * layers;
  const [ofHeads, ofShared] = [[heads, 'heads'], [shared, grouped ? 'key/value heads' : 'heads']].map((own): [number, string][] => [own as [number, string], [layers, 'blocks']]);
  const wide: [number, string] = [width, 'channels'];
  const size: [number, string] = [head_size, 'head size'];
  const matrix = count.feed_forward_total / (gated ? 3 : 2);
  const neurons: [number, string][] = [wide, [feed_forward, 'neurons'], [layers, 'blocks']];
  // Each element of a matrix is multiplied and added once for each token; embedding rows are only looked up.
  const matrices = new Set(['query', 'key', 'value', 'output', 'gate', 'up', 'down', 'unembedding']);
  const parts: Omit<Part, 'work'>[] = [
    { id: 'embedding', name: 'Token embedding', group: 'words', factors: [[vocabulary, 'tokens'], wide], parameters: count.embedding, what: 'one row for each token' },
    { id: 'position', name: 'Position embedding', group: 'words', factors: [[context, 'positions'], wide], parameters: count.position, what: 'one row for each position' },
    { id: 'query', name: 'Query', group: 'attention', factors: [wide, size, ...ofHeads], parameters: inHeads(count.per_head.query), what: 'what is each word looking for?' },
    { id: 'key', name: 'Key', group: 'attention', factors: [wide, size, ...ofShared], parameters: inHeads(count.per_head.key, shared), what: grouped ? 'what can each word be found by? shared by several heads' : 'what can each word be found by?' },
    { id: 'value', name: 'Value', group: 'attention', factors: [wide, size, ...ofShared], parameters: inHeads(count.per_head.value_down, shared), what: grouped ? 'what does it pass on? shared by several heads' : 'what does it pass on?' },
    { id: 'output', name: 'Output', group: 'attention', factors: [size, wide, ...ofHeads], parameters: inHeads(count.per_head.value_up), what: 'from the heads to the residual stream' },
    ...(gated ? [{ id: 'gate', name: 'Feed-forward, gate', group: 'feed-forward' as const, factors: neurons, parameters: matrix, what: 'how far each neuron is open' }] : []),
    { id: 'up', name: 'Feed-forward, in', group: 'feed-forward', factors: neurons, parameters: matrix, what: gated ? 'what the gates multiply' : 'input weights of the neurons' },
    { id: 'down', name: 'Feed-forward, out', group: 'feed-forward', factors: [[feed_forward, 'neurons'], wide, [layers, 'blocks']], parameters: matrix, what: 'output weights of the neurons' },
    { id: 'biases', name: 'Biases', group: 'rest', factors: [], parameters: count.biases, what: 'one number added to each output' },
    { id: 'norms', name: 'Norms', group: 'rest', factors: [], parameters: count.norms, what: norm === 'rms' || !architecture.biases.norm ? 'a gain for each channel' : 'a gain and a bias for each channel' },
    { id: 'unembedding', name: 'Unembedding', group: 'words', factors: [wide, [vocabulary, 'tokens']], parameters: count.unembedding, what: 'from the residual stream to a logit for each token' },
  ];
  const worked: Part[] = parts.map((part) => ({ ...part, work: matrices.has(part.id) ? 2 * part.parameters : 0 }));
  const again: Part = { id: 'again', name: 'Unembedding (tied)', group: 'words', factors: [], parameters: 0, work: count.unembedding > 0 ? 0 : 2 * count.embedding, what: 'from the residual stream to a logit for each token' };
  // What the server counts beyond the matrices.
  const rest = count.flops_per_token - [...worked, again].reduce((sum, { work }) => sum + work, 0);
  const windowed = architecture.windows.some((window) => window > 0);
  const between: Part = { id: 'between', name: 'Attention products', group: 'attention', factors: [], parameters: 0, work: rest, what: `scores and weighted sums over earlier positions; ${windowed ? 'those of a window, or ' : ''}half the context on average` };
  return [...worked, between, again].filter(({ parameters, work }) => parameters > 0 || work > 0);
}
