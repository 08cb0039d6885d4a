// What a token attends to most, by tokens or by words.

import type { WalkAnswer, Word } from '../../lib/types';

export interface Attended {
  begin: number;
  end: number;
  text: string;
  share: number;
}

const most = 3;

const largestFirst = (all: Attended[]): Attended[] => all.sort((a, b) => b.share - a.share).slice(0, most);

export function strongestTokens(answers: WalkAnswer[]): Attended[] {
  return largestFirst(answers.filter(({ masked }) => !masked).map(({ position, token, share }) => ({ begin: position, end: position + 1, text: token, share })));
}

/** Words up to the one of the query. */
export function strongestWords(words: Word[], weights: ArrayLike<number>, query: number): Attended[] {
  return largestFirst(words.flatMap(({ text, begin, end }, index) => (begin <= query ? [{ begin, end, text, share: weights[index] }] : [])));
}
