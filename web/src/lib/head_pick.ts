// Which head is shown for a word: one that the link, the example or the user names, or one picked by its effect.

import { byEffect } from './link';
import type { Example } from './types';

/** What is shown of one text: the position counted from 0, and how the head was picked. */
export interface Shown {
  text: string;
  position: number;
  layer: number;
  head: number;
  pick: string;
}

type Head = Pick<Shown, 'layer' | 'head'>;

const isSame = (one: Head | null, other: Head): boolean => one?.layer === other.layer && one?.head === other.head;

/** The head that an example names for its own word; null for any other word. `last` is the text's last position. */
export function namedHead(examples: Example[], { text, position }: Pick<Shown, 'text' | 'position'>, last: number): Head | null {
  const found = examples.find((example) => example.text === text && example.layer !== undefined && (example.position === undefined || example.position < 0 ? last : example.position) === position);
  return found ? { layer: found.layer!, head: found.head ?? 0 } : null;
}

/** How the head is picked after what was shown has changed by hand. */
export function pickAfter(before: Shown | null, now: Shown, examples: Example[], last: number): string {
  if (!before || before.text !== now.text) return now.pick;
  const otherHead = !isSame(before, now);
  const otherWord = before.position !== now.position;
  if (now.pick === byEffect) return before.pick === byEffect && otherHead && !otherWord ? '' : byEffect;
  // An example's word was left for another word, for which no head is named.
  return otherWord && !otherHead && isSame(namedHead(examples, before, last), now) ? byEffect : now.pick;
}
