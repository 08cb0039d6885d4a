// The changed trace, and what changed in attention.

import { api } from '../../lib/api';
import type { NumberArray, TraceMeta } from '../../lib/types';
import { editedTokens, textsOfSwaps, toInterventions, type Change } from './changes';
import { movedWeight } from './slope';

/** Runs the prompt again with the changes; the traces that swaps take from are made first. */
export async function runChanged(base: TraceMeta, changes: Change[], renormalise: 'keep' | 'renormalise', signal?: AbortSignal): Promise<TraceMeta> {
  const texts = textsOfSwaps(changes);
  const made = await Promise.all(texts.map((text) => api.makeTrace({ text }, signal)));
  const interventions = toInterventions(changes, new Map(texts.map((text, index) => [text, made[index].id])), renormalise);
  const ids = base.tokens.map((token) => token.id);
  const edited = editedTokens(ids, changes);
  const isEdited = edited.some((id, position) => id !== ids[position]);
  return api.makeTrace(isEdited ? { tokens: edited, interventions } : { base: base.id, interventions }, signal);
}

/** One query's row out of a layer's pattern (1, H, T or 1, T), head by head. */
export function rowsOfPattern({ shape, data }: NumberArray, position: number): Float32Array[] {
  const [, heads, queries, keys] = shape;
  const query = queries === 1 ? 0 : position;
  return Array.from({ length: heads }, (_, head) => data.subarray((head * queries + query) * keys, (head * queries + query + 1) * keys));
}

/** What a position attends to, in every head: rows[layer][head]. */
export async function attentionRows(trace: TraceMeta, position: number, signal?: AbortSignal): Promise<Float32Array[][]> {
  const layers = Array.from({ length: trace.layers }, (_, layer) => layer);
  const patterns = await Promise.all(layers.map((layer) => api.array(trace.id, `blocks.${layer}.attn.hook_pattern`, { positions: String(position) }, signal)));
  return patterns.map((pattern) => rowsOfPattern(pattern, position));
}

/** The share of weight that moved, head by head (L, H). */
export function movedByHead(before: Float32Array[][], after: Float32Array[][]): Float32Array {
  return Float32Array.from(before.flatMap((heads, layer) => heads.map((row, head) => movedWeight(row, after[layer][head]))));
}
