// Changes as the server's interventions.

import type { Intervention } from '../../lib/types';
import type { Change, CutChange, FreezeChange, PointChange, SteerChange, SwapChange, TextPosition } from './changes';

export interface Sources {
  /** The trace of this text without changes, and its number of tokens and of blocks. */
  base: string;
  tokens: number;
  layers: number;
  /** Traces of the other texts, by text. */
  traces: Map<string, string>;
  /** The vectors of steering changes, by `steerKey`. */
  vectors: Map<string, Float32Array>;
  renormalise: 'keep' | 'renormalise';
}

/** The prompt's ids with the edited tokens replaced. */
export function editedTokens(ids: number[], changes: Change[]): number[] {
  const edited = [...ids];
  for (const change of changes) if (change.kind === 'token' && change.position < ids.length) edited[change.position] = change.id;
  return edited;
}

/** Other texts whose traces the changes need. */
export function textsOf(changes: Change[]): string[] {
  const texts = changes.flatMap((change) => {
    if (change.kind === 'swap' || change.kind === 'freeze') return [change.text];
    return change.kind === 'steer' ? endsOf(change).map(({ text }) => text) : [];
  });
  return [...new Set(texts)].filter((text) => text !== '');
}

export const endsOf = ({ towards, away }: SteerChange): TextPosition[] => (away ? [towards, away] : [towards]);
export const steerKey = (point: string, { text, position }: TextPosition): string => `${point} ${position} ${text}`;

function pointIntervention({ point, method, factor, positions }: PointChange, { base }: Sources): Intervention {
  const where = { point, ...(positions ? { positions } : {}) };
  if (method === 'zero') return { kind: 'ablate', ...where };
  return method === 'scale' ? { kind: 'scale', ...where, factor } : { kind: 'mean', ...where, from: base };
}

/** With positions, so that the text can be continued. */
function freezeInterventions({ point, text }: FreezeChange, { base, tokens, layers, traces }: Sources): Intervention[] {
  const points = point ? [point] : Array.from({ length: layers }, (_, layer) => `L${layer}`);
  return points.map((one) => ({ kind: 'freeze', point: one, positions: `0-${tokens - 1}`, from: text ? traces.get(text) : base }));
}

function steerIntervention(change: SteerChange, { vectors }: Sources): Intervention {
  const [towards, away] = endsOf(change).map((end) => vectors.get(steerKey(change.point, end))!);
  const vector = Array.from(towards, (number, index) => change.factor * (number - (away?.[index] ?? 0)));
  return { kind: 'add', point: change.point, ...(change.positions ? { positions: change.positions } : {}), vector };
}

function swapIntervention({ point, positions, fromPositions, text }: SwapChange, { traces }: Sources): Intervention {
  const where = positions ? { positions, from_positions: fromPositions } : {};
  return { kind: 'swap', point, from: traces.get(text), ...where };
}

/** All changes in order; cuts of one head are joined at the first of them. */
export function toInterventions(changes: Change[], sources: Sources): Intervention[] {
  const list: Intervention[] = [];
  const cuts = new Map<string, [number, number][]>();
  const cut = ({ layer, head, query, key }: CutChange) => {
    const name = `${layer} ${head}`;
    if (!cuts.has(name)) {
      cuts.set(name, []);
      list.push({ kind: 'cut', layer, head, edges: cuts.get(name)!, renormalise: sources.renormalise === 'renormalise' });
    }
    cuts.get(name)!.push([query, key]);
  };
  for (const change of changes) {
    if (change.kind === 'point') list.push(pointIntervention(change, sources));
    if (change.kind === 'cut') cut(change);
    if (change.kind === 'swap') list.push(swapIntervention(change, sources));
    if (change.kind === 'freeze') list.push(...freezeInterventions(change, sources));
    if (change.kind === 'steer') list.push(steerIntervention(change, sources));
  }
  return list;
}
