import { describe, expect, it } from 'vitest';
import type { ParameterCount } from '../../lib/types';
import { attentionOf, isSameSize, justUnder, partsOf, readShape, scoresOf, shapeOf, waysToCount, writeShape } from './shape';

const config = { n_layer: 96, n_head: 96, n_embd: 12288, n_inner: 49152, vocab_size: 50257, n_positions: 2048, tie_word_embeddings: true };
const count = {
  total: 174604259328, embedding: 617558016, position: 25165824,
  per_head: { query: 1572864, key: 1572864, value_down: 1572864, value_up: 1572864, total: 6291456 },
  attention_total: 57982058496, feed_forward_total: 115964116992, biases: 10616832, norms: 4743168, unembedding: 0, flops_per_token: 353959305216,
} as ParameterCount;

describe('the parts of a shape', () => {
  const shape = shapeOf(config);

  it('are the same from a preset and from a model', () => {
    expect(shapeOf({ vocabulary: 50257, context: 2048, channels: 12288, layers: 96, heads: 96, head_size: 128, feed_forward: 49152, tied: true })).toEqual(shape);
  });

  it('contain every parameter of GPT-3 once', () => {
    const parts = partsOf(count, shape);
    expect(parts.reduce((sum, { parameters }) => sum + parameters, 0)).toBe(count.total);
  });

  it('contain all operations of a token', () => {
    expect(partsOf(count, shape).reduce((sum, { work }) => sum + work, 0)).toBe(count.flops_per_token);
    const untied = { ...count, unembedding: count.embedding } as ParameterCount;
    expect(partsOf(untied, { ...shape, tied: false }).reduce((sum, { work }) => sum + work, 0)).toBe(count.flops_per_token);
  });

  it('have factors whose product is the count', () => {
    for (const { factors, parameters } of partsOf(count, shape)) {
      if (factors.length > 0) expect(factors.reduce((product, [number]) => product * number, 1)).toBe(parameters);
    }
  });

  it('round-trip through a link', () => {
    expect(readShape(writeShape(shape).shape)).toEqual(shape);
    expect(readShape(writeShape({ ...shape, tied: false }).shape)?.tied).toBe(false);
    for (const broken of [undefined, '', '1 2 3', '96 96 128 49152 50257 0 tied', '96 96 128 x 50257 2048 tied']) expect(readShape(broken)).toBeNull();
  });
});

describe('GPT-3 as people read of it', () => {
  const shape = shapeOf(config);
  const attention = attentionOf(shape);

  it('has the products that explanations give', () => {
    expect(attention).toEqual({ matrix: 1572864, head: 6291456, block: 603979776, all: 57982058496, wholeValue: 150994944 });
    expect([attention.head, attention.all]).toEqual([count.per_head.total, count.attention_total]);
    expect(justUnder(attention.all)).toBe('just under 58 billion');
    expect(attention.all / count.total).toBeCloseTo(1 / 3, 2);
  });

  it('has 174.6 billion parameters with one embedding, and 175.18 billion in matrices alone with two', () => {
    const { tied, untied, rows } = waysToCount(shape);
    expect(tied).toBe(count.total);
    expect(untied).toBe(175181291520);
    expect([(tied / 1e9).toFixed(1), (untied / 1e9).toFixed(2), (tied / 1e9).toFixed(0), (untied / 1e9).toFixed(0)]).toEqual(['174.6', '175.18', '175', '175']);
    const named = (name: string) => rows.find((row) => row.name === name)!.parameters;
    expect([named('biases'), named('norms'), named('position embedding'), named('feed-forward')]).toEqual([count.biases, count.norms, count.position, count.feed_forward_total]);
  });

  it('is known by its sizes, tied or not', () => {
    expect(isSameSize(shape, { ...shape, tied: false })).toBe(true);
    expect(isSameSize(shape, { ...shape, layers: 95 })).toBe(false);
  });

  it('has four times the scores for twice the context', () => {
    const [once, twice] = [scoresOf(shape, 2048), scoresOf(shape, 4096)];
    expect(once).toEqual({ head: 4194304, seen: 2098176, block: 402653184, all: 38654705664 });
    for (const part of ['head', 'block', 'all'] as const) expect(twice[part]).toBe(4 * once[part]);
    expect(scoresOf(shape, 5)).toMatchObject({ head: 25, seen: 15 });
  });

  it('says “just under” of what is just under only', () => {
    expect(justUnder(58e9)).toBe('');
    expect(justUnder(57.3e9)).toBe('');
    expect(justUnder(28311552)).toBe('');
    expect(justUnder(999_999)).toBe('');
    expect(justUnder(1.999e6)).toBe('just under 2 million');
  });
});
