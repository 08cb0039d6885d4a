// Whether a result belongs to what is chosen now: the last one stays while the next is loading.

import type { Token, Walk } from '../../lib/types';
import type { WordRow } from '../../lib/unit.svelte';

export interface Place {
  layer: number;
  head: number;
  position: number;
}

export function walkFits(walk: Walk | undefined, tokens: Token[], place: Place): walk is Walk {
  if (!walk || walk.layer !== place.layer || walk.head !== place.head || walk.position !== place.position) return false;
  return walk.answers.length === tokens.length && walk.answers.every(({ token }, index) => token === tokens[index].text);
}

export function rowFits(row: WordRow, id: string, place: Place): boolean {
  return row.id === id && row.layer === place.layer && row.head === place.head && row.position === place.position;
}
