import { describe, expect, it } from 'vitest';
import { hasLongWord, lastToken, wordIndexAt } from './text_words';

const words = [
  { text: 'The', begin: 0, end: 1 },
  { text: 'submarine', begin: 1, end: 6 },
  { text: ',', begin: 6, end: 7 },
  { text: 'dug', begin: 7, end: 9 },
];

describe('words of a text', () => {
  it('holds every position in one word', () => {
    expect(Array.from({ length: 9 }, (_, position) => wordIndexAt(words, position))).toEqual([0, 1, 1, 1, 1, 1, 2, 3, 3]);
    expect(wordIndexAt([], 3)).toBe(0);
  });

  it('ends with the token that has read the whole word', () => {
    expect(words.map(lastToken)).toEqual([0, 5, 6, 8]);
    expect(words.every((word, index) => wordIndexAt(words, lastToken(word)) === index)).toBe(true);
  });

  it('differs from tokens where a word has several', () => {
    expect([hasLongWord(words), hasLongWord([words[0], words[2]]), hasLongWord([])]).toEqual([true, false, false]);
  });
});
