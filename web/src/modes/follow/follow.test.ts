import { describe, expect, it } from 'vitest';
import type { Candidate, Walk, WalkAnswer } from '../../lib/types';
import { draw } from './draw';
import { concatenated, dotProduct, share, shareInRow, sharesOf } from './elements';
import { walkFits } from './fits';
import { dialsOf, partnerOf, turnOf } from './rotation';
import { rowsToShow } from './rows';
import { scoreDivisor } from './scores';
import { strongestWords } from './strongest';

function answers(shares: number[], seen = shares.length): WalkAnswer[] {
  return shares.map((share, position) => ({
    position, token: `w${position}`, masked: position >= seen, key: [1, 2], value: [3, 4],
    product: 0, scaled: 0, score: 0, share, value_length: 5, contribution_length: 5 * share,
  }));
}

describe('the listed keys', () => {
  it('are the strongest, in the order of the text, and the rest is counted', () => {
    const shares = Array.from({ length: 30 }, (_, index) => ((7 * index) % 30) / 435);
    const { rows, hidden, hiddenShare } = rowsToShow(answers(shares), false);
    expect(rows.map(({ position }) => position)).toEqual([...rows.map(({ position }) => position)].sort((a, b) => a - b));
    expect(rows.length + hidden).toBe(30);
    const listed = rows.reduce((sum, { share }) => sum + share, 0);
    expect(listed + hiddenShare).toBeCloseTo(1, 12);
    const weakest = Math.min(...rows.map(({ share }) => share));
    expect(shares.filter((share) => share > weakest).length).toBe(rows.length - 1);
  });

  it('show that later words are masked', () => {
    const { rows, hidden } = rowsToShow(answers([0.5, 0.5, 0, 0, 0], 2), false);
    expect(rows.map(({ masked }) => masked)).toEqual([false, false, true, true]);
    expect(hidden).toBe(1);
    expect(rowsToShow(answers([0.5, 0.5, 0], 2), true).rows.length).toBe(3);
  });
});

describe('the keys of a window', () => {
  const all = answers(Array.from({ length: 12 }, (_, position) => (position >= 5 && position < 9 ? 0.25 : 0))).map((answer) => ({ ...answer, masked: answer.position < 5 || answer.position > 8 }));

  it('are listed between the nearest masked ones on both sides', () => {
    const { rows, hidden, hiddenShare } = rowsToShow(all, false);
    expect(rows.map(({ position }) => position)).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
    expect([hidden, hiddenShare]).toEqual([4, 0]);
    expect(rowsToShow(all, true).rows.length).toBe(12);
  });
});

describe('the divisor of the scores', () => {
  it('is √D, or what the server divided by', () => {
    const scaled = (by: number) => [4, -9, 0].map((product) => ({ product, scaled: product / by }) as WalkAnswer);
    expect(scoreDivisor({ answers: scaled(8), head_size: 64 })).toBe('÷ √64');
    expect(scoreDivisor({ answers: scaled(16), head_size: 64 })).toBe('÷ 16.0');
    expect(scoreDivisor({ answers: [{ product: 0, scaled: 0 } as WalkAnswer], head_size: 64 })).toBe('÷ √64');
  });
});

describe('a rotation', () => {
  /** Pairs of halves, at a position. */
  function turned(vector: number[], position: number, base: number, channels: number): number[] {
    const half = channels / 2;
    return vector.map((number, index) => {
      if (index >= channels) return number;
      const angle = position * base ** (-(index % half) / half);
      return index < half ? number * Math.cos(angle) - vector[index + half] * Math.sin(angle) : number * Math.cos(angle) + vector[index - half] * Math.sin(angle);
    });
  }
  const vector = [1, -2, 0.5, 3, 4, 5];

  it('turns each pair by its angle, and leaves the other numbers', () => {
    const dials = dialsOf(vector, turned(vector, 2, 100, 4), 4, 2, 8);
    expect(dials.map(({ first, second }) => [first, second])).toEqual([[0, 2], [1, 3]]);
    // Sums of a few products of numbers below 5: 1e-12 is some thousand roundings of f64.
    expect(turnOf(dials[0])).toBeCloseTo(2, 12);
    expect(turnOf(dials[1])).toBeCloseTo(0.2, 12);
    for (const { before, after } of dials) expect(Math.hypot(...after)).toBeCloseTo(Math.hypot(...before), 12);
  });

  it('pairs neighbours where the server’s term says so', () => {
    expect(partnerOf([{ label: 'q number 0' }, { label: 'q number 1' }])).toBe(1);
    expect(partnerOf([{ label: 'q number 4' }, { label: 'q number 0' }])).toBe(4);
    expect(partnerOf([{ label: 'q number 0' }])).toBeNull();
    expect(dialsOf(vector, vector, 6, 1, 2).map(({ first, second }) => [first, second])).toEqual([[0, 1], [2, 3]]);
  });
});

describe('a product’s derivation', () => {
  it('adds up to the product', () => {
    const [answer] = answers([1]);
    answer.product = 0.5 * 1 - 2 * 2;
    const { terms, value } = dotProduct([0.5, -2], answer);
    expect(terms.reduce((sum, term) => sum + term.value, 0)).toBe(value);
    expect(terms[0].label).toBe('dimension 1');
  });

  it('of a weight lists every unmasked key, its own first, and the weights sum to one', () => {
    const all = answers([0.2, 0.5, 0.3, 0], 3);
    const { terms, value } = share(all, all[2]);
    expect(terms.map(({ label }) => label)).toEqual(['w2', 'w1', 'w0']);
    expect(terms.reduce((sum, term) => sum + term.value, 0)).toBeCloseTo(1, 12);
    expect(value).toBe(0.3);
  });

  it('of a weight in a partly known row leaves the rest to others', () => {
    const { terms, rest, count } = shareInRow(['b', 'c'], [1, 2], [0.25, 0.5], 1, 3);
    expect([terms.map(({ label }) => label), count]).toEqual([['c', 'b'], 3]);
    expect(rest).toBeCloseTo(0.25, 12);
    expect(shareInRow(['b', 'c'], [1, 2], [0.25, 0.75], 0, 2).rest).toBe(0);
  });

  it('of several weights is their sum', () => {
    const { value, terms } = sharesOf('all', answers([0.2, 0.5, 0.3]));
    expect(value).toBeCloseTo(1, 12);
    expect(terms.map(({ label }) => label)).toEqual(['w1', 'w2', 'w0']);
  });

  it('finds the head of an index of the concatenation', () => {
    expect(concatenated(2, 32, 7)(70)).toEqual({ point: 'blocks.2.attn.hook_z', layer: 2, head: 2, position: 7, index: 6 });
  });
});

describe('drawing', () => {
  const candidates = [0.5, 0.3, 0, 0.2].map((drawn, id) => ({ id, drawn }) as Candidate);

  it('draws each candidate with its probability, and never a removed one', () => {
    const drawn = Array.from({ length: 1000 }, (_, index) => draw(candidates, (index + 0.5) / 1000).id);
    expect([0, 1, 2, 3].map((id) => drawn.filter((one) => one === id).length)).toEqual([500, 300, 0, 200]);
  });

  it('handles the ends of the interval', () => {
    expect(draw(candidates, 0).id).toBe(0);
    expect(draw(candidates, 1).id).toBe(3);
  });
});

describe('a walk', () => {
  const tokens = ['w0', 'w1', 'w2'].map((text, id) => ({ id, text }));
  const place = { layer: 1, head: 2, position: 2 };
  const walk = { ...place, answers: answers([0.2, 0.5, 0.3]) } as Walk;

  it('is shown for the words, the head and the word that it is of', () => {
    expect(walkFits(walk, tokens, place)).toBe(true);
    for (const other of [{ ...place, layer: 0 }, { ...place, head: 0 }, { ...place, position: 1 }]) expect(walkFits(walk, tokens, other)).toBe(false);
    expect(walkFits(undefined, tokens, place)).toBe(false);
  });

  it('is not shown for another text of as many words', () => {
    expect(walkFits(walk, [tokens[0], { id: 9, text: 'hare' }, tokens[2]], place)).toBe(false);
    expect(walkFits(walk, tokens.slice(1), place)).toBe(false);
  });
});

describe('the rows by words', () => {
  const weights = [0.3, 0.1, 0.15, 0.05, ...Array.from({ length: 20 }, () => 0.02)];
  const answers = weights.map((share, position) => ({ position, share, token: `t${position}`, masked: false }) as WalkAnswer);
  const words = [{ text: 'a', begin: 0, end: 1 }, { text: 'long', begin: 1, end: 4 }, ...Array.from({ length: 20 }, (_, index) => ({ text: `w${index}`, begin: 4 + index, end: 5 + index }))];

  it('are those of whole words, the strongest first, in the order of the text', () => {
    const { rows, hidden, hiddenShare } = rowsToShow(answers, false, words);
    expect(rows.slice(0, 4).map(({ position }) => position)).toEqual([0, 1, 2, 3]);
    expect(rows.length).toBe(16);
    expect(hidden).toBe(8);
    expect(hiddenShare).toBeCloseTo(0.16, 12);
  });

  it('hold the strongest word even where it is long', () => {
    const one = [{ text: 'all', begin: 0, end: 24 }];
    expect(rowsToShow(answers, false, one).rows.length).toBe(24);
  });
});

it('the strongest words are those up to the query, with their summed weights', () => {
  const words = [{ text: 'a', begin: 0, end: 1 }, { text: 'bc', begin: 1, end: 3 }, { text: 'd', begin: 3, end: 4 }];
  expect(strongestWords(words, [0.2, 0.8, 0], 2).map(({ text, share }) => [text, share])).toEqual([['bc', 0.8], ['a', 0.2]]);
});
