// What the model is made of, and the words and formulas that differ between families.

import type { Architecture } from './types';

/** GPT-2, which stands for a model that is not known yet. */
export function gpt2(heads: number): Architecture {
  return {
    family: 'gpt2', norm: 'layer', positions: 'learned', key_value_heads: heads, windows: [], gated: false, activation_label: 'GELU', query_key_norm: false, residual: 'sequential',
    biases: { norm: true, query: true, output: true, feed_forward: true },
  };
}

/** Whether attention reads queries and keys that differ from their projections. */
export function changesQueryAndKey({ positions, query_key_norm }: Architecture): boolean {
  return positions === 'rotary' || query_key_norm;
}

export type HeadPart = 'q' | 'k' | 'v' | 'z' | 'rot_q' | 'rot_k';

/** The query or key that attention reads. */
export function asRead(architecture: Architecture, part: 'q' | 'k'): HeadPart {
  return changesQueryAndKey(architecture) ? `rot_${part}` : part;
}

/** Whether the part has a vector for each key/value head, not for each query head. */
export function isShared(part: HeadPart): boolean {
  return part === 'k' || part === 'v' || part === 'rot_k';
}

/** Query heads that read one key/value head. */
export function groupSize({ key_value_heads }: Architecture, heads: number): number {
  return Math.max(1, Math.floor(heads / key_value_heads));
}

/** The key/value head that a query head reads. */
export function keyHeadOf(architecture: Architecture, heads: number, head: number): number {
  return Math.floor(head / groupSize(architecture, heads));
}

/** Where the server finds a head's vector of this part. */
export function headOfPart(architecture: Architecture, heads: number, part: HeadPart, head: number): number {
  return isShared(part) ? keyHeadOf(architecture, heads, head) : head;
}

/** The query heads that read the same key/value head, the given one included. */
export function sharers(architecture: Architecture, heads: number, head: number): number[] {
  const size = groupSize(architecture, heads);
  const first = size * keyHeadOf(architecture, heads, head);
  return Array.from({ length: size }, (_, index) => first + index);
}

export function isGrouped({ key_value_heads }: Architecture, heads: number): boolean {
  return key_value_heads < heads;
}

/** How many positions a query of the layer attends to, its own included; 0: all before it. */
export function windowOf({ windows }: Architecture, layer: number): number {
  return windows[layer] ?? 0;
}

/** The first position that a query attends to. */
export function firstSeen(query: number, window: number): number {
  return window > 0 ? Math.max(0, query - window + 1) : 0;
}

export function isMasked(query: number, key: number, window: number): boolean {
  return key > query || key < firstSeen(query, window);
}

/** Whether the mask hides all of a cell that pools `pool` × `pool` pairs of a query and a key. */
export function isPooledMasked(row: number, column: number, pool: number, window: number): boolean {
  // The first query of the cell sees furthest back, the last one furthest ahead.
  const [query, key] = [row * pool, column * pool];
  return key > query + pool - 1 || key + pool - 1 < firstSeen(query, window);
}

/** How many pairs of a text the mask keeps. */
export function keptPairs(positions: number, window: number): number {
  const full = window > 0 ? Math.min(window, positions) : positions;
  return (full * (full + 1)) / 2 + (positions - full) * full;
}

export function maskReason(query: number, key: number, window: number): string {
  return key > query ? 'later tokens are masked' : `masked: outside the window of ${window} tokens`;
}

export const isParallel = ({ residual }: Architecture): boolean => residual === 'parallel';

export interface NormWords {
  name: string;
  /** What happens, before σ is named. */
  note: string;
  /** What σ is. */
  spread: string;
  formula: string;
  says: string;
}

export function normWords({ norm, biases }: Architecture): NormWords {
  if (norm === 'rms') {
    return { name: 'RMS norm', note: '÷\u00a0σ', spread: 'Root mean square σ', formula: '\\operatorname{norm}(x) = \\frac{x}{\\sqrt{\\tfrac1C\\sum_c x_c^2+\\varepsilon}}\\odot g', says: 'mean square one, then a learned gain; no mean is subtracted, no bias added' };
  }
  return {
    name: 'layer norm', note: 'minus the mean, ÷\u00a0σ', spread: 'Standard deviation σ',
    formula: `\\operatorname{norm}(x) = \\frac{x-\\mu}{\\sqrt{\\sigma^2+\\varepsilon}}\\odot g${biases.norm ? ' + b' : ''}`,
    says: `mean zero, variance one, then a learned gain${biases.norm ? ' and bias' : ''}`,
  };
}

/** The output of the feed-forward network for x. */
export function feedForwardFormula({ gated, activation_label }: Architecture): string {
  const operator = `\\operatorname{${activation_label}}`;
  return gated ? `W_{\\text{down}}\\big(${operator}(W_{\\text{gate}}\\,x)\\odot W_{\\text{up}}\\,x\\big)` : `W_2\\,${operator}\\big(W_1\\,x\\big)`;
}

/** A block's changes of the stream, each with what it says. */
export function blockFormulas(architecture: Architecture): { latex: string; says: string }[] {
  const feedForward = feedForwardFormula(architecture);
  if (isParallel(architecture)) {
    return [
      { latex: 'x \\leftarrow x + \\operatorname{attention}(\\operatorname{norm}_1(x)) + f(\\operatorname{norm}_2(x))', says: 'both halves read the same stream, and both are added' },
      { latex: `f(x) = ${feedForward}`, says: architecture.gated ? 'each word on its own; a gate for each neuron' : 'each word on its own' },
    ];
  }
  return [
    { latex: 'x \\leftarrow x + \\operatorname{attention}(\\operatorname{norm}(x))', says: 'words exchange information' },
    { latex: `\\begin{aligned} x &\\leftarrow x + f(\\operatorname{norm}(x))\\\\ f(x) &= ${feedForward} \\end{aligned}`, says: architecture.gated ? 'each word on its own; a gate for each neuron' : 'each word on its own' },
  ];
}

/** The positions that query t attends to, below a sum. */
export function seenFormula(window: number): string {
  return window > 0 ? `t-${window}<s\\le t` : 's\\le t';
}

/** The dot product of query t and key s as attention reads them. */
export function productFormula(architecture: Architecture): string {
  return changesQueryAndKey(architecture) ? '\\tilde q_t\\cdot \\tilde k_s' : 'q_t\\cdot k_s';
}

export function attentionFormula(architecture: Architecture, layer: number): string {
  return String.raw`z_t=\sum_{${seenFormula(windowOf(architecture, layer))}}\operatorname{softmax}_s\!\Big(\frac{${productFormula(architecture)}}{\sqrt{D}}\Big)\,v_s`;
}

/** How the query that attention reads comes from its projection; empty where it is the projection. */
export function positionedFormula({ positions, query_key_norm }: Architecture): string {
  const q = query_key_norm ? '\\operatorname{norm}(q_t)' : 'q_t';
  const k = query_key_norm ? '\\operatorname{norm}(k_s)' : 'k_s';
  if (positions === 'rotary') return `\\tilde q_t = R_t\\,${q},\\quad \\tilde k_s = R_s\\,${k}`;
  return query_key_norm ? `\\tilde q_t = ${q},\\quad \\tilde k_s = ${k}` : '';
}

/** The embedding that enters the model. */
export function embeddingFormula({ positions }: Architecture): { latex: string; says: string } {
  if (positions === 'learned') return { latex: 'x_t = W_E[\\,\\text{token}_t\\,] + W_P[\\,t\\,]', says: 'token embedding plus position embedding' };
  if (positions === 'sinusoidal') return { latex: 'x_t = W_E[\\,\\text{token}_t\\,] + p_t', says: 'token embedding plus fixed sines and cosines of the position' };
  return { latex: 'x_t = W_E[\\,\\text{token}_t\\,]', says: 'the token embedding alone' };
}

/** Whether a vector for the position is added to the token embedding. */
export function addsPositions({ positions }: Architecture): boolean {
  return positions === 'learned' || positions === 'sinusoidal';
}

/** What a model is made of, for one line: "RMS norms, rotary positions, …". */
export function features(architecture: Architecture, heads: number): string[] {
  const windows = [...new Set(architecture.windows.filter((window) => window > 0))];
  return [
    architecture.norm === 'rms' ? 'RMS norms' : 'layer norms',
    { learned: 'learned positions', rotary: 'rotary positions', sinusoidal: 'sinusoidal positions', none: 'no positions' }[architecture.positions],
    ...(isGrouped(architecture, heads) ? [`${heads} query heads on ${architecture.key_value_heads} key/value ${architecture.key_value_heads === 1 ? 'head' : 'heads'}`] : []),
    ...(windows.length > 0 ? [`windows of ${windows.join(' and ')} tokens${architecture.windows.some((window) => window === 0) ? ' in some blocks' : ''}`] : []),
    ...(architecture.query_key_norm ? ['norms of queries and keys'] : []),
    `${architecture.activation_label}${architecture.gated ? ' with gates' : ''}`,
    ...(isParallel(architecture) ? ['attention and feed-forward in parallel'] : []),
  ];
}
