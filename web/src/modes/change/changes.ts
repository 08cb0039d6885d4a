// The list of changes: how each is written in the link, said in words and asked of the server.

import type { Intervention, Token } from '../../lib/types';
import { tokenText } from '../../lib/numbers';

export type Method = 'zero' | 'mean' | 'scale';

/** A head, neuron, block or half of one (L2H3, L2N17, L2, L2.attn, L2.mlp) set to zero, to its mean, or scaled. */
export interface PlaceChange {
  kind: 'place';
  place: string;
  method: Method;
  factor: number; // for scale
}

/** One head's look from a query to a key. */
export interface CutChange {
  kind: 'cut';
  layer: number;
  head: number;
  query: number;
  key: number;
}

export interface TokenChange {
  kind: 'token';
  position: number;
  id: number;
}

/** A point's values at some positions, from another prompt at as many positions. */
export interface SwapChange {
  kind: 'swap';
  point: string;
  positions: string;
  text: string;
  fromPositions: string;
}

export type Change = PlaceChange | CutChange | TokenChange | SwapChange;

export function formatChange(change: Change): string {
  switch (change.kind) {
    case 'place':
      return change.method === 'zero' ? change.place : change.method === 'mean' ? `${change.place}~` : `${change.place}*${change.factor}`;
    case 'cut':
      return `L${change.layer}H${change.head}:${change.query}>${change.key}`;
    case 'token':
      return `@${change.position}=${change.id}`;
    case 'swap':
      return `${change.point}:${change.positions}<${change.fromPositions}:${encodeURIComponent(change.text)}`;
  }
}

export const formatChanges = (changes: Change[]): string => changes.map(formatChange).join(';');

const place = String.raw`L\d+(?:H\d+|N\d+|\.attn|\.mlp)?`;
const positions = String.raw`\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*`;
const readers: [RegExp, (found: string[]) => Change][] = [
  [new RegExp(`^(${place})$`), ([name]) => ({ kind: 'place', place: name, method: 'zero', factor: 0 })],
  [new RegExp(`^(${place})~$`), ([name]) => ({ kind: 'place', place: name, method: 'mean', factor: 1 })],
  [new RegExp(`^(${place})\\*(-?\\d+(?:\\.\\d+)?)$`), ([name, factor]) => ({ kind: 'place', place: name, method: 'scale', factor: Number(factor) })],
  [/^L(\d+)H(\d+):(\d+)>(\d+)$/, (found) => {
    const [layer, head, query, key] = found.map(Number);
    return { kind: 'cut', layer, head, query, key };
  }],
  [/^@(\d+)=(\d+)$/, ([position, id]) => ({ kind: 'token', position: Number(position), id: Number(id) })],
  [new RegExp(`^([\\w.]+):(${positions})<(${positions}):(.+)$`), ([point, to, from, text]) => ({
    kind: 'swap', point, positions: to, fromPositions: from, text: decodeURIComponent(text),
  })],
];

function parseChange(text: string): Change | null {
  for (const [pattern, read] of readers) {
    const found = pattern.exec(text);
    if (!found) continue;
    try {
      return read(found.slice(1));
    } catch {
      return null; // a broken percent sign
    }
  }
  return null;
}

/** Reads what formatChanges wrote; what is unreadable is left out. */
export function parseChanges(text: string): Change[] {
  return text.split(';').flatMap((part) => parseChange(part) ?? []);
}

/** What a change is about: a later one about the same takes the place of an earlier one. */
function subject(change: Change): string {
  switch (change.kind) {
    case 'place':
      return change.place;
    case 'cut':
      return formatChange(change);
    case 'token':
      return `@${change.position}`;
    case 'swap':
      return `${change.point}:${change.positions}`;
  }
}

export function withChange(changes: Change[], change: Change): Change[] {
  const at = changes.findIndex((other) => subject(other) === subject(change));
  return at < 0 ? [...changes, change] : changes.map((other, index) => (index === at ? change : other));
}

export function withoutChange(changes: Change[], change: Change): Change[] {
  return changes.filter((other) => subject(other) !== subject(change));
}

export function findPlace(changes: Change[], name: string): PlaceChange | undefined {
  return changes.find((change): change is PlaceChange => change.kind === 'place' && change.place === name);
}

export const isCut = (changes: Change[], layer: number, head: number, query: number, key: number): boolean =>
  changes.some((change) => change.kind === 'cut' && change.layer === layer && change.head === head && change.query === query && change.key === key);

/** The prompt's ids with the edited tokens in their places. */
export function editedTokens(ids: number[], changes: Change[]): number[] {
  const edited = [...ids];
  for (const change of changes) if (change.kind === 'token' && change.position < ids.length) edited[change.position] = change.id;
  return edited;
}

/** Texts whose traces swaps need. */
export function textsOfSwaps(changes: Change[]): string[] {
  return [...new Set(changes.flatMap((change) => (change.kind === 'swap' ? [change.text] : [])))];
}

/** What the server is asked for. Cuts of one head go together; `traces` holds the traces of swaps' texts. */
export function toInterventions(changes: Change[], traces: Map<string, string>, renormalise: 'keep' | 'renormalise'): Intervention[] {
  const list: Intervention[] = [];
  const cuts = new Map<string, Intervention>();
  for (const change of changes) {
    if (change.kind === 'place') {
      if (change.method === 'scale') list.push({ kind: 'scale', place: change.place, factor: change.factor });
      else list.push({ kind: change.method === 'zero' ? 'ablate' : 'mean', place: change.place });
    } else if (change.kind === 'cut') {
      const key = `${change.layer} ${change.head}`;
      let cut = cuts.get(key);
      if (!cut) {
        cut = { kind: 'cut', layer: change.layer, head: change.head, edges: [], renormalise: renormalise === 'renormalise' };
        cuts.set(key, cut);
        list.push(cut);
      }
      cut.edges!.push([change.query, change.key]);
    } else if (change.kind === 'swap') {
      list.push({ kind: 'swap', place: change.point, positions: change.positions, from: traces.get(change.text), from_positions: change.fromPositions });
    }
  }
  return list;
}

/** L2H3 → head 3 of block 2. */
export function placeName(name: string): string {
  const found = /^L(\d+)(?:H(\d+)|N(\d+)|\.(attn|mlp))?$/.exec(name);
  if (!found) return name;
  const [, layer, head, neuron, half] = found;
  if (head !== undefined) return `head ${head} of block ${layer}`;
  if (neuron !== undefined) return `neuron ${neuron} of block ${layer}`;
  if (half === 'attn') return `attention of block ${layer}`;
  return half === 'mlp' ? `feed-forward of block ${layer}` : `block ${layer}`;
}

/** A change in words. */
export function describeChange(change: Change, tokens: Token[], vocabulary: string[]): string {
  const word = (position: number) => `“${tokenText(tokens[position]?.text ?? '?')}” (${position})`;
  switch (change.kind) {
    case 'place':
      if (change.method === 'zero') return `${placeName(change.place)}: off`;
      return change.method === 'mean' ? `${placeName(change.place)}: its mean` : `${placeName(change.place)}: × ${change.factor}`;
    case 'cut':
      return `head ${change.head} of block ${change.layer}: ${word(change.query)} no longer sees ${word(change.key)}`;
    case 'token':
      return `${word(change.position)} becomes “${tokenText(vocabulary[change.id] ?? `#${change.id}`)}”`;
    case 'swap':
      return `${change.point} at ${change.positions}: from “${change.text}” at ${change.fromPositions}`;
  }
}
