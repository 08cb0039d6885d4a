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
  /** Whether an example names this head for this word. */
  named: boolean;
}

type Head = Pick<Shown, 'layer' | 'head'>;

/** The head that an example names for its own word; null for any other word. `last` is the text's last position. */
export function namedHead(examples: Example[], { text, position }: Pick<Shown, 'text' | 'position'>, last: number): Head | null {
  const found = examples.find((example) => example.text === text && example.layer !== undefined && (example.position === undefined || example.position < 0 ? last : example.position) === position);
  return found ? { layer: found.layer!, head: found.head ?? 0 } : null;
}

/** How the head is picked after what was shown has changed. */
export function pickAfter(before: Shown | null, now: Shown): string {
  const continued = before !== null && now.text.startsWith(before.text);
  if (!before || !continued) return now.pick;
  const otherWord = before.text !== now.text || before.position !== now.position;
  const otherHead = before.layer !== now.layer || before.head !== now.head;
  if (now.pick === byEffect) return before.pick === byEffect && otherHead && !otherWord ? '' : byEffect;
  // An example's word was left for another word, for which no head is named.
  return before.named && otherWord && !otherHead && !now.named ? byEffect : now.pick;
}
