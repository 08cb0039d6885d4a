import { describe, expect, it } from 'vitest';
import { attendedUnits, countWords, runsOf, splitSpace, unitsOf } from './far_back';

describe('runsOf', () => {
  const runs = runsOf(400, 390, [20]);

  it('keeps both the query and a key far back in view, and folds what is between', () => {
    const shown = (index: number) => runs.some(({ from, to, folded }) => !folded && index >= from && index < to);
    expect(shown(390)).toBe(true);
    expect(shown(20)).toBe(true);
    expect(shown(200)).toBe(false);
    expect(runs.filter(({ folded }) => !folded).reduce((sum, { from, to }) => sum + to - from, 0)).toBeLessThan(60);
  });

  it('is the whole text, once and in order', () => {
    expect(runs[0].from).toBe(0);
    expect(runs.at(-1)!.to).toBe(400);
    for (let index = 1; index < runs.length; index++) expect(runs[index].from).toBe(runs[index - 1].to);
  });

  it('opens the fold that holds a unit, and no other', () => {
    const opened = runsOf(400, 390, [20], [200]);
    expect(opened.some(({ from, to, folded }) => !folded && from <= 27 && to >= 391)).toBe(true);
    expect(opened[0]).toEqual(runs[0]);
  });

  it('folds no short gap', () => {
    expect(runsOf(40, 39, [12])).toEqual([{ from: 0, to: 40, folded: false }]);
    expect(runsOf(400, 399, [378])).toEqual([{ from: 0, to: 372, folded: true }, { from: 372, to: 400, folded: false }]);
  });
});

it('lists the most attended units, without the query and faint ones', () => {
  expect(attendedUnits([0.1, 0.5, 0.02, 0.38], 3)).toEqual([1, 0]);
  expect(attendedUnits(null, 3)).toEqual([]);
});

it('counts words, not signs', () => {
  const words = [{ text: 'The', begin: 0, end: 1 }, { text: 'submarine', begin: 1, end: 3 }, { text: ',', begin: 3, end: 4 }, { text: 'it', begin: 4, end: 5 }];
  expect(countWords(words, 0, 5)).toBe(3);
  expect(countWords(words, 1, 4)).toBe(1);
});

it('writes a word with its tokens, and its space outside', () => {
  const tokens = [' sub', 'marine', ','].map((text, id) => ({ id, text }));
  expect(unitsOf(tokens, [{ text: 'submarine', begin: 0, end: 2 }, { text: ',', begin: 2, end: 3 }]).map(({ text }) => text)).toEqual([' submarine', ',']);
  expect(splitSpace(' submarine')).toEqual([' ', 'submarine']);
  expect(splitSpace('\n')).toEqual(['', '\n']);
});
