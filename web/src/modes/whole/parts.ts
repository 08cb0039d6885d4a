// The parts of a GPT as a tree, generated from its shape. Each part has a box in the units of the part around
// it and units of its own for what is inside, so that all blocks share one inside, and all heads another.

import { changesQueryAndKey, groupSize, isGrouped, isParallel, normWords } from '../../lib/architecture';
import type { Architecture } from '../../lib/types';
import type { Shape } from '../count/shape';

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The parts of Count's table that have parameters. */
export type Counted = 'embedding' | 'position' | 'query' | 'key' | 'value' | 'output' | 'gate' | 'up' | 'down' | 'biases' | 'norms' | 'unembedding';

/** Where a matrix has its numbers from; `point` is without its block. */
export type Source =
  | { from: 'activation'; point: string; inBlock: boolean; ofHead: boolean }
  | { from: 'pattern' }
  | { from: 'weights'; of: 'query' | 'key' | 'value' | 'head-output' | 'output' | 'gate' | 'up' | 'down' | 'unembedding' };

/** The head under which the server has a source's numbers: keys and values may be shared. */
export function headOfSource(source: Source, { heads, key_value_heads }: Shape, head: number): number {
  const shared = source.from === 'weights' ? source.of === 'key' || source.of === 'value' : source.from === 'activation' && /^attn\.hook_(k|v|rot_k)$/.test(source.point);
  return shared && head >= 0 ? Math.floor((head * key_value_heads) / heads) : head;
}

export type Kind = 'model' | 'entry' | 'exit' | 'block' | 'attention' | 'feed-forward' | 'projection' | 'head' | 'matrix' | 'tokens' | 'candidates';

export type Tone = 'query' | 'key' | 'value' | 'plain';

export interface Part {
  key: string;
  kind: Kind;
  /** In the units of the part around it. */
  box: Box;
  /** Its own units; a part is scaled by box.width / inner.width in both directions. */
  inner: { width: number; height: number };
  /** In words a newcomer knows, and the technical name. */
  title: string;
  term: string;
  tone: Tone;
  source?: Source;
  rows: number;
  columns: number;
  counted: Partial<Record<Counted, number>>;
  children: Part[];
}

/** What a picture shows: a model's shape and parts, and how many tokens and candidates there are. */
export interface Subject {
  shape: Shape;
  architecture: Architecture;
  /** Tokens in the pictures of vectors. */
  tokens: number;
  /** The likeliest next tokens that are listed. */
  candidates: number;
  /** The row of the chosen token. */
  chosen: number;
}

/** More tokens than these are shown as a window around the chosen one. */
export const mostTokens = 96;

/** The tokens shown: the first one and how many. */
export function windowOf(tokens: number, chosen: number): { first: number; count: number } {
  const count = Math.min(tokens, mostTokens);
  return { first: Math.min(Math.max(0, chosen - Math.floor(0.75 * count)), tokens - count), count };
}

/** Room for a part's title at its top, as a share of the height of a matrix. */
const labelShare = 0.17;

/** The cells of a matrix, in its own units. */
export function cellsOf(part: Part): Box {
  const label = labelShare * part.inner.height;
  return { x: 0, y: label, width: part.inner.width, height: part.inner.height - label };
}

/** The inside of a block: where the residual stream runs, leaves and is joined again. */
export const blockUnits = { width: 1420, height: 960, residual: 861, title: 76, attention: { fork: 230, join: 600 }, feedForward: { fork: 930, join: 1320 } };
/** Where feed-forward of a parallel block leaves the residual stream, and how far down it passes below attention. */
export const parallelUnits = { fork: 330, below: 738 };
export const headUnits = { width: 1000, height: 620 };
export const entryWidth = 270;
export const exitWidth = 350;

function box(x: number, y: number, width: number, height: number): Box {
  return { x, y, width, height };
}

type Rest = Partial<Omit<Part, 'key' | 'kind' | 'box'>>;

function part(kind: Kind, key: string, place: Box, title: string, term: string, rest: Rest = {}): Part {
  return { key, kind, box: place, inner: { width: place.width, height: place.height }, title, term, tone: 'plain', rows: 0, columns: 0, counted: {}, children: [], ...rest };
}

function activation(point: string, inBlock = true, ofHead = false): Source {
  return { from: 'activation', point, inBlock, ofHead };
}

/** A grid of `count` cells of the shape of a head, as large as fit in `room`. */
export function gridOf(count: number, room: Box, shape: { width: number; height: number }): Box[] {
  let best = { size: 0, columns: 1 };
  for (let columns = 1; columns <= count; ++columns) {
    const size = Math.min(room.width / columns / shape.width, room.height / Math.ceil(count / columns) / shape.height);
    if (size > best.size) best = { size, columns };
  }
  const { size, columns } = best;
  const [wide, tall] = [size * shape.width, size * shape.height];
  const rows = Math.ceil(count / columns);
  const [left, top] = [room.x + (room.width - columns * wide) / 2, room.y + (room.height - rows * tall) / 2];
  const filled = 0.92;
  return Array.from({ length: count }, (_, index) => box(
    left + (index % columns) * wide + (wide * (1 - filled)) / 2,
    top + Math.floor(index / columns) * tall + (tall * (1 - filled)) / 2,
    filled * wide,
    filled * tall,
  ));
}

/** The inside of a head; `owns`: its keys and values are counted here, and not at another head that shares them. */
function headParts({ shape, architecture, tokens }: Subject, owns: boolean): Part[] {
  const { channels: width, head_size: size } = shape;
  const bias = architecture.biases.query ? { biases: size } : {};
  // Queries and keys that rotate are shown before and after, in less room each.
  const positioned = changesQueryAndKey(architecture);
  const [weightsWidth, first, vectorWidth, second] = positioned ? [110, 175, 120, 325] : [150, 235, 190, 0];
  const rotates = architecture.positions === 'rotary';
  const weights = (key: string, y: number, of: 'query' | 'key' | 'value', letter: string) => {
    const counted = of === 'query' || owns ? { [of]: width * size, ...bias } : {};
    const term = of !== 'query' && isGrouped(architecture, shape.heads) ? `W_${letter}, shared` : `W_${letter}`;
    return part('matrix', key, box(40, y, weightsWidth, 165), `${of[0].toUpperCase()}${of.slice(1)} weights`, term, { tone: of, source: { from: 'weights', of }, rows: width, columns: size, counted });
  };
  const vectors = (key: string, x: number, y: number, title: string, term: string, tone: Tone, wide = vectorWidth) =>
    part('matrix', key, box(x, y, wide, 165), title, term, { tone, source: activation(`attn.hook_${key}`, true, true), rows: tokens, columns: size });
  const turned = (of: 'query' | 'key', y: number) => vectors(`rot_${of[0]}`, second, y, rotates ? 'Turned' : 'Evened out', `${rotates ? 'rotated' : 'normalised'} ${of}`, of);
  return [
    weights('wq', 70, 'query', 'Q'),
    weights('wk', 250, 'key', 'K'),
    weights('wv', 430, 'value', 'V'),
    vectors('q', first, 70, 'Looking for', 'query', 'query'),
    vectors('k', first, 250, 'Found by', 'key', 'key'),
    ...(positioned ? [turned('query', 70), turned('key', 250)] : []),
    vectors('v', first, 430, 'Passes on', 'value', 'value'),
    part('matrix', 'pattern', box(480, 70, 275, 331), 'Who looks at whom', 'attention pattern', { source: { from: 'pattern' }, rows: tokens, columns: tokens }),
    vectors('z', 520, 430, 'Collected', 'weighted values z', 'value', 190),
    part('matrix', 'wo', box(790, 430, 170, 165), 'Output weights', 'W_O', { source: { from: 'weights', of: 'head-output' }, rows: size, columns: width, counted: { output: size * width } }),
    part('matrix', 'result', box(790, 250, 170, 150), 'What it adds', 'head output', { source: activation('attn.hook_result', true, true), rows: tokens, columns: width }),
  ];
}

function attentionPart(subject: Subject): Part {
  const { shape, architecture, tokens } = subject;
  const { channels: width } = shape;
  const attentionWidth = shape.heads * shape.head_size;
  const group = groupSize(architecture, shape.heads);
  const [inside, shared] = [headParts(subject, true), headParts(subject, false)];
  // One gain for all queries of the block, and one for all keys.
  const norms: Part['counted'] = architecture.query_key_norm ? { norms: 2 * shape.head_size } : {};
  const heads = gridOf(shape.heads, box(12, 58, 464, 402), headUnits).map((place, head) =>
    part('head', `h${head}`, place, `Head ${head}`, 'attention head', { inner: { ...headUnits }, children: head % group === 0 ? inside : shared }));
  const projection = part('projection', 'out', box(488, 64, 130, 392), 'Joined', 'projection', {
    counted: architecture.biases.output ? { biases: width } : {},
    children: [
      part('matrix', 'z', box(10, 44, 110, 100), 'All heads', 'z', { source: activation('attn.hook_z'), rows: tokens, columns: attentionWidth, tone: 'value' }),
      part('matrix', 'wo', box(10, 158, 110, 106), 'Mixes them', 'W_O', { source: { from: 'weights', of: 'output' }, rows: attentionWidth, columns: width }),
      part('matrix', 'sum', box(10, 278, 110, 100), 'Added', 'attention output', { source: activation('hook_attn_out'), rows: tokens, columns: width }),
    ],
  });
  return part('attention', 'attention', box(40, 84, 630, 470), 'Between words', 'attention', { counted: norms, children: [...heads, projection] });
}

function feedForwardPart({ shape, architecture, tokens }: Subject): Part {
  const { channels: width, feed_forward } = shape;
  const { gated } = architecture;
  const activated = architecture.activation_label;
  const bias = (count: number) => (architecture.biases.feed_forward ? { biases: count } : {});
  const widening = (key: 'gate' | 'up', y: number, height: number, title: string, term: string) =>
    part('matrix', key, box(18, y, 150, height), title, term, { source: { from: 'weights', of: key }, rows: width, columns: feed_forward, counted: { [key]: width * feed_forward, ...bias(feed_forward) } });
  const neurons = (key: string, y: number, height: number, title: string, term: string) =>
    part('matrix', key, box(190, y, 250, height), title, term, { source: activation(`mlp.hook_${key}`), rows: tokens, columns: feed_forward });
  const before = gated
    ? [
        widening('gate', 64, 187, 'Opens', 'W_gate'),
        widening('up', 267, 187, 'Widens', 'W_up'),
        neurons('pre', 64, 118, 'Gates, in', `before ${activated}`),
        neurons('pre_linear', 200, 118, 'What they let through', 'W_up · x'),
        neurons('post', 336, 118, 'Neurons, out', `${activated}(gate) × up`),
      ]
    : [
        widening('up', 64, 390, 'Widens', 'W_in'),
        neurons('pre', 64, 187, 'Neurons, in', 'before the activation'),
        neurons('post', 267, 187, 'Neurons, out', 'after the activation'),
      ];
  return part('feed-forward', 'mlp', box(750, 84, 630, 470), 'Each word alone', 'feed-forward', {
    children: [
      ...before,
      part('matrix', 'down', box(462, 64, 150, 187), 'Narrows', 'W_out', { source: { from: 'weights', of: 'down' }, rows: feed_forward, columns: width, counted: { down: feed_forward * width, ...bias(width) } }),
      part('matrix', 'sum', box(462, 267, 150, 187), 'Added', 'feed-forward output', { source: activation('hook_mlp_out'), rows: tokens, columns: width }),
    ],
  });
}

/** Gains and biases of a norm of the stream. */
function normSize({ shape, architecture: { norm, biases } }: Subject): number {
  return (norm === 'layer' && biases.norm ? 2 : 1) * shape.channels;
}

/** The inside of every block. */
export function blockParts(subject: Subject): Part[] {
  const { shape, architecture, tokens } = subject;
  const { channels: width } = shape;
  const { name: normName } = normWords(architecture);
  const stream = (key: string, x: number, title: string, term: string, point: string) =>
    part('matrix', key, box(x, 755, 150, 181), title, term, { source: activation(point), rows: tokens, columns: width });
  const norm = (key: string, x: number, term: string, point: string) =>
    part('matrix', key, box(x, 600, 150, 122), 'Evened out', term, { source: activation(point), rows: tokens, columns: width, counted: { norms: normSize(subject) } });
  return [
    stream('in', 25, 'Coming in', 'residual stream before', 'hook_resid_pre'),
    norm('norm1', 155, `${normName} 1`, 'ln1.hook_normalized'),
    attentionPart(subject),
    // The halves of a parallel block read the same stream: there is none between them.
    ...(isParallel(architecture) ? [] : [stream('mid', 668, 'After attention', 'residual stream between', 'hook_resid_mid')]),
    norm('norm2', 855, `${normName} 2`, 'ln2.hook_normalized'),
    feedForwardPart(subject),
  ];
}

export function entryPart(subject: Subject, place: Box, inner: { width: number; height: number }): Part {
  const { shape, architecture, tokens } = subject;
  const { channels: width } = shape;
  const [top, half] = [46, (inner.height - 46 - 30) / 2];
  const learned = architecture.positions === 'learned';
  return part('entry', 'entry', place, 'Words come in', 'embedding', {
    inner,
    children: [
      part('tokens', 'tokens', box(12, top, 106, inner.height - top - 15), 'Words', 'tokens', { rows: tokens, columns: 1 }),
      part('matrix', 'token', box(138, top, 120, learned ? half : inner.height - top - 15), 'Word vectors', 'token embedding', { source: activation('hook_embed', false), rows: tokens, columns: width, counted: { embedding: shape.vocabulary * width } }),
      ...(learned ? [part('matrix', 'position', box(138, top + half + 15, 120, half), 'Positions', 'position embedding', { source: activation('hook_pos_embed', false), rows: tokens, columns: width, counted: { position: shape.context * width } })] : []),
    ],
  });
}

export function exitPart(subject: Subject, place: Box, inner: { width: number; height: number }): Part {
  const { shape, tokens, candidates } = subject;
  const { channels: width } = shape;
  const [top, half] = [46, (inner.height - 46 - 30) / 2];
  return part('exit', 'exit', place, 'The next word', 'prediction', {
    inner,
    children: [
      part('matrix', 'norm', box(12, top, 110, half), 'Evened out', 'final norm', { source: activation('ln_final.hook_normalized', false), rows: tokens, columns: width, counted: { norms: normSize(subject) } }),
      part('matrix', 'unembedding', box(12, top + half + 15, 110, half), 'Candidates', 'unembedding W_U', { source: { from: 'weights', of: 'unembedding' }, rows: candidates, columns: width, counted: shape.tied ? {} : { unembedding: shape.vocabulary * width } }),
      part('candidates', 'words', box(136, top, 204, inner.height - top - 15), 'Likeliest next', 'probabilities', { rows: candidates, columns: 1 }),
    ],
  });
}

const sums = new WeakMap<Part, Partial<Record<Counted, number>>>();

/** The parameters inside a part, by the names of Count's table. */
export function countedIn(whole: Part): Partial<Record<Counted, number>> {
  const known = sums.get(whole);
  if (known) return known;
  const sum = { ...whole.counted };
  for (const child of whole.children) {
    for (const [name, number] of Object.entries(countedIn(child)) as [Counted, number][]) sum[name] = (sum[name] ?? 0) + number;
  }
  sums.set(whole, sum);
  return sum;
}

export function parametersOf(whole: Part): number {
  return Object.values(countedIn(whole)).reduce((sum, number) => sum + number, 0);
}
