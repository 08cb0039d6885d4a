// A long text as running text: what is far from the query and hardly attended to is folded.

import type { Token, Word } from '../../lib/types';
import { bytesText, splitsCharacters } from '../../lib/unread';

/** Longer texts, in tokens, run as text instead of as a row of tokens with arcs. */
export const mostInRow = 60;

/** A token or a word: its tokens are [begin, end). */
export interface Unit {
  text: string;
  begin: number;
  end: number;
}

/** Units [from, to): shown, or folded into one line. */
export interface Run {
  from: number;
  to: number;
  folded: boolean;
}

/** The attended units that stay in view, with at least this weight. */
const [mostAttended, leastWeight] = [5, 0.03];
/** Units that stay beside an attended one, and before and after the query. */
const [beside, before, after] = [6, 14, 4];
/** A shorter gap is no shorter when it is folded. */
const leastFold = 10;

export function unitsOf(tokens: Token[], words: Word[] | null): Unit[] {
  if (!words) return tokens.map(({ text, bytes }, position) => ({ text: bytes ? bytesText(bytes) : text, begin: position, end: position + 1 }));
  return words.map(({ text, begin, end }) => {
    const pieces = tokens.slice(begin, end);
    return { text: splitsCharacters(pieces) ? text : pieces.map((piece) => piece.text).join(''), begin, end };
  });
}

/** The most attended units besides the query, the largest weight first. */
export function attendedUnits(weights: ArrayLike<number> | null, query: number): number[] {
  if (!weights) return [];
  return Array.from(weights, (weight, index) => ({ weight, index }))
    .filter(({ weight, index }) => weight >= leastWeight && index !== query)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, mostAttended)
    .map(({ index }) => index);
}

/** The whole text as runs; `opened` lists units whose folds were opened. */
export function runsOf(count: number, query: number, attended: number[], opened: number[] = []): Run[] {
  const kept = new Uint8Array(count);
  const keep = (from: number, to: number) => kept.fill(1, Math.max(0, from), Math.max(0, Math.min(count, to)));
  keep(query - before, query + after + 1);
  for (const index of attended) keep(index - beside, index + beside + 1);
  const runs: Run[] = [];
  for (let from = 0; from < count; ) {
    let to = from;
    while (to < count && kept[to] === kept[from]) to++;
    const folded = kept[from] === 0 && to - from >= leastFold && !opened.some((index) => index >= from && index < to);
    const last = runs.at(-1);
    if (last && !last.folded && !folded) last.to = to;
    else runs.push({ from, to, folded });
    from = to;
  }
  return runs;
}

/** How many words begin in the tokens [begin, end); a sign alone is none. */
export function countWords(words: Word[], begin: number, end: number): number {
  return words.filter((word) => word.begin >= begin && word.begin < end && /[\p{L}\p{N}]/u.test(word.text)).length;
}

/** The spaces and line ends before a unit, and what is written of it. */
export function splitSpace(text: string): [string, string] {
  const written = text.trimStart();
  return written === '' ? ['', text] : [text.slice(0, text.length - written.length), written];
}
