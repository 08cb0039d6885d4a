// What another word changes, told from the numbers of GET /influence.

import type { PairInfluence, PairText } from '../../lib/pair_types';
import type { Word } from '../../lib/types';
import { isSpecial } from './words';

/** The last word with a letter: a later word, so that others stand before it. */
export function laterWord(words: Word[]): number {
  const worded = words.map(({ text }, index) => ({ text, index })).filter(({ text }) => !isSpecial(text) && /\p{L}|\p{N}/u.test(text));
  return worded.at(-1)?.index ?? words.length - 1;
}

/** 0 is not a bit. */
export const moved = (change: number): boolean => change !== 0;

/** How many vectors before the replaced token move. */
export function earlierMoved(changes: number[], position: number): { moved: number; of: number } {
  const earlier = changes.slice(0, position);
  return { moved: earlier.filter(moved).length, of: earlier.length };
}

const count = ({ moved: some, of }: { moved: number; of: number }): string => (some === 0 ? `none of the ${of}` : some === of ? `all ${of}` : `${some} of the ${of}`);

/** The finding in a sentence. */
export function finding(without: PairInfluence, withMask: PairInfluence, text: PairText): string {
  const { side, position } = without;
  if (position === 0) return 'It is the first token: choose a later one.';
  const word = text.words.find(({ begin, end }) => begin <= position && position < end)?.text.trim() ?? '';
  const vectors = (changes: number[]) => count(earlierMoved(changes, position));
  const masked = earlierMoved(without.decoder, position).moved === 0;
  if (side === 'target') return `Another word in place of “${word}” moves ${vectors(without.decoder)} vectors before it in the decoder${masked ? ': its mask hides what comes later' : ''}.`;
  return `Another word in place of “${word}” moves ${vectors(without.encoder)} vectors before it in the encoder. With a causal mask it moves ${vectors(withMask.encoder)}.`;
}
