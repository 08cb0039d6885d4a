// The list of changes; a later change of the same subject replaces an earlier one.

import type { Token } from '../../lib/types';
import { isPart } from './points';

export type Method = 'zero' | 'mean' | 'scale';

/** A part (L2H3, L2N17, L2, L2.attn, L2.mlp), or a point by its name, set to zero, to its mean, or scaled. */
export interface PointChange {
  kind: 'point';
  point: string;
  method: Method;
  factor: number; // for scale
  /** Such as 5, 3-7 or 4-; empty: all positions. */
  positions: string;
}

/** One edge of a head's attention, from a query to a key. */
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

/** Activations replaced by those of another text. */
export interface SwapChange {
  kind: 'swap';
  point: string;
  /** Both empty: all positions of a text with the same number of tokens. */
  positions: string;
  fromPositions: string;
  text: string;
}

/** Attention patterns held as in this text without changes, or as in another with the same number of tokens. */
export interface FreezeChange {
  kind: 'freeze';
  /** L2H3, L2, or empty: every head. */
  point: string;
  /** Empty: this text. */
  text: string;
}

/** A text and its tokens. */
export interface ReadText {
  text: string;
  tokens: Token[];
}

/** A word of a text, whose vector is a direction. */
export interface TextPosition {
  text: string;
  position: number;
}

/** A direction added: one word's vector minus another's. */
export interface SteerChange {
  kind: 'steer';
  point: string;
  factor: number;
  towards: TextPosition;
  away: TextPosition | null;
  positions: string;
}

export type Change = PointChange | CutChange | TokenChange | SwapChange | FreezeChange | SteerChange;

/** The subject of a change: a later change with the same subject replaces an earlier one. */
function subject(change: Change): string {
  switch (change.kind) {
    case 'point':
      return isPart(change.point) ? change.point : `${change.point}@${change.positions}`;
    case 'cut':
      return `L${change.layer}H${change.head}:${change.query}>${change.key}`;
    case 'token':
      return `@${change.position}`;
    case 'swap':
      return `${change.point}:${change.positions}`;
    case 'freeze':
      return `${change.point}!`;
    case 'steer':
      return JSON.stringify([change.point, change.towards, change.away]);
  }
}

export function withChange(changes: Change[], change: Change): Change[] {
  const at = changes.findIndex((other) => subject(other) === subject(change));
  return at < 0 ? [...changes, change] : changes.map((other, index) => (index === at ? change : other));
}

export function withoutChange(changes: Change[], change: Change): Change[] {
  return changes.filter((other) => subject(other) !== subject(change));
}

export function findPoint(changes: Change[], name: string): PointChange | undefined {
  return changes.find((change): change is PointChange => change.kind === 'point' && change.point === name);
}

/** Switches a part off, or removes its change. */
export function toggledPoint(changes: Change[], point: string, edit: { put: (change: Change) => void; remove: (change: Change) => void }): void {
  const change = findPoint(changes, point);
  if (change) edit.remove(change);
  else edit.put({ kind: 'point', point, method: 'zero', factor: 0, positions: '' });
}

export const isCut = (changes: Change[], layer: number, head: number, query: number, key: number): boolean =>
  changes.some((change) => change.kind === 'cut' && change.layer === layer && change.head === head && change.query === query && change.key === key);
