import { describe, expect, it } from 'vitest';
import { joinedDepths, nearest, shufflesFor, tableOf } from './nearest';

function noise(count: number, seed: number): number[] {
  let state = seed;
  const uniform = () => (state = (state * 48271) % 2147483647) / 2147483647;
  return Array.from({ length: count }, () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()));
}
const [words, channels] = [400, 48];
/** Embeddings that share a large vector, as those of many models do. */
const table = tableOf(Float32Array.from(noise(words * channels, 3), (number, at) => number + (at % channels < 4 ? 6 : 0)), channels);
const rowOf = (token: number) => Array.from(table.rows.subarray(token * channels, (token + 1) * channels), (number, channel) => number + table.mean[channel]);

describe('nearest words', () => {
  it('are those that the vector is made of', async () => {
    const [a, b] = [rowOf(7), rowOf(90)];
    const found = await nearest(a.map((number, at) => (number + b[at]) / 2), table, 6);
    expect(found.words.map(({ token }) => token).sort((x, y) => x - y)).toEqual([7, 90]);
    expect(found.chance).toBeGreaterThan(0.3);
    expect(found.words[0].cosine).toBeGreaterThan(found.chance);
  });
  it('leave out the word itself', async () => {
    const found = await nearest(rowOf(7), table, 6, 7);
    expect(found.words.map(({ token }) => token)).not.toContain(7);
    expect(found.best.token).not.toBe(7);
  });
  it('are none for most vectors of noise, whose nearest word is as near by chance', async () => {
    let named = 0;
    for (let seed = 1; seed <= 60; ++seed) {
      const vector = noise(channels, seed * 977).map((number, channel) => number + table.mean[channel]);
      named += (await nearest(vector, table, 6)).words.length > 0 ? 1 : 0;
    }
    expect(shufflesFor(table)).toBe(39);
    expect(named).toBeLessThanOrEqual(6); // binomial(60, 1/40): more has probability 0.0007
  });
  it('have the largest cosines of centred vectors, whatever their lengths', async () => {
    // Less their mean (1, 1): (0, −1), (−1, 1), (2, 2), (−1, −2).
    const small = tableOf(Float32Array.from([1, 0, 0, 2, 3, 3, 0, -1]), 2);
    const { best } = await nearest([5, 5], small, 2);
    expect(best.token).toBe(2);
    expect(best.cosine).toBeCloseTo(1, 6);
    expect((await nearest([5, 1], small, 1)).best.cosine).toBeCloseTo(Math.SQRT1_2, 6);
    expect((await nearest([1, 1], small, 1)).best.cosine).toBe(0);
  });
  it('say at which depths there are none', () => {
    expect(joinedDepths(['after block 0', 'after block 1', 'after block 2'])).toBe('after blocks 0 to 2');
    expect(joinedDepths(['the embedding alone', 'after block 1', 'after block 3', 'after block 4'])).toBe('the embedding alone, after block 1 and after blocks 3 to 4');
    expect(joinedDepths(['after block 3'])).toBe('after block 3');
  });
  it('need no more than a table without variation', async () => {
    const equal = tableOf(new Float32Array(4 * 3).fill(0.5), 3);
    expect((await nearest([1, 2, 3], equal, 2)).words).toEqual([]);
  });
});
