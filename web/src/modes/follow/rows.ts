// The keys that are listed: the strongest, in the order of the text, between some that are masked.

import type { WalkAnswer, Word } from '../../lib/types';

const strongest = 10;
const mostByWords = 16; // tokens
const masked = 2;

export interface ShownRows {
  rows: WalkAnswer[];
  hidden: number;
  /** The total weight of the keys that are not listed. */
  hiddenShare: number;
}

/** By words: whole words, the strongest first, as long as they fit into a few rows. */
function strongestByWords(seen: WalkAnswer[], words: Word[]): WalkAnswer[] {
  const ofWords = words.map(({ begin, end }) => seen.slice(begin, end)).filter((ones) => ones.length > 0);
  const share = (ones: WalkAnswer[]) => ones.reduce((sum, one) => sum + one.share, 0);
  const kept: WalkAnswer[] = [];
  for (const ones of ofWords.sort((a, b) => share(b) - share(a))) {
    if (kept.length > 0 && kept.length + ones.length > mostByWords) break;
    kept.push(...ones);
  }
  return kept;
}

export function rowsToShow(answers: WalkAnswer[], everything: boolean, words: Word[] | null = null): ShownRows {
  if (everything) return { rows: answers, hidden: 0, hiddenShare: 0 };
  const seen = answers.filter((answer) => !answer.masked);
  const kept = new Set(words ? strongestByWords(seen, words) : [...seen].sort((a, b) => b.share - a.share).slice(0, strongest));
  const isLater = ({ position }: WalkAnswer) => position > (seen.at(-1)?.position ?? -1);
  const later = answers.filter((answer) => answer.masked && isLater(answer)).slice(0, masked);
  const before = answers.filter((answer) => answer.masked && !isLater(answer)).slice(-masked);
  const hidden = seen.filter((answer) => !kept.has(answer));
  return {
    rows: [...before, ...seen.filter((answer) => kept.has(answer)), ...later],
    hidden: answers.length - kept.size - later.length - before.length,
    hiddenShare: hidden.reduce((sum, { share }) => sum + share, 0),
  };
}
