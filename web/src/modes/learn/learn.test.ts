import { describe, expect, it } from 'vitest';
import { render } from '../../lib/katex';
import { chapters, emphasised } from './chapters';
import { surprise } from './surprise';

describe('the chapters', () => {
  it('have formulas that KaTeX understands', () => {
    for (const { latex } of chapters.flatMap(({ formula }) => formula)) expect(render(latex, true)).not.toContain('katex-error');
  });

  it('close every emphasis', () => {
    for (const text of chapters.flatMap(({ plain }) => plain)) expect(text.split('*').length % 2).toBe(1);
    expect(emphasised('a *b* c')).toEqual([{ text: 'a ', strong: false }, { text: 'b', strong: true }, { text: ' c', strong: false }]);
  });
});

describe('surprise', () => {
  it('is the negative logarithm of the chance', () => {
    expect(surprise([0, 0, 0, 0], 2)).toBeCloseTo(Math.log(4), 12);
    expect(surprise([Math.log(3), 0], 0)).toBeCloseTo(-Math.log(0.75), 12);
  });

  it('stands large logits', () => {
    expect(surprise([1000, 0], 0)).toBeCloseTo(0, 12);
    expect(surprise([1000, 0], 1)).toBeCloseTo(1000, 9);
  });
});
