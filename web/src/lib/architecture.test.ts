import { describe, expect, it } from 'vitest';
import {
  addsPositions, asRead, attentionFormula, blockFormulas, embeddingFormula, features, firstSeen, headOfPart, isMasked, isPooledMasked, maskReason, normWords, positionedFormula, sharers,
  windowOf,
} from './architecture';
import { families, llama, mistral, neox, qwen2, qwen3 } from './families';
import { render } from './typeset';

describe('a model', () => {
  it('is named by its parts', () => {
    expect(features(families.gpt2, 4)).toEqual(['layer norms', 'learned positions', 'GELU']);
    expect(features(qwen2, 4)).toEqual(['RMS norms', 'rotary positions', '4 query heads on 1 key/value head', 'windows of 5 tokens in some blocks', 'SiLU with gates']);
    expect(features(neox, 2)).toEqual(['layer norms', 'rotary positions', 'GELU', 'attention and feed-forward in parallel']);
  });
});

describe('heads', () => {
  it('share keys and values with the others of their group', () => {
    expect([0, 1, 2, 3].map((head) => headOfPart(llama, 4, 'k', head))).toEqual([0, 0, 1, 1]);
    expect([0, 1, 2, 3].map((head) => headOfPart(llama, 4, 'rot_q', head))).toEqual([0, 1, 2, 3]);
    expect(sharers(llama, 4, 3)).toEqual([2, 3]);
    expect(sharers(qwen2, 4, 2)).toEqual([0, 1, 2, 3]);
    expect(sharers(families.gpt2, 4, 2)).toEqual([2]);
  });

  it('read rotated or normalised queries and keys where there are such', () => {
    expect(asRead(families.gpt2, 'q')).toBe('q');
    expect(asRead(llama, 'k')).toBe('rot_k');
    expect(asRead({ ...families.gpt2, query_key_norm: true }, 'q')).toBe('rot_q');
    expect(positionedFormula(families.gpt2)).toBe('');
    expect(positionedFormula(qwen3)).toContain('norm');
  });
});

describe('a window', () => {
  it('is of its layer', () => {
    expect([0, 1, 2].map((layer) => windowOf(qwen2, layer))).toEqual([0, 5, 5]);
    expect(windowOf(llama, 1)).toBe(0);
  });

  it('holds the query and those just before it', () => {
    const seen = (query: number, window: number) => Array.from({ length: 9 }, (_, key) => key).filter((key) => !isMasked(query, key, window));
    expect(seen(6, 3)).toEqual([4, 5, 6]);
    expect(seen(1, 3)).toEqual([0, 1]);
    expect(seen(2, 0)).toEqual([0, 1, 2]);
    expect(firstSeen(6, 3)).toBe(4);
  });

  it('hides a pooled cell where it hides all of it', () => {
    for (const [pool, window] of [[1, 3], [2, 3], [4, 5], [4, 0]]) {
      for (let row = 0; row < 5; ++row) {
        for (let column = 0; column < 5; ++column) {
          const all = Array.from({ length: pool * pool }, (_, index) => isMasked(row * pool + Math.floor(index / pool), column * pool + (index % pool), window));
          expect(isPooledMasked(row, column, pool, window), `${pool} ${window} ${row} ${column}`).toBe(all.every(Boolean));
        }
      }
    }
  });

  it('is the reason for a mask before it, and the order of the text after the query', () => {
    expect(maskReason(6, 1, 3)).toBe('masked: outside the window of 3 tokens');
    expect(maskReason(6, 7, 3)).toBe('later tokens are masked');
  });
});

describe('formulas', () => {
  it('are such that KaTeX renders, of every family', () => {
    for (const architecture of Object.values(families)) {
      const all = [attentionFormula(architecture, 1), embeddingFormula(architecture).latex, normWords(architecture).formula, ...blockFormulas(architecture).map(({ latex }) => latex), positionedFormula(architecture)];
      for (const latex of all) expect(render(latex, true), latex).not.toContain('katex-error');
    }
  });

  it('say what the model computes', () => {
    expect(normWords(llama).formula).not.toContain('mu');
    expect(normWords(families.gpt2).formula).toContain('+ b');
    expect(attentionFormula(mistral, 0)).toContain('t-7<s\\le t');
    expect(attentionFormula(qwen2, 0)).toContain('{s\\le t}');
    expect(blockFormulas(neox)[0].latex).toContain('norm}_2');
    expect(blockFormulas(llama)[1].latex).toContain('gate');
    expect(embeddingFormula(llama).latex).not.toContain('W_P');
    expect([addsPositions(llama), addsPositions(families.gpt2)]).toEqual([false, true]);
  });

});
