import { describe, expect, it } from 'vitest';
import type { Token, Unread } from './types';
import { holdsUnread, nearestOf, partsOf, splitCharacters } from './unread';

const unread: Unread = {
  of: 3, note: 'One word.',
  words: [{ text: 'Käse', bytes: [5, 10], tokens: [1, 4] }],
};

/** Tokens as the server names them, one for each list of bytes. */
function tokensOf(...pieces: (string | number[])[]): Token[] {
  const hex = (bytes: number[]) => bytes.map((byte) => byte.toString(16).toUpperCase()).join(' ');
  return pieces.map((piece, id) => (typeof piece === 'string' ? { id, text: piece } : { id, text: `‹${hex(piece)}›`, bytes: piece }));
}
const bytesOf = (text: string): number[] => [...new TextEncoder().encode(text)];

describe('words that were not read', () => {
  it('are marked in the text by bytes of UTF-8', () => {
    expect(partsOf('möge Käse', { ...unread, words: [{ ...unread.words[0], bytes: [6, 11] }] })).toEqual([
      { text: 'möge ', unread: false }, { text: 'Käse', unread: true },
    ]);
    expect(partsOf('eat, Käse.', unread).map(({ text }) => text)).toEqual(['eat, ', 'Käse', '.']);
  });
  it('are not marked where the ranges are of another text', () => {
    expect(partsOf('another text', unread)).toEqual([{ text: 'another text', unread: false }]);
    expect(partsOf('all', null)).toEqual([{ text: 'all', unread: false }]);
  });
  it('are found by tokens', () => {
    expect([0, 1, 3, 4].map((token) => holdsUnread(unread, token, token + 1))).toEqual([false, true, true, false]);
    expect(holdsUnread(unread, 3, 6)).toBe(true);
    expect(holdsUnread(null, 0, 9)).toBe(false);
  });
});

describe('the nearest sentence', () => {
  const sentences = ['The fox saw the hare', 'The hare bought bread and cheese', 'She counted molecules'].map((text, id) => ({ id, text }));
  it('shares most words, rare ones above all', () => {
    expect(nearestOf(sentences, 'I love cheese')?.id).toBe(1);
    expect(nearestOf(sentences, 'the fox')?.id).toBe(0);
    expect(nearestOf(sentences, 'Molecules!')?.id).toBe(2);
  });
  it('is not a long one that happens to have the little words', () => {
    const long = { id: 9, text: 'In the morning the fox and the hare and I went with all of the others, and I saw them with the painter and the poet' };
    expect(nearestOf([...sentences, long], 'I bought bread with the fox and')?.id).toBe(1);
  });
  it('is of the nearest length where no word is shared', () => {
    expect(nearestOf(sentences, 'nothing known here')?.id).toBe(2);
    expect(nearestOf([], 'nothing')).toBeNull();
  });
});

describe('characters of several tokens', () => {
  it('are braced: Chinese', () => {
    const [a, b, c] = bytesOf('水');
    expect(splitCharacters(tokensOf([a, b], [c], '好'))).toEqual([{ text: '水', begin: 0, end: 2 }]);
  });
  it('are braced: Arabic, whose letters have two bytes', () => {
    const [a, b] = bytesOf('م');
    expect(splitCharacters(tokensOf('a', [a], [b], 'ر'))).toEqual([{ text: 'م', begin: 1, end: 3 }]);
  });
  it('an emoji with joiners is one', () => {
    const family = bytesOf('👩‍👧');
    const pieces = [family.slice(0, 2), family.slice(2, 4), family.slice(4, 7), family.slice(7, 9), family.slice(9)];
    expect(splitCharacters(tokensOf('x', ...pieces))).toEqual([{ text: '👩‍👧', begin: 1, end: 6 }]);
  });
  it('a token that ends one and begins the next holds them together', () => {
    const [first, second] = [bytesOf('水'), bytesOf('火')];
    expect(splitCharacters(tokensOf(first.slice(0, 2), [first[2], second[0]], second.slice(1)))).toEqual([{ text: '水火', begin: 0, end: 3 }]);
  });
  it('a lone byte makes up none', () => {
    expect(splitCharacters(tokensOf('a', [0xe6], 'b'))).toEqual([]);
    expect(splitCharacters(tokensOf([0xe6]))).toEqual([]);
    expect(splitCharacters(tokensOf('plain', ' text'))).toEqual([]);
  });
});

it('takes another sentence as the nearest one', () => {
  const sentences = [{ text: 'I love pizza' }, { text: 'I love apples' }];
  expect(nearestOf(sentences, 'I love pizza')).toBe(sentences[1]);
  expect(nearestOf(sentences.slice(0, 1), 'I love pizza')).toBeNull();
});
