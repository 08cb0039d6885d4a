// The keys that are listed: the strongest, in the order of the text.

import type { WalkAnswer } from '../../lib/types';

const strongest = 10;
const masked = 2;

export interface ShownRows {
  rows: WalkAnswer[];
  hidden: number;
  /** The total weight of the keys that are not listed. */
  hiddenShare: number;
}

export function rowsToShow(answers: WalkAnswer[], everything: boolean): ShownRows {
  if (everything) return { rows: answers, hidden: 0, hiddenShare: 0 };
  const seen = answers.filter((answer) => !answer.masked);
  const kept = new Set([...seen].sort((a, b) => b.share - a.share).slice(0, strongest));
  const later = answers.filter((answer) => answer.masked).slice(0, masked);
  const hidden = seen.filter((answer) => !kept.has(answer));
  return {
    rows: [...seen.filter((answer) => kept.has(answer)), ...later],
    hidden: answers.length - kept.size - later.length,
    hiddenShare: hidden.reduce((sum, { share }) => sum + share, 0),
  };
}
