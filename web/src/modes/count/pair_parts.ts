// The parts of an encoder and a decoder, what they cost for two texts of given lengths, and their sizes in a link.

import { countModel, keyWidth, queryWidth, type Stack, type StackedModel } from '../../lib/stacks';
import { parameterBytes, type Part } from './shape';

/** Tokens of both texts; an encoder alone has a source only. */
export interface Lengths {
  source: number;
  target: number;
}

/** Operations of one pass over the source and of writing the target token by token. */
export interface PairWork {
  encoder: { attention: number; products: number; feed_forward: number };
  /** `cross_source` projects the source's keys and values, once for all steps. */
  decoder: { attention: number; products: number; cross: number; cross_source: number; cross_products: number; feed_forward: number };
  unembedding: number;
  total: number;
}

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, number) => total + number, 0);

/** A multiplication and an addition for each element of a matrix; 4 · A for each pair of a query and a key: its score, and its value's share. */
const perElement = 2;
const perPair = 4;

export function pairWork({ encoder, decoder }: StackedModel, { source, target }: Lengths): PairWork {
  const matrices = (stack: Stack) => {
    const [queries, keys] = [queryWidth(stack), keyWidth(stack)];
    return { attention: perElement * stack.layers * stack.channels * 2 * (queries + keys), feed_forward: perElement * stack.layers * (stack.gated ? 3 : 2) * stack.channels * stack.feed_forward };
  };
  const pairs = (stack: Stack, count: number) => perPair * queryWidth(stack) * stack.layers * count;
  const read = matrices(encoder);
  const reading = { attention: source * read.attention, products: pairs(encoder, source * source), feed_forward: source * read.feed_forward };
  const last = decoder ?? encoder;
  const positions = decoder ? target : source;
  const head = (last.prediction_head ? last.channels ** 2 : 0) + (last.unembedding === 'none' ? 0 : last.vocabulary * last.channels);
  const unembedding = perElement * positions * head;
  const none = { attention: 0, products: 0, cross: 0, cross_source: 0, cross_products: 0, feed_forward: 0 };
  const writing = decoder
    ? {
        attention: target * matrices(decoder).attention,
        // With the causal mask a token attends to half of the text on average.
        products: pairs(decoder, (target * target) / 2),
        cross: target * perElement * decoder.layers * 2 * decoder.channels * queryWidth(decoder),
        cross_source: source * perElement * decoder.layers * 2 * decoder.channels * keyWidth(decoder),
        cross_products: pairs(decoder, target * source),
        feed_forward: target * matrices(decoder).feed_forward,
      }
    : none;
  return { encoder: reading, decoder: writing, unembedding, total: sum(Object.values(reading)) + sum(Object.values(writing)) + unembedding };
}

/** Bytes in f32: weights, the keys and values of both texts that writing the target reads, and the weights, gradients and moments of training. */
export function pairMemory(model: StackedModel, { source, target }: Lengths): { weights: number; own_cache: number; cross_cache: number; training: number } {
  const { total } = countModel(model);
  const cached = (positions: number) => (model.decoder ? 2 * model.decoder.layers * keyWidth(model.decoder) * positions * parameterBytes : 0);
  return { weights: parameterBytes * total, own_cache: cached(target), cross_cache: cached(source), training: 4 * parameterBytes * total };
}

export interface ScoreGrid {
  kind: 'encoder' | 'decoder' | 'cross';
  queries: number;
  keys: number;
  /** How many the mask keeps. */
  kept: number;
  /** In one head; `all` is that of all heads of all blocks. */
  head: number;
  all: number;
}

/** The scores of two texts: one for each pair of a query and a key, in each head of each block. */
export function scoreGrids({ encoder, decoder }: StackedModel, { source, target }: Lengths): ScoreGrid[] {
  const grid = (kind: ScoreGrid['kind'], stack: Stack, queries: number, keys: number, kept = queries * keys): ScoreGrid => ({ kind, queries, keys, kept, head: queries * keys, all: stack.layers * stack.heads * queries * keys });
  return [grid('encoder', encoder, source, source), ...(decoder ? [grid('decoder', decoder, target, target, (target * (target + 1)) / 2), grid('cross', decoder, target, source)] : [])];
}

/** Each parameter is in exactly one part; `work` is that of two texts. */
export function pairParts(model: StackedModel, lengths: Lengths): Part[] {
  const { encoder, decoder, shared_embedding } = model;
  const count = countModel(model);
  const work = pairWork(model, lengths);
  const last = decoder ?? encoder;
  const stackParts = (stack: Stack, own: typeof count.encoder, of: 'Encoder' | 'Decoder'): Part[] => {
    const side = of === 'Encoder' ? work.encoder : work.decoder;
    const wide: [number, string] = [stack.channels, 'channels'];
    const blocks: [number, string] = [stack.layers, stack.layers === 1 ? 'block' : 'blocks'];
    // Query and output have a matrix for each head, key and value one for each key/value head.
    const heads: [number, string] = [2 * (stack.heads + stack.key_value_heads), 'head matrices'];
    const attention: [number, string][] = [heads, wide, [stack.head_size, 'head size'], blocks];
    const within = of.toLowerCase();
    return [
      {
        id: `${within}-attention`, name: `${of}, attention`, group: 'attention', stack: within, factors: attention, parameters: own.attention, work: side.attention + side.products,
        what: of === 'Encoder' ? 'words of the source to each other, in both directions' : 'words of the target to those before them',
      },
      ...(stack.cross_attention
        ? [{ id: 'cross', name: 'Decoder, cross-attention', group: 'cross' as const, stack: within, factors: attention, parameters: own.cross_attention, work: work.decoder.cross + work.decoder.cross_source + work.decoder.cross_products, what: 'queries of the target, keys and values of the source' }]
        : []),
      { id: `${within}-feed-forward`, name: `${of}, feed-forward`, group: 'feed-forward', stack: within, factors: [[stack.gated ? 3 : 2, 'matrices'], wide, [stack.feed_forward, 'neurons'], blocks], parameters: own.feed_forward, work: side.feed_forward, what: 'each word on its own' },
    ];
  };
  const table = (stack: Stack): [number, string][] => [[stack.vocabulary, 'tokens'], [stack.channels, 'channels']];
  const uses = [...(decoder && shared_embedding ? ['both texts'] : []), ...(last.unembedding === 'tied' ? ['the unembedding'] : [])];
  const stacks = [count.encoder, ...(count.decoder ? [count.decoder] : [])];
  const [positions, biases, norms, unembedding] = (['position', 'biases', 'norms', 'unembedding'] as const).map((part) => sum(stacks.map((own) => own[part])));
  const parts: Part[] = [
    {
      id: 'embedding', name: decoder && !shared_embedding ? 'Token embedding, source' : 'Token embedding', group: 'words', factors: table(encoder), parameters: count.encoder.embedding, work: last.unembedding === 'tied' && (shared_embedding || !decoder) && !last.prediction_head ? work.unembedding : 0,
      what: uses.length > 0 ? `one row for each token; the same table serves ${uses.join(' and ')}` : 'one row for each token',
    },
    { id: 'target-embedding', name: 'Token embedding, target', group: 'words', factors: decoder && !shared_embedding ? table(decoder) : [], parameters: count.decoder?.embedding ?? 0, work: last.unembedding === 'tied' && !shared_embedding && decoder ? work.unembedding : 0, what: `one row for each token${last.unembedding === 'tied' ? '; the same table is the unembedding' : ''}` },
    {
      id: 'position', name: encoder.positions === 'relative' ? 'Distances' : 'Position embedding', group: 'words', factors: [], parameters: positions, work: 0,
      what: encoder.positions === 'relative' ? `a number for each of ${encoder.buckets} groups of distances and each head, in ${decoder ? 'both stacks' : 'the stack'}` : `one row for each position${encoder.token_types ? `, and ${encoder.token_types} for the sentences that a text joins` : ''}`,
    },
    ...stackParts(encoder, count.encoder, 'Encoder'),
    ...(decoder && count.decoder ? stackParts(decoder, count.decoder, 'Decoder') : []),
    { id: 'unembedding', name: last.prediction_head ? 'Prediction head' : 'Unembedding', group: 'words', factors: last.prediction_head ? [[last.channels, 'channels'], [last.channels, 'channels']] : table(last), parameters: unembedding, work: last.unembedding === 'own' || last.prediction_head ? work.unembedding : 0, what: last.prediction_head ? 'a layer before the unembedding, which is the token embedding again' : 'from the residual stream to a logit for each token' },
    { id: 'biases', name: 'Biases', group: 'rest', factors: [], parameters: biases, work: 0, what: 'one number added to each output' },
    { id: 'norms', name: 'Norms', group: 'rest', factors: [], parameters: norms, work: 0, what: last.norm === 'rms' || !last.biases.norm ? 'a gain for each channel' : 'a gain and a bias for each channel' },
  ];
  return parts.filter(({ parameters, work: operations }) => parameters > 0 || operations > 0);
}

/** What the sliders set; the rest of the description stays. */
export interface PairSizes {
  encoder_layers: number;
  /** 0: there is no decoder. */
  decoder_layers: number;
  heads: number;
  head_size: number;
  feed_forward: number;
  vocabulary: number;
}

const sizeNames = ['encoder_layers', 'decoder_layers', 'heads', 'head_size', 'feed_forward', 'vocabulary'] as const;

export function sizesOf({ encoder, decoder }: StackedModel): PairSizes {
  const { heads, head_size, feed_forward, vocabulary } = encoder;
  return { encoder_layers: encoder.layers, decoder_layers: decoder?.layers ?? 0, heads, head_size, feed_forward, vocabulary };
}

export const writeSizes = (sizes: PairSizes): string => sizeNames.map((name) => sizes[name]).join(' ');

/** Null where the text is not one that `writeSizes` gives for such a model. */
export function readSizes(text: string | undefined, model: StackedModel): PairSizes | null {
  const numbers = (text ?? '').split(' ').map(Number);
  const isWhole = numbers.every((number, index) => Number.isInteger(number) && (number > 0 || (sizeNames[index] === 'decoder_layers' && model.decoder === null)));
  if (numbers.length !== sizeNames.length || !isWhole) return null;
  return Object.fromEntries(sizeNames.map((name, index) => [name, numbers[index]])) as unknown as PairSizes;
}

/** The model with other sizes; the stream is as wide as all heads. */
export function withSizes(model: StackedModel, sizes: PairSizes): StackedModel {
  const { heads, head_size, feed_forward, vocabulary } = sizes;
  const resized = (stack: Stack, layers: number): Stack => {
    const group = stack.heads / stack.key_value_heads;
    return { ...stack, layers, heads, head_size, feed_forward, vocabulary, channels: heads * head_size, key_value_heads: heads % group === 0 ? heads / group : heads };
  };
  return { ...model, encoder: resized(model.encoder, sizes.encoder_layers), decoder: model.decoder && resized(model.decoder, sizes.decoder_layers) };
}
