// What the closer views read from the server about the shown trace.

import { api } from '../../lib/api';
import { asRead, headOfPart, windowOf, type HeadPart } from '../../lib/architecture';
import { current, page } from '../../lib/state.svelte';
import type { Derivation, Intervention } from '../../lib/types';
import { directEffect, type DirectEffect, type Reading } from './direct_effect';
import * as elements from './elements';
import { inputOf, weightsOf, type Role, type Weights } from './projection';
import type { QueriesAndKeys } from './scores';

/** Where the server finds the vector of a query head: keys and values may be shared. */
function serverHead(part: HeadPart, head: number): number {
  return headOfPart(page.architecture, current.meta!.heads, part, head);
}

/** (T, D): queries, keys, values or outputs of one query head at every position. */
export function ofOneHead(part: HeadPart, layer: number, head: number): Promise<Float32Array> {
  const from = serverHead(part, head);
  return current.keep(`head ${part} ${layer} ${from}`, async (id) => (await api.array(id, `blocks.${layer}.attn.hook_${part}`, { heads: String(from) })).data);
}

/** (D): the vector of one query head at a position. */
export async function headAt(part: HeadPart, layer: number, head: number, position: number): Promise<Float32Array> {
  const { head_size: size } = current.meta!.dimensions;
  const from = serverHead(part, head);
  return (await current.vector(`blocks.${layer}.attn.hook_${part}`, position)).subarray(from * size, (from + 1) * size);
}

export async function queriesAndKeys(layer: number, head: number): Promise<QueriesAndKeys> {
  const { tokens, dimensions } = current.meta!;
  const [q, k] = await Promise.all((['q', 'k'] as const).map((part) => ofOneHead(asRead(page.architecture, part), layer, head)));
  return { positions: tokens.length, size: dimensions.head_size, window: windowOf(page.architecture, layer), q, k };
}

/** (H, C): what each head of a block adds to the residual stream at a position. */
export function additionsOf(layer: number, position: number): Promise<Float32Array> {
  return current.vector(`blocks.${layer}.attn.hook_result`, position);
}

function derivationOf(id: string, role: Role, layer: number, head: number, position: number, column: number): Promise<Derivation> {
  const { channels } = current.meta!.dimensions;
  return api.derivation(id, elements.ofHead(layer, serverHead(role, head), role, position)(column), undefined, channels);
}

/** The row that block `layer` projects at `position`: the residual stream after the norm with its gain and bias. */
export function projectedRow(layer: number, position: number): Promise<Float32Array> {
  return current.keep(`projected ${layer} ${position}`, async (id) => inputOf(await derivationOf(id, 'q', layer, 0, position, 0)));
}

/** W and b of a head; `ondone` is called with the share that has arrived. */
export function headWeights(role: Role, layer: number, head: number, ondone: (share: number) => void): Promise<Weights> {
  return current.keep(`weights ${role} ${layer} ${serverHead(role, head)}`, async (id) => {
    const size = current.meta!.dimensions.head_size;
    let done = 0;
    const column = async (index: number) => {
      const derivation = await derivationOf(id, role, layer, head, 0, index);
      ondone(++done / size);
      return derivation;
    };
    return weightsOf(await Promise.all(Array.from({ length: size }, (_, index) => column(index))));
  });
}

async function read(base: string, interventions: Intervention[], position: number): Promise<Reading> {
  const { id } = await api.makeTrace({ base, interventions });
  try {
    const at = { positions: String(position) };
    const [logits, scale] = await Promise.all([api.array(id, 'unembed.hook_out', at), api.array(id, 'ln_final.hook_scale', at)]);
    return { logits: logits.data, spread: scale.data[0] };
  } finally {
    void api.removeTrace(id).catch(() => {}); // another trace may have evicted it
  }
}

export function effectOfHead(layer: number, head: number, position: number): Promise<DirectEffect> {
  return current.keep(`direct ${layer} ${head} ${position}`, async (id) => {
    const { layers, channels } = current.meta!.dimensions;
    const point = `blocks.${layers - 1}.hook_resid_post`;
    const clear: Intervention = { kind: 'ablate', point, positions: String(position) };
    const additions = await current.vector(`blocks.${layer}.attn.hook_result`, position);
    const vector = Array.from(additions.subarray(head * channels, (head + 1) * channels));
    const [alone, empty, [realSpread]] = await Promise.all([
      read(id, [clear, { kind: 'add', point, positions: String(position), vector }], position),
      current.keep(`empty stream ${position}`, () => read(id, [clear], position)),
      current.vector('ln_final.hook_scale', position),
    ]);
    return directEffect(alone, empty, realSpread);
  });
}

let vocabulary: { of: string; texts: Promise<string[]> } | undefined;
/** The text of every token; none for a model without a tokenizer. */
export function tokenTexts(): Promise<string[]> {
  const of = page.view.model;
  if (vocabulary?.of !== of) vocabulary = { of, texts: api.vocabulary().catch(() => []) };
  return vocabulary.texts;
}
