import { describe, expect, it } from 'vitest';
import { render } from '../../lib/typeset';
import { families } from '../../lib/families';
import { emphasised, withTails } from '../../lib/emphasis';
import { chaptersOf } from './chapters';
import { surprise } from './surprise';

describe('the chapters', () => {
  const tours = Object.fromEntries(Object.entries(families).map(([name, architecture]) => [name, chaptersOf({ architecture, heads: 4, layer: 1 })])) as Record<keyof typeof families, ReturnType<typeof chaptersOf>>;
  const said = (name: keyof typeof families, id: string) => {
    const { plain, exact, formula } = tours[name].find((chapter) => chapter.id === id)!;
    return [...plain.map(({ text }) => text), exact, ...formula.flatMap(({ latex, says }) => [latex, says])].join(' ');
  };

  it('have formulas that KaTeX renders, of every family', () => {
    for (const [name, chapters] of Object.entries(tours)) {
      for (const { latex } of chapters.flatMap(({ formula }) => formula)) expect(render(latex, true), name).not.toContain('katex-error');
    }
  });

  it('close every emphasis', () => {
    for (const { text } of Object.values(tours).flat().flatMap(({ plain }) => plain)) expect(text.split('*').length % 2, text).toBe(1);
    expect(emphasised('a *b* c')).toEqual([{ text: 'a ', strong: false }, { text: 'b', strong: true }, { text: ' c', strong: false }]);
  });

  it('keep punctuation with the term before it, and lose none', () => {
    expect(withTails(emphasised('a *key*, and a *value*')).map(({ text, tail }) => text + tail)).toEqual(['a ', 'key,', ' and a ', 'value']);
    for (const { text } of Object.values(tours).flat().flatMap(({ plain }) => plain)) expect(withTails(emphasised(text)).map((part) => part.text + part.tail).join('')).toBe(emphasised(text).map((part) => part.text).join(''));
  });

  it('say of each model what is true of it', () => {
    expect(said('gpt2', 'embeddings')).toContain('W_P');
    for (const name of ['llama', 'mistral', 'qwen2', 'qwen3', 'neox'] as const) {
      expect(said(name, 'embeddings'), name).not.toMatch(/W_P|GPT-2|The two rows are added/);
      expect(said(name, 'head'), name).toContain('rotate');
    }
    expect(said('gpt2', 'head')).not.toMatch(/rotate|heads share/);
    expect(said('gpt2', 'block')).toMatch(/layer norm.*GELU/);
    expect(said('llama', 'block')).toMatch(/\*gate\*.*RMS norm.*SiLU/s);
    expect(said('llama', 'block')).not.toMatch(/layer norm|GELU|\\mu/);
    expect(said('llama', 'head')).toContain('2 heads share');
    expect(said('qwen2', 'head')).toContain('4 heads share');
    expect(said('neox', 'block')).toMatch(/read the same stream.*norm}_2/s);
    expect(said('mistral', 'mask')).toMatch(/the 6 before it.*t-7<s/s);
    expect(said('qwen2', 'mask')).toContain('the 4 before it');
    expect(said('llama', 'mask')).toContain('triangle');
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
