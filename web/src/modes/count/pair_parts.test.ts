import { describe, expect, it } from 'vitest';
import { published } from '../../lib/published';
import { countModel, type StackedModel } from '../../lib/stacks';
import { featuresOf } from './pair_features';
import { pairMemory, pairParts, pairWork, readSizes, scoreGrids, sizesOf, withSizes, writeSizes } from './pair_parts';

const named = (name: string) => published.find((model) => model.name === name)!;
const base = named('transformer-base');
const bert = named('bert-base-uncased');
const lengths = { source: 10, target: 12 };

describe('the parts of an encoder and a decoder', () => {
  it('contain every parameter once, and multiply out to their counts', () => {
    for (const model of published) {
      const parts = pairParts(model, lengths);
      expect(parts.reduce((sum, { parameters }) => sum + parameters, 0), model.name).toBe(countModel(model).total);
      for (const { name, factors, parameters } of parts) if (factors.length > 0) expect(factors.reduce((product, [number]) => product * number, 1), `${model.name}, ${name}`).toBe(parameters);
      expect(new Set(parts.map(({ id }) => id)).size).toBe(parts.length);
    }
    const cross = pairParts(base, lengths).find(({ id }) => id === 'cross')!;
    expect(cross).toMatchObject({ parameters: 6291456, group: 'cross', stack: 'decoder' });
    expect(pairParts(bert, lengths).map(({ id }) => id)).toEqual(['embedding', 'position', 'encoder-attention', 'encoder-feed-forward', 'unembedding', 'biases', 'norms']);
  });

  it('contain both embeddings where they are not shared, and keys that heads share', () => {
    const apart: StackedModel = { ...base, shared_embedding: false, decoder: { ...base.decoder!, unembedding: 'own' } };
    const grouped: StackedModel = { ...base, encoder: { ...base.encoder, key_value_heads: 2, gated: true }, decoder: { ...base.decoder!, key_value_heads: 4 } };
    for (const model of [apart, grouped]) {
      const parts = pairParts(model, lengths);
      expect(parts.reduce((sum, { parameters }) => sum + parameters, 0)).toBe(countModel(model).total);
      expect(parts.reduce((sum, { work }) => sum + work, 0)).toBe(pairWork(model, lengths).total);
      for (const { name, factors, parameters } of parts) if (factors.length > 0) expect(factors.reduce((product, [number]) => product * number, 1), name).toBe(parameters);
    }
    expect(countModel(apart).total).toBe(countModel(base).total + 2 * 37000 * 512);
  });
});

describe('the operations of two texts', () => {
  it('are those of every product, written out', () => {
    const [c, f, v, layers, heads, d] = [512, 2048, 37000, 6, 8, 64];
    const [s, t] = [lengths.source, lengths.target];
    let total = 0;
    for (let layer = 0; layer < layers; ++layer) {
      // (rows, inputs) × (inputs, outputs): 2 · rows · inputs · outputs.
      total += 2 * s * c * (3 * c) + 2 * s * c * c + 2 * 2 * s * c * f; // the encoder
      for (let head = 0; head < heads; ++head) total += 2 * s * d * s + 2 * s * s * d;
      total += 2 * t * c * (3 * c) + 2 * t * c * c + 2 * 2 * t * c * f; // the decoder's own
      for (let head = 0; head < heads; ++head) total += 2 * t * d * (t / 2) + 2 * t * (t / 2) * d;
      total += 2 * t * c * c + 2 * s * c * (2 * c) + 2 * t * c * c; // queries; keys and values; output
      for (let head = 0; head < heads; ++head) total += 2 * t * d * s + 2 * t * s * d;
    }
    total += 2 * t * c * v;
    expect(pairWork(base, lengths).total).toBe(total);
  });

  it('are all in the parts', () => {
    for (const model of published) expect(pairParts(model, lengths).reduce((sum, { work }) => sum + work, 0), model.name).toBe(pairWork(model, lengths).total);
  });

  it('of a decoder are those that heed params counts for a token of a full context', () => {
    // GPT-2 as the decoder of an encoder without blocks, without attention to it: 12 blocks, 768 channels, 1,024 positions.
    const decoder = { ...base.decoder!, layers: 12, heads: 12, key_value_heads: 12, channels: 768, feed_forward: 3072, vocabulary: 50257 };
    const { decoder: own, unembedding } = pairWork({ ...base, decoder }, { source: 1, target: 1024 });
    const matrices = 12 * (4 * 768 * 768 + 2 * 768 * 3072) + 50257 * 768;
    // 2 · (matrices and unembedding) + 4 · A · T/2 in each layer: src/model/parameter_count.h.
    expect((own.attention + own.products + own.feed_forward + unembedding) / 1024).toBe(2 * matrices + 12 * 4 * 768 * 512);
  });

  it('grow with each text as they should', () => {
    const at = (source: number, target: number) => pairWork(base, { source, target });
    const [once, twice] = [at(100, 100), at(100, 200)];
    expect(twice.encoder).toEqual(once.encoder);
    expect(twice.decoder.cross_source).toBe(once.decoder.cross_source);
    expect(twice.decoder.cross_products).toBe(2 * once.decoder.cross_products);
    expect(twice.decoder.products).toBe(4 * once.decoder.products);
    expect(at(200, 100).encoder.products).toBe(4 * once.encoder.products);
    expect(at(200, 100).decoder.products).toBe(once.decoder.products);
  });
});

it('keeps the keys and values of both texts, and of none without a decoder', () => {
  const memory = pairMemory(base, lengths);
  expect(memory).toEqual({ weights: 4 * 63082496, own_cache: 2 * 6 * 512 * 12 * 4, cross_cache: 2 * 6 * 512 * 10 * 4, training: 16 * 63082496 });
  expect(pairMemory(bert, lengths)).toMatchObject({ own_cache: 0, cross_cache: 0 });
});

it('has three grids, of which the decoder’s alone is masked', () => {
  expect(scoreGrids(base, lengths)).toEqual([
    { kind: 'encoder', queries: 10, keys: 10, kept: 100, head: 100, all: 4800 },
    { kind: 'decoder', queries: 12, keys: 12, kept: 78, head: 144, all: 6912 },
    { kind: 'cross', queries: 12, keys: 10, kept: 120, head: 120, all: 5760 },
  ]);
  expect(scoreGrids(bert, lengths).map(({ kind }) => kind)).toEqual(['encoder']);
});

describe('sizes in a link', () => {
  it('round-trip, and leave a model as it is where they are its own', () => {
    for (const model of published) {
      const sizes = sizesOf(model);
      expect(readSizes(writeSizes(sizes), model), model.name).toEqual(sizes);
      expect(withSizes(model, sizes), model.name).toEqual(model);
    }
  });

  it('change the stream with the heads', () => {
    const wider = withSizes(base, { ...sizesOf(base), heads: 16, decoder_layers: 2 });
    expect(wider.encoder).toMatchObject({ channels: 1024, heads: 16, key_value_heads: 16, layers: 6 });
    expect(wider.decoder).toMatchObject({ channels: 1024, layers: 2 });
  });

  it('are refused where they are not sizes', () => {
    for (const broken of [undefined, '', '6 6 8 64 2048', '6 6 8 64 2048 x', '6 0 8 64 2048 37000', '6 6 8 64 2048 37000 1', '6 6 8 64 2048 1.5']) expect(readSizes(broken, base)).toBeNull();
    expect(readSizes('12 0 12 64 3072 30522', bert)).toMatchObject({ decoder_layers: 0 });
  });
});

it('says what a model is made of', () => {
  expect(featuresOf(base)).toEqual(['layer norms after what they sum', 'sinusoidal positions', 'ReLU', 'one embedding for both texts and the output']);
  expect(featuresOf(named('t5-small'))).toEqual(['RMS norms before what reads them', 'positions as biases of the scores, by distance', 'ReLU', 'no biases', 'one embedding for both texts and the output']);
  expect(featuresOf(bert)).toEqual(['layer norms after what they sum', 'learned positions', 'GELU', 'no mask']);
});
