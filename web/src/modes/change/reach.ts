// The changes that a text is long enough for.

import type { Change } from './changes';

/** The last position that a change names; −1 where it names none. */
export function lastPositionOf(change: Change): number {
  switch (change.kind) {
    case 'cut':
      return change.query;
    case 'token':
      return change.position;
    case 'freeze':
      return -1;
    default:
      return Math.max(-1, ...(change.positions.match(/\d+/g) ?? []).map(Number));
  }
}

/** Whether a change names a position beyond the text; it stays in the list, marked, and is not sent. */
export const liesBeyond = (change: Change, tokens: number): boolean => lastPositionOf(change) >= tokens;

export const withinText = (changes: Change[], tokens: number): Change[] => changes.filter((change) => !liesBeyond(change, tokens));
