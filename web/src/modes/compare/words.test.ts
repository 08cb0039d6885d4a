import { describe, expect, it } from 'vitest';
import { endsOfWord, holdsWord, lensRowName, placesToCompare, pointName, repeatedWord, sharedWords, shortPointName, wordAt } from './words';

const tokens = (...texts: string[]) => texts.map((text, id) => ({ id, text }));

describe('endsOfWord', () => {
  it('finds the last token of each occurrence', () => {
    expect(endsOfWord(tokens('The', ' mole', ' dug', ' a', ' m', 'o', 'le', '.'), 'mole')).toEqual([1, 6]);
  });
  it('does not find parts of words', () => expect(endsOfWord(tokens(' mole', 's', ' a'), 'mole')).toEqual([]));
  it('finds the last word and the first', () => expect(endsOfWord(tokens('Mole', ' eats', ' mole'), 'mole')).toEqual([0, 2]));
  it('finds nothing for no word', () => expect(endsOfWord(tokens('a'), ' ')).toEqual([]));
});

it('lists the words that both texts have', () => {
  expect(sharedWords(tokens('The', ' mole', ' dug'), tokens('A', ' m', 'ole', ' the'))).toEqual(['mole', 'the']);
});

it('finds the word around a token', () => {
  const some = tokens('The', ' m', 'o', 'le', ' dug', '.');
  expect(wordAt(some, 2)).toBe('mole');
  expect(wordAt(some, 0)).toBe('the');
  expect(wordAt(some, 9)).toBe('');
});

it('finds the longest repeated word', () => {
  expect(repeatedWord(tokens('The', ' mole', ' sees', ' the', ' m', 'ole', '.'))).toBe('mole');
  expect(repeatedWord(tokens('a', ' b'))).toBe('');
});

it('names points and rows', () => {
  expect(pointName('blocks.0.hook_resid_pre')).toBe('embedding + position');
  expect(pointName('blocks.2.hook_resid_mid')).toBe('block 2, after attention');
  expect(shortPointName('blocks.1.hook_resid_mid')).toBe('1 att');
  expect(lensRowName('3_pre')).toBe('after block 2');
  expect(lensRowName('final_post')).toBe('output');
});

describe('what is compared', () => {
  it('is the first place of every text before the second of any', () => {
    expect(placesToCompare([[1, 5, 9], [2, 7], [4]], 4)).toEqual([{ text: 0, position: 1 }, { text: 0, position: 5 }, { text: 1, position: 2 }, { text: 2, position: 4 }]);
    expect(placesToCompare([[], [3]], 4)).toEqual([{ text: 1, position: 3 }]);
  });

  it('is a whole word, whatever its case', () => {
    expect([holdsWord('A Mole, here', 'mole'), holdsWord('molecules', 'mole'), holdsWord('anything', '')]).toEqual([true, false, false]);
  });
});
