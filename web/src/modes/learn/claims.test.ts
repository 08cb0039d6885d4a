// What the chapters claim of every model, proved on a small one that is computed here.

import { describe, expect, it } from 'vitest';
import { workOf } from './growth';
import { swappable, swapped } from './order';

type Vector = number[];

/** Numbers of a normal distribution, the same in every run. */
function normal(seed: number): () => number {
  let state = seed;
  const uniform = () => ((state = (1664525 * state + 1013904223) % 2 ** 32) + 0.5) / 2 ** 32;
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}
const dot = (a: Vector, b: Vector) => a.reduce((sum, number, index) => sum + number * b[index], 0);

/** A block of one head without positions: x + softmax(Q Kᵀ / √D) V. */
function block(size: number, next: () => number, isMasked: boolean): (stream: Vector[]) => Vector[] {
  const matrix = () => Array.from({ length: size }, () => Array.from({ length: size }, () => next() / Math.sqrt(size)));
  const [query, key, value] = [matrix(), matrix(), matrix()];
  const by = (weights: Vector[], x: Vector) => weights.map((row) => dot(row, x));
  return (stream) =>
    stream.map((x, position) => {
      const seen = isMasked ? stream.slice(0, position + 1) : stream;
      const scores = seen.map((other) => dot(by(query, x), by(key, other)) / Math.sqrt(size));
      const shares = scores.map((score) => Math.exp(score - Math.max(...scores)));
      const total = shares.reduce((sum, share) => sum + share, 0);
      return x.map((number, channel) => number + seen.reduce((sum, other, at) => sum + (shares[at] / total) * by(value, other)[channel], 0));
    });
}

describe('positions', () => {
  const size = 8;
  const next = normal(7);
  const [dog, bites, man] = Array.from({ length: 3 }, () => Array.from({ length: size }, next));
  const apart = (a: Vector[], b: Vector[]) => Math.max(...a.at(-1)!.map((number, channel) => Math.abs(number - b.at(-1)![channel])));
  const [first, second] = [block(size, next, true), block(size, next, true)];
  const rounding = 1e-12;

  it('are what a first block lacks to tell the order, and the mask tells later ones', () => {
    const [one, other] = [[dog, man, bites], [man, dog, bites]];
    expect(apart(first(one), first(other))).toBeLessThan(rounding);
    expect(apart(second(first(one)), second(first(other)))).toBeGreaterThan(0.01);
  });

  it('are not what makes “dog bites man” and “man bites dog” differ under a mask', () => {
    expect(apart(first([dog, bites, man]), first([man, bites, dog]))).toBeGreaterThan(0.01);
  });

  it('are all that tells the order where there is no mask', () => {
    const [free, later] = [block(size, next, false), block(size, next, false)];
    expect(apart(later(free([dog, man, bites])), later(free([man, dog, bites])))).toBeLessThan(rounding);
  });
});

it('a dot product of D independent entries has variance D only where their mean is 0', () => {
  const [size, samples] = [32, 4000];
  const varianceWith = (mean: number) => {
    const next = normal(3);
    const entry = () => mean + next();
    const products = Array.from({ length: samples }, () => Array.from({ length: size }, () => entry() * entry()).reduce((sum, one) => sum + one, 0));
    const average = products.reduce((sum, one) => sum + one, 0) / samples;
    return products.reduce((sum, one) => sum + (one - average) ** 2, 0) / samples;
  };
  // A sample variance of n samples has a relative deviation of about √(2/n) = 2 %; of products somewhat more.
  expect(varianceWith(0) / size).toBeGreaterThan(0.9);
  expect(varianceWith(0) / size).toBeLessThan(1.1);
  // Var(xy) = 1 + 2 m² for mean m and variance 1.
  expect(varianceWith(1) / size).toBeGreaterThan(2.7);
});

describe('the work of attention', () => {
  const model = { layers: 6, heads: 6, windows: [] };

  it('grows about fourfold where the text doubles, and its steps in a row do not grow', () => {
    const [one, two] = [workOf(1000, model), workOf(2000, model)];
    expect(one.products).toBe((6 * 6 * 1000 * 1001) / 2);
    expect(two.products / one.products).toBeCloseTo(4, 2);
    expect([one.recurrent, two.recurrent, one.blocks, two.blocks]).toEqual([1000, 2000, 6, 6]);
  });

  it('grows twofold where the text is longer than a window', () => {
    const windowed = { ...model, windows: Array(6).fill(8) };
    expect(workOf(2000, windowed).products / workOf(1000, windowed).products).toBeCloseTo(2, 2);
  });
});

describe('two words that change places', () => {
  const tokens = ['Late', ' one', ',', ' a', ' one', ' hare'].map((text, id) => ({ id: text === ' one' ? 1 : id, text }));

  it('are the nearest two different words before the chosen one', () => {
    expect(swappable(tokens, 5)).toEqual([3, 4]);
    expect(swappable(tokens, 3)).toEqual([0, 1]);
    expect(swappable(tokens, 1)).toBeNull();
    expect(swappable([{ id: 1, text: 'a' }, { id: 1, text: 'a' }, { id: 2, text: 'b' }], 2)).toBeNull();
    expect(swapped(['a', 'b', 'c'], [0, 2])).toEqual(['c', 'b', 'a']);
  });
});
