import { describe, expect, it } from 'vitest';
import type { Walk, WalkAnswer } from '../../lib/types';
import { captionAt, doneOf, phaseAt, secondsOf, stepsOf, strongestKey, sumAfter } from './attention_steps';

const size = 4;

/** A head's computation at `position` of `count` words, with numbers of its own. */
function walkOf(count: number, position: number): Walk {
  const number = (seed: number) => Math.sin(12.9898 * seed) * 2;
  const query = Array.from({ length: size }, (_, j) => number(j + 1));
  const all = Array.from({ length: count }, (_, at): WalkAnswer => {
    const key = Array.from({ length: size }, (_, j) => number(10 + at * size + j));
    const values = Array.from({ length: size }, (_, j) => number(900 + at * size + j));
    const product = key.reduce((sum, one, j) => sum + one * query[j], 0);
    return { position: at, token: ` w${at}`, masked: at > position, key, value: values, product, scaled: product / 2, score: at > position ? null : product / 2, share: 0, value_length: 1, contribution_length: 1 };
  });
  const powers = all.map(({ masked, scaled }) => (masked ? 0 : Math.exp(scaled)));
  const sum = powers.reduce((total, power) => total + power, 0);
  const answers = all.map((answer, at) => ({ ...answer, share: powers[at] / sum }));
  const output = Array.from({ length: size }, (_, j) => answers.reduce((total, { share, value }) => total + share * value[j], 0));
  return {
    word: `w${position}`, word_positions: [position, position + 1], position, layer: 1, head: 2, head_size: size, query, answers, output, concatenation: output, head_projection: [1, 2, 3, 4, 5, 6, 7, 8],
    attention_out: [], residual_before: [0, 0, 0, 0, 0, 0, 0, 0], residual_after: [2, 2, 2, 2, 2, 2, 2, 2],
  };
}

describe('stepsOf', () => {
  const walk = walkOf(30, 24);
  const steps = stepsOf(walk, 3, 6);

  it('multiplies cell by cell: the products add up to q · k', () => {
    expect(sumAfter(steps, size)).toBeCloseTo(walk.answers[3].product, 10);
    expect(sumAfter(steps, 2)).toBeCloseTo(walk.query[0] * walk.answers[3].key[0] + walk.query[1] * walk.answers[3].key[1], 10);
  });

  it('lists the chosen key, and what all rows add is the output', () => {
    expect(steps.rows[steps.chosen].answer?.position).toBe(3);
    const sum = walk.output.map((_, j) => steps.adding.reduce((total, index) => total + steps.rows[index].contribution[j], 0));
    sum.forEach((number, j) => expect(number).toBeCloseTo(walk.output[j], 10));
    expect(steps.rows.reduce((total, { share, masked }) => (masked ? total : total + share), 0)).toBeCloseTo(1, 10);
  });

  it('is one way from the first step to the last', () => {
    expect(steps.phases.map(({ name }) => name)).toEqual(['keys', 'multiply', 'scale', 'row', 'mask', 'softmax', 'values', 'project', 'stream', 'others']);
    steps.phases.forEach(({ begin }, index) => expect(begin).toBe(index === 0 ? 0 : steps.phases[index - 1].end));
    expect(steps.last).toBe(steps.phases.at(-1)!.end);
    expect(doneOf(steps, 'multiply', 1 + 2.5)).toBe(2.5);
    expect(doneOf(steps, 'softmax', 3)).toBe(0);
    expect(phaseAt(steps, 1 + size).name).toBe('multiply');
    expect(phaseAt(steps, 1.5 + size).name).toBe('scale');
    for (let step = 0; step < steps.last; step++) expect(secondsOf(steps, step)).toBeGreaterThan(0);
  });

  it('has no mask where nothing is masked, and no other heads where there are none', () => {
    const names = stepsOf(walkOf(8, 7), 2, 1).phases.map(({ name }) => name);
    expect(names).not.toContain('mask');
    expect(names).not.toContain('others');
  });

  it('says each step with its numbers', () => {
    expect(captionAt(steps, 1 + size)).toContain('The sum of all is q · k');
    expect(captionAt(steps, 2)).toContain(`Number 1 of ${size}`);
    expect(captionAt(steps, steps.phases.find(({ name }) => name === 'scale')!.end)).toContain('÷ √4');
    for (let time = 1; time <= steps.last; time++) expect(captionAt(steps, time)).not.toMatch(/undefined|NaN/);
  });
});

it('opens on the strongest key that is not the query’s own', () => {
  const walk = walkOf(12, 9);
  const shares = (own: number, other: number): Walk => ({ ...walk, answers: walk.answers.map((answer) => ({ ...answer, share: answer.position === 9 ? own : answer.position === 4 ? other : 0 })) });
  expect(strongestKey(shares(0.7, 0.3))).toBe(4);
  expect(strongestKey(shares(1, 0))).toBe(9);
});
