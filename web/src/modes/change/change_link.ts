// Changes as text in a link.

import type { Change, FreezeChange, PointChange, SteerChange, TextPosition } from './changes';

const at = (positions: string) => (positions ? `@${positions}` : '');

function formatPoint({ point, method, factor, positions }: PointChange): string {
  const how = method === 'zero' ? '' : method === 'mean' ? '~' : `*${factor}`;
  return `${point}${at(positions)}${how}`;
}

function formatSteer({ point, positions, factor, towards, away }: SteerChange): string {
  const texts = [towards, away].flatMap((end) => (end ? [end.position, encodeURIComponent(end.text)] : []));
  return `${point}${at(positions)}+${[factor, ...texts].join(':')}`;
}

export function formatChange(change: Change): string {
  switch (change.kind) {
    case 'point':
      return formatPoint(change);
    case 'cut':
      return `L${change.layer}H${change.head}:${change.query}>${change.key}`;
    case 'token':
      return `@${change.position}=${change.id}`;
    case 'swap':
      return `${change.point}:${change.positions}<${change.fromPositions}:${encodeURIComponent(change.text)}`;
    case 'freeze':
      return `${change.point || '*'}!${change.text ? `:${encodeURIComponent(change.text)}` : ''}`;
    case 'steer':
      return formatSteer(change);
  }
}

export const formatChanges = (changes: Change[]): string => changes.map(formatChange).join(';');

const name = String.raw`[A-Za-z*][\w.*]*`; // of a part or a point; * matches any
const positions = String.raw`(?:\d+(?:-\d*)?(?:,\d+(?:-\d+)?)*)?`;
const where = String.raw`(?:@(\d+(?:-\d*)?))?`;
const number = String.raw`-?\d+(?:\.\d+)?`;

function readFreeze(name: string, text?: string): FreezeChange {
  return { kind: 'freeze', point: name === '*' ? '' : name, text: decodeURIComponent(text ?? '') };
}

function readSteer(point: string, at: string | undefined, factor: string, ...texts: (string | undefined)[]): SteerChange {
  const textPosition = (position: string | undefined, text: string | undefined): TextPosition | null =>
    position === undefined || text === undefined ? null : { text: decodeURIComponent(text), position: Number(position) };
  return { kind: 'steer', point, positions: at ?? '', factor: Number(factor), towards: textPosition(texts[0], texts[1])!, away: textPosition(texts[2], texts[3]) };
}

const readers: [RegExp, (found: string[]) => Change][] = [
  [new RegExp(`^(${name})${where}\\*(${number})$`), ([name, at, factor]) => ({ kind: 'point', point: name, method: 'scale', factor: Number(factor), positions: at ?? '' })],
  [new RegExp(`^(${name})${where}$`), ([name, at]) => ({ kind: 'point', point: name, method: 'zero', factor: 0, positions: at ?? '' })],
  [new RegExp(`^(${name})${where}~$`), ([name, at]) => ({ kind: 'point', point: name, method: 'mean', factor: 1, positions: at ?? '' })],
  [/^L(\d+)H(\d+):(\d+)>(\d+)$/, (found) => {
    const [layer, head, query, key] = found.map(Number);
    return { kind: 'cut', layer, head, query, key };
  }],
  [/^@(\d+)=(\d+)$/, ([position, id]) => ({ kind: 'token', position: Number(position), id: Number(id) })],
  [new RegExp(`^(${name}):(${positions})<(${positions}):(.+)$`), ([point, to, from, text]) => ({
    kind: 'swap', point, positions: to, fromPositions: from, text: decodeURIComponent(text),
  })],
  [/^(\*|L\d+(?:H\d+)?)!(?::([^:]+))?$/, ([name, text]) => readFreeze(name, text)],
  [new RegExp(`^(${name})${where}\\+(${number}):(\\d+):([^:]+)(?::(\\d+):([^:]+))?$`), ([point, at, factor, ...texts]) => readSteer(point, at, factor, ...texts)],
];

function parseChange(text: string): Change | null {
  for (const [pattern, read] of readers) {
    const found = pattern.exec(text);
    if (!found) continue;
    try {
      return read(found.slice(1));
    } catch {
      return null; // an invalid percent escape
    }
  }
  return null;
}

/** Parses what formatChanges wrote; invalid parts are left out. */
export function parseChanges(text: string): Change[] {
  return text.split(';').flatMap((part) => parseChange(part) ?? []);
}
