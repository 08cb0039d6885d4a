import { describe, expect, it } from 'vitest';
import { chanceOf, guessOf, probabilityOf, scaledOf } from './chances';
import { samplingOptions as options } from './sampling_fixture';
import type { Candidate, NextTokens } from './types';

const candidate = (id: number, probability: number, drawn: number, more: Partial<Candidate> = {}): Candidate => ({
  id, token: ` w${id}`, logit: Math.log(probability), scaled: Math.log(probability) / 0.5, probability, drawn, rank: id + 1, removed_by: null,
  after: { penalties: probability, 'top-k': probability / 0.9, 'top-p': probability / 0.8, 'min-p': probability / 0.8 }, ...more,
});
const out = candidate(2, 0.1, 0, { removed_by: 'top-p', after: { penalties: 0.1, 'top-k': 0.1 / 0.9, 'top-p': 0, 'min-p': 0 } });
const next = {
  sampling: { temperature: 0.5, top_k: 3, top_p: 0.8, min_p: 0, repeat_penalty: 1 }, vocabulary: 100, kept: 2, entropy: 0,
  actual: null, candidates: [candidate(0, 0.5, 0.7), candidate(1, 0.3, 0.3), out],
} satisfies NextTokens;
const sum = (terms: { value: number }[]) => terms.reduce((total, { value }) => total + value, 0);

describe('a probability', () => {
  it('is listed first, and with the rest of the vocabulary adds up to one', () => {
    const { terms, rest, count, value } = probabilityOf(next.candidates[1], next);
    expect([terms[0].label, terms[1].label, value, count]).toEqual(['␣w1', '␣w0', 0.3, 100]);
    expect(sum(terms) + rest).toBeCloseTo(1, 12);
    for (const { left, value: share } of terms) expect(Math.exp(left!)).toBeCloseTo(share, 12);
  });

  it('of the logit lens lists the explained token first', () => {
    const { terms, rest } = guessOf([{ id: 1, text: 'a' }, { id: 2, text: 'b' }, { id: 3, text: 'c' }], [0.5, 0.2, 0.1], 1, 50);
    expect(terms.map(({ label }) => label)).toEqual(['b', 'a', 'c']);
    expect(rest).toBeCloseTo(0.2, 12);
  });
});

describe('the probability of being drawn', () => {
  it('goes through the active filters, the temperature last', () => {
    const { terms, value } = chanceOf(next.candidates[0], next, options);
    expect(terms.map(({ label }) => label)).toEqual(['model', 'top-k 3', 'top-p 0.8', 'temperature 0.5']);
    expect([terms[0].value, terms.at(-1)!.value, value]).toEqual([0.5, 0.7, 0.7]);
  });

  it('ends at the filter that removes a token', () => {
    const { terms, value, formula } = chanceOf(out, next, options);
    expect([terms.at(-1)!.label, terms.at(-1)!.value, value, formula]).toEqual(['top-p 0.8', 0, 0, 'removed by top-p']);
  });
});

describe('a scaled logit', () => {
  it('is the logit divided by the temperature', () => {
    const [{ left, right, value }] = scaledOf(next.candidates[0], next, options).terms;
    expect(left! * right!).toBeCloseTo(value, 12);
  });

  it('is the logit itself for greedy decoding', () => {
    const { terms, value, latex } = scaledOf(candidate(0, 0.5, 1, { scaled: Math.log(0.5) }), { ...next, sampling: { ...next.sampling, temperature: 0 } }, options);
    expect([terms[0].right, value, latex]).toEqual([null, Math.log(0.5), '']);
  });
});
