// The trace with changes, and what changed in attention.

import { api } from '../../lib/api';
import type { Intervention, NumberArray, TraceMeta } from '../../lib/types';
import type { Change } from './changes';
import { editedTokens, endsOf, steerKey, textsOf, toInterventions } from './interventions';
import { movedWeight } from './slope';

export interface Prepared {
  /** The prompt's ids, edited. */
  ids: number[];
  edited: boolean;
  interventions: Intervention[];
}

/** Makes the traces that changes refer to, and translates the changes to interventions. */
export async function prepare(base: TraceMeta, changes: Change[], renormalise: 'keep' | 'renormalise', signal?: AbortSignal): Promise<Prepared> {
  const texts = textsOf(changes);
  const made = await Promise.all(texts.map((text) => api.makeTrace({ text }, signal)));
  const traces = new Map(texts.map((text, index) => [text, made[index].id]));
  const vectors = new Map<string, Float32Array>();
  for (const change of changes) {
    if (change.kind !== 'steer') continue;
    for (const end of endsOf(change)) {
      const { data } = await api.array(traces.get(end.text)!, change.point, { positions: String(end.position) }, signal);
      vectors.set(steerKey(change.point, end), data);
    }
  }
  const ids = base.tokens.map((token) => token.id);
  const edited = editedTokens(ids, changes);
  return {
    ids: edited,
    edited: edited.some((id, position) => id !== ids[position]),
    interventions: toInterventions(changes, { base: base.id, tokens: ids.length, layers: base.layers, traces, vectors, renormalise }),
  };
}

/** Runs the prompt again with the changes. */
export async function runChanged(base: TraceMeta, changes: Change[], renormalise: 'keep' | 'renormalise', signal?: AbortSignal): Promise<TraceMeta> {
  const { ids, edited, interventions } = await prepare(base, changes, renormalise, signal);
  return api.makeTrace(edited ? { tokens: ids, interventions } : { base: base.id, interventions }, signal);
}

/** One query's row out of a layer's pattern (1, H, T or 1, T), head by head. */
export function rowsOfPattern({ shape, data }: NumberArray, position: number): Float32Array[] {
  const [, heads, queries, keys] = shape;
  const query = queries === 1 ? 0 : position;
  return Array.from({ length: heads }, (_, head) => data.subarray((head * queries + query) * keys, (head * queries + query + 1) * keys));
}

/** The attention of one position in every head: rows[layer][head]. */
export async function attentionRows(trace: TraceMeta, position: number, signal?: AbortSignal): Promise<Float32Array[][]> {
  const layers = Array.from({ length: trace.layers }, (_, layer) => layer);
  const patterns = await Promise.all(layers.map((layer) => api.array(trace.id, `blocks.${layer}.attn.hook_pattern`, { positions: String(position) }, signal)));
  return patterns.map((pattern) => rowsOfPattern(pattern, position));
}

/** The fraction of weight that moved, (L, H). */
export function movedByHead(before: Float32Array[][], after: Float32Array[][]): Float32Array {
  return Float32Array.from(before.flatMap((heads, layer) => heads.map((row, head) => movedWeight(row, after[layer][head]))));
}

/** Attention that moved less than this is shown as unchanged. */
export const leastMoved = 0.01;

/** The given head, or the one whose attention moved most where its own hardly moved and another's did. */
export function tellingHead(moved: ArrayLike<number>, { layer, head, heads }: { layer: number; head: number; heads: number }): { layer: number; head: number } {
  const given = moved[layer * heads + head] ?? 0;
  const most = Array.from(moved).reduce((best, share, index, all) => (share > all[best] ? index : best), 0);
  if (given >= leastMoved || moved[most] < leastMoved) return { layer, head };
  return { layer: Math.floor(most / heads), head: most % heads };
}
