import { describe, expect, it } from 'vitest';
import type { ParameterCount } from '../../lib/types';
import { partsOf, readShape, shapeOf, writeShape } from './shape';

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
