import { describe, expect, it } from 'vitest';
import { keptPairs } from '../../lib/architecture';
import type { Derivation } from '../../lib/types';
import { directEffect, effectDerivation, extremes } from './direct_effect';
import { headColour } from './head_colours';
import { lengthDerivation, lengthOf } from './heads';
import { nearest, tableOf } from './nearest';
import { toggled } from './open';
import { inputOf, largest, productsOf, weightsOf } from './projection';
import { entropy, masked, mostAhead, product, scoreDerivation, scoreRow, shareDerivation, sharpening, sharpest, softmax, windowAround, type QueriesAndKeys } from './scores';
import { valueCounts } from './value_factors';

/** The derivation of x · W[:, column] + bias, its terms in the order of their size. */
function derived(input: number[], column: number[], bias: number): Derivation {
  const terms = input.map((left, index) => ({ label: `channel ${index}`, left, right: column[index], value: left * column[index] })).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  return { name: 'q', value: bias + terms.reduce((sum, { value }) => sum + value, 0), formula: '', latex: '', operation: 'sum', terms, count: terms.length, rest: 0, bias };
}

describe('a projection put together from derivations', () => {
  const input = [0.5, -2, 3];
  const columns = [[1, 2, 3], [-4, 0.25, 0]];
  const derivations = columns.map((column, index) => derived(input, column, index + 0.5));

  it('has the row, the matrix and the bias that the numbers were computed from', () => {
    expect([...inputOf(derivations[1])]).toEqual(input);
    const { matrix, bias, channels, size } = weightsOf(derivations);
    expect([channels, size]).toEqual([3, 2]);
    expect([...matrix]).toEqual([1, -4, 2, 0.25, 3, 0]);
    expect([...bias]).toEqual([0.5, 1.5]);
  });

  it('gives each number as the sum of its products and the bias', () => {
    const weights = weightsOf(derivations);
    derivations.forEach(({ value }, column) => {
      const sum = productsOf(input, weights, column).reduce((total, one) => total + one, weights.bias[column]);
      expect(sum).toBeCloseTo(value, 6);
    });
  });

  it('lists the largest terms, and the sum of the others', () => {
    const { terms, rest } = largest([1, -5, 2, 0.5], 2);
    expect(terms).toEqual([{ index: 1, value: -5 }, { index: 2, value: 2 }]);
    expect(rest).toBe(1.5);
  });
});

describe('scores and their softmax', () => {
  const head: QueriesAndKeys = { positions: 3, size: 4, window: 0, q: Float32Array.from([1, 0, 0, 0, 0, 2, 0, 0, 1, 1, 1, 1]), k: Float32Array.from([3, 0, 0, 0, 0, 1, 0, 0, -1, 2, 0, 5]) };

  it('are dot products divided by √D', () => {
    expect(scoreRow(head, 2)).toEqual([1.5, 0.5, 3]);
    expect(scoreRow(head, 2, 1)).toEqual([3, 1, 6]);
    const { terms, value } = scoreDerivation(head, 2, 2);
    expect(value).toBe(product(head, 2, 2) / 2);
    expect(terms.reduce((sum, term) => sum + term.value, 0)).toBeCloseTo(value, 12);
  });

  it('have no weight where they are masked, and sum to one', () => {
    const shares = softmax(masked(scoreRow(head, 1), 1));
    expect(shares[2]).toBe(0);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 12);
    expect(softmax(masked(scoreRow(head, 0), 0))).toEqual([1, 0, 0]);
    expect(softmax([1000, 1000])).toEqual([0.5, 0.5]);
  });

  it('have no weight outside a window either', () => {
    const shares = softmax(masked([1, 2, 3, 4, 5], 3, 2));
    expect(shares.map((share) => share > 0)).toEqual([false, false, true, true, false]);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 12);
    for (const [positions, window] of [[6, 0], [6, 3], [6, 9], [1, 1]]) {
      const kept = Array.from({ length: positions }, (_, query) => masked(Array(positions).fill(0), query, window).filter(Number.isFinite).length);
      expect(keptPairs(positions, window)).toBe(kept.reduce((sum, count) => sum + count, 0));
    }
  });

  it('are more peaked without the division, whatever the scores', () => {
    for (let seed = 1; seed < 40; ++seed) {
      const scores = Array.from({ length: 6 }, (_, index) => Math.sin(seed * 12.9898 + index * 78.233) * 4);
      const [divided, whole] = [softmax(scores.map((score) => score / 3)), softmax(scores)];
      expect(Math.max(...whole)).toBeGreaterThan(Math.max(...divided));
      expect(entropy(whole)).toBeLessThan(entropy(divided));
      const slopes = (shares: number[]) => shares.reduce((sum, share) => sum + share * (1 - share), 0);
      expect(slopes(whole)).toBeLessThan(slopes(divided));
    }
    expect(entropy([0.25, 0.25, 0.25, 0.25])).toBeCloseTo(Math.log(4), 12);
    expect(entropy([1, 0])).toBe(0);
  });

  it('show each weight with all others that are not masked', () => {
    const scores = masked([1, 2, 3], 1);
    const { terms, value } = shareDerivation(['a', 'b', 'c'], scores, softmax(scores), 0);
    expect(terms.map(({ label }) => label)).toEqual(['a', 'b']);
    expect(terms.reduce((sum, term) => sum + term.value, 0)).toBeCloseTo(1, 12);
    expect(value).toBe(terms[0].value);
  });

  it('are drawn for words around the chosen one', () => {
    expect(windowAround(0, 5, 20)).toEqual({ from: 0, to: 5 });
    expect(windowAround(50, 100, 20)).toEqual({ from: 40, to: 60 });
    expect(windowAround(99, 100, 20)).toEqual({ from: 80, to: 100 });
    expect(windowAround(1, 100, 20)).toEqual({ from: 0, to: 20 });
  });
});

describe('what a head adds', () => {
  it('has a length, whose square is the sum of the squares', () => {
    expect(lengthOf([3, -4])).toBe(5);
    expect(lengthDerivation([3, -4]).value).toBe(25);
  });

  it('acts on a logit by what it gives alone beyond nothing, at the scale of the real stream', () => {
    const found = directEffect({ logits: Float32Array.from([3, 1, -2]), spread: 0.5 }, { logits: Float32Array.from([1, 1, 1]), spread: 0.1 }, 2);
    expect([...found.effect]).toEqual([0.5, 0, -0.75]);
    for (let word = 0; word < 3; ++word) {
      const { terms, value } = effectDerivation(found, word);
      expect(terms.reduce((sum, term) => sum + term.value, 0)).toBeCloseTo(value, 6);
    }
  });

  it('promotes and suppresses the words at the two ends', () => {
    expect(extremes([0, 3, -2, 1], 2)).toEqual({ most: [1, 3], least: [2, 0] });
  });

  it('has a colour of its own', () => {
    expect(new Set(Array.from({ length: 25 }, (_, head) => headColour(head, 25))).size).toBe(25);
  });
});

it('two factors of GPT-3’s value matrix have 48 times fewer numbers than one', () => {
  const { whole, factor, both, times } = valueCounts({ channels: 12288, head_size: 128, heads: 96, layers: 96 });
  expect([whole, factor, both, times]).toEqual([150_994_944, 1_572_864, 3_145_728, 48]);
  expect(valueCounts({ channels: 32, head_size: 8, heads: 4, layers: 2, key_value_heads: 1 }).bothOfAll).toBe(2 * (1 + 4) * 32 * 8);
});

it('the nearest words have the largest cosines, whatever their lengths', () => {
  const table = tableOf(Float32Array.from([1, 0, 0, 2, 3, 3, -1, 0]), 2);
  const { words, mean } = nearest([4, 0], table, 2);
  expect(words.map(({ token }) => token)).toEqual([0, 2]);
  expect(words[1].cosine).toBeCloseTo(Math.SQRT1_2, 6);
  expect(mean).toBeCloseTo((1 + 0 + Math.SQRT1_2 - 1) / 4, 6);
  expect(nearest([4, 0], table, 1, 0).words[0].token).toBe(2);
  expect(nearest([0, 0], table, 1).words[0].cosine).toBe(0);
});

it('the open views are kept in the link', () => {
  expect(toggled(undefined, 'a', true)).toBe('a');
  expect(toggled('a', 'b', true)).toBe('a b');
  expect(toggled('a b', 'b', true)).toBe('a b');
  expect(toggled('a b', 'a', false)).toBe('b');
  expect(toggled('a', 'a', false)).toBe('');
});

describe('the words that show something', () => {
  // (T, D) = (3, 2): the second word's query is large and points to the third word's key, which the mask hides.
  const head: QueriesAndKeys = { positions: 3, size: 2, window: 0, q: Float32Array.from([0, 0, 3, 0, 1, 0.5]), k: Float32Array.from([0, 1, 0.5, 0, 2, 0]) };

  it('are those from which the mask hides most', () => {
    expect(mostAhead(head, 0, 3)).toBe(1);
    expect(mostAhead(head, 2, 3)).toBe(2);
  });

  it('are those whose softmax the division by √D changes most', () => {
    expect(sharpening(head, 0)).toBe(0); // one word alone has all the weight
    const gains = [0, 1, 2].map((query) => sharpening(head, query));
    expect(sharpest(head, 48)).toEqual({ position: gains.indexOf(Math.max(...gains)), gain: Math.max(...gains) });
    expect(sharpest(head, 48).gain).toBeGreaterThan(0.05);
    expect(sharpest(head, 1).position).toBe(0);
  });
});
