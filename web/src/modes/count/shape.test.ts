import { describe, expect, it } from 'vitest';
import type { ParameterCount } from '../../lib/types';
import { families } from '../../lib/families';
import { attentionSteps, describedBy, divisorsOf, isSameSize, justUnder, partsOf, queryOf, readShape, scoresOf, shapeOf, waysToCount, withHeads, writeShape } from './shape';

const config = { n_layer: 96, n_head: 96, n_embd: 12288, n_inner: 49152, vocab_size: 50257, n_positions: 2048, tie_word_embeddings: true };
const count = {
  total: 174604259328, embedding: 617558016, position: 25165824,
  per_head: { query: 1572864, key: 1572864, value_down: 1572864, value_up: 1572864, total: 6291456 },
  attention_block: 603979776, attention_total: 57982058496, feed_forward_total: 115964116992, biases: 10616832, norms: 4743168, unembedding: 0, flops_per_token: 353959305216,
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
    const between = (parts: ReturnType<typeof partsOf>) => parts.find(({ id }) => id === 'between')!.work;
    expect(partsOf(count, shape).reduce((sum, { work }) => sum + work, 0)).toBe(count.flops_per_token);
    // Beyond the matrices: 4 · A for each of T / 2 positions, in each block.
    expect(between(partsOf(count, shape))).toBe(96 * 4 * 12288 * 1024);
    const untied = { ...count, unembedding: count.embedding } as ParameterCount;
    expect(between(partsOf(untied, { ...shape, tied: false }))).toBe(96 * 4 * 12288 * 1024);
  });

  it('have factors whose product is the count', () => {
    for (const { factors, parameters } of partsOf(count, shape)) {
      if (factors.length > 0) expect(factors.reduce((product, [number]) => product * number, 1)).toBe(parameters);
    }
  });

  it('of a model that shares keys and has gates are multiplied out too', () => {
    // The sizes of tests/golden/families/llama: 4 query heads on 2 key/value heads of 8, 32 channels, 56 gated neurons.
    const small = shapeOf({ vocabulary: 48, context: 64, channels: 32, layers: 2, heads: 4, head_size: 8, feed_forward: 56, tied: false }, families.llama);
    const [matrix, neurons] = [32 * 8, 32 * 56];
    const block = 2 * (4 + 2) * matrix;
    const answer = {
      total: 2 * 48 * 32 + 2 * (block + 3 * neurons) + 5 * 32, embedding: 48 * 32, position: 0, per_head: { query: matrix, key: matrix, value_down: matrix, value_up: matrix, total: 4 * matrix }, attention_block: block, attention_total: 2 * block,
      feed_forward_total: 6 * neurons, biases: 0, norms: 5 * 32, unembedding: 48 * 32, flops_per_token: 2 * (2 * block + 6 * neurons + 48 * 32) + 2 * 4 * 32 * 32, architecture: { ...families.llama, windows: [0, 8] },
    } as ParameterCount;
    const parts = partsOf(answer, small);
    expect(parts.reduce((sum, { parameters }) => sum + parameters, 0)).toBe(answer.total);
    for (const { id, factors, parameters } of parts) if (factors.length > 0) expect(factors.reduce((product, [number]) => product * number, 1), id).toBe(parameters);
    expect(parts.map(({ id }) => id)).not.toContain('position');
    const named = (id: string) => parts.find((part) => part.id === id)!;
    expect([named('key').parameters, named('query').parameters, named('gate').parameters]).toEqual([2 * 2 * matrix, 2 * 4 * matrix, 2 * neurons]);
    expect(named('between')).toMatchObject({ work: 2 * 4 * 32 * 32, what: expect.stringContaining('window') });
    expect(named('norms').what).toBe('a gain for each channel');
    for (const { factors, product } of attentionSteps(answer, small)) expect(factors.reduce((all, factor) => all * factor, 1)).toBe(product);
  });

  it('are described by the model, and asked for with every part of the description', () => {
    for (const [name, architecture] of Object.entries(families)) {
      const shape = shapeOf({ vocabulary: 48, context: 64, channels: 32, layers: 2, heads: 4, head_size: 12, feed_forward: 56, tied: true, architecture });
      const { key_value_heads, gated, norm, positions, residual } = architecture;
      expect(queryOf(shape), name).toMatchObject({ key_value_heads, gated, norm, positions, residual, channels: 32 });
      expect(describedBy(shape), name).toMatchObject({ key_value_heads, gated, norm, positions, residual });
      expect(readShape(writeShape(shape).shape), name).toEqual(shape);
    }
    // Only the queries of Qwen2 have biases: the server keeps its own.
    expect(queryOf(shapeOf({ ...config }, families.qwen2))).not.toHaveProperty('bias');
    expect(queryOf(shapeOf({ ...config }, families.llama)).bias).toBe(false);
    expect(queryOf(shapeOf({ ...config, bias: false })).bias).toBe(false);
    // What the server describes says more than a preset's one word.
    expect(queryOf(shapeOf({ ...config, bias: true }, families.qwen2))).not.toHaveProperty('bias');
    expect(shapeOf({ ...config, bias: false }, families.mistral)).toMatchObject({ key_value_heads: 2, gated: true, bias: false });
    expect(queryOf({ ...shapeOf(config), positions: 'sinusoidal' })).not.toHaveProperty('positions');
  });

  it('keep their groups and the width of the stream while heads change', () => {
    const grouped = { ...shapeOf({ channels: 32, layers: 2, heads: 4, head_size: 8, feed_forward: 56, vocabulary: 48, context: 64 }), key_value_heads: 2 };
    expect(withHeads(grouped, { heads: 6 })).toMatchObject({ heads: 6, key_value_heads: 3, channels: 48 });
    expect(withHeads(grouped, { heads: 5 })).toMatchObject({ heads: 5, key_value_heads: 5, channels: 40 });
    expect(withHeads({ ...grouped, channels: 40 }, { head_size: 16 })).toMatchObject({ head_size: 16, channels: 40, key_value_heads: 2 });
    expect(divisorsOf(12)).toEqual([12, 6, 4, 3, 2, 1]);
  });

  it('round-trip through a link', () => {
    expect(readShape(writeShape(shape).shape)).toEqual(shape);
    expect(readShape(writeShape({ ...shape, tied: false }).shape)?.tied).toBe(false);
    for (const broken of [undefined, '', '1 2 3', '96 96 128 49152 50257 0 tied', '96 96 128 x 50257 2048 tied', '96 96 128 49152 50257 2048 tied shared:7']) expect(readShape(broken)).toBeNull();
  });
});

describe('GPT-3 as people read of it', () => {
  const shape = shapeOf(config);

  it('has the products that explanations give', () => {
    const steps = attentionSteps(count, shape);
    expect(steps.map(({ product }) => product)).toEqual([1572864, 6291456, 603979776, 57982058496]);
    for (const { factors, product } of steps) expect(factors.reduce((all, factor) => all * factor, 1)).toBe(product);
    expect(justUnder(count.attention_total)).toBe('just under 58 billion');
    expect(count.attention_total / count.total).toBeCloseTo(1 / 3, 2);
  });

  it('has 174.6 billion parameters with one embedding, and 175.18 billion in matrices alone with two', () => {
    const { tied, untied, rows } = waysToCount(count);
    expect(tied).toBe(count.total);
    expect(untied).toBe(175181291520);
    expect([(tied / 1e9).toFixed(1), (untied / 1e9).toFixed(2), (tied / 1e9).toFixed(0), (untied / 1e9).toFixed(0)]).toEqual(['174.6', '175.18', '175', '175']);
    const named = (name: string) => rows.find((row) => row.name === name)!.parameters;
    expect([named('biases'), named('norms'), named('position embedding'), named('feed-forward')]).toEqual([10616832, 4743168, 25165824, 115964116992]);
  });

  it('is known by its sizes, tied or not', () => {
    expect(isSameSize(shape, { ...shape, tied: false })).toBe(true);
    expect(isSameSize(shape, { ...shape, layers: 95 })).toBe(false);
  });

  it('has four times the scores for twice the context', () => {
    const [once, twice] = [scoresOf(shape, 2048), scoresOf(shape, 4096)];
    expect(once).toEqual({ head: 4194304, block: 402653184, all: 38654705664 });
    for (const part of ['head', 'block', 'all'] as const) expect(twice[part]).toBe(4 * once[part]);
    expect(scoresOf(shape, 5).head).toBe(25);
  });

  it('says “just under” of what is just under only', () => {
    expect(justUnder(58e9)).toBe('');
    expect(justUnder(57.3e9)).toBe('');
    expect(justUnder(28311552)).toBe('');
    expect(justUnder(999_999)).toBe('');
    expect(justUnder(1.999e6)).toBe('just under 2 million');
  });
});
