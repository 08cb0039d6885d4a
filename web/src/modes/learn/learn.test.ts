import { describe, expect, it } from 'vitest';
import { render } from '../../lib/typeset';
import { chapters, emphasised } from './chapters';
import { surprise } from './surprise';

describe('the chapters', () => {
  it('have formulas that KaTeX renders', () => {
    for (const { latex } of chapters.flatMap(({ formula }) => formula)) expect(render(latex, true)).not.toContain('katex-error');
  });

  it('close every emphasis', () => {
    for (const text of chapters.flatMap(({ plain }) => plain)) expect(text.split('*').length % 2).toBe(1);
    expect(emphasised('a *b* c')).toEqual([{ text: 'a ', strong: false }, { text: 'b', strong: true }, { text: ' c', strong: false }]);
  });
});

describe('surprise', () => {
  it('is the negative logarithm of the probability', () => {
    expect(surprise(0, { logit: 0, probability: 0.25 })).toBeCloseTo(Math.log(4), 12);
    const chances = [0.7, 0.2, 0.1];
    for (const known of chances) {
      for (const chance of chances) {
        expect(surprise(5 + Math.log(chance), { logit: 5 + Math.log(known), probability: known })).toBeCloseTo(-Math.log(chance), 12);
      }
    }
  });

  it('is finite for a probability that underflows', () => {
    expect(surprise(-1000, { logit: 0, probability: 1 })).toBe(1000);
  });
});
