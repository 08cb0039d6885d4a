import { describe, expect, it } from 'vitest';
import { published } from './published';
import { countModel, modelOf, type DescribedStack, type Stack, type StackedModel } from './stacks';

/** What `heed params NAME --json` says. */
const params: Record<string, { total: number; embedding: number; position: number; attention: number; feed_forward: number; biases: number; norms: number; unembedding: number; stacks: [number, number, number][] }> = {
  'transformer-base': { total: 63082496, embedding: 18944000, position: 0, attention: 18874368, feed_forward: 25165824, biases: 67584, norms: 30720, unembedding: 0, stacks: [[6291456, 0, 12582912], [6291456, 6291456, 12582912]] },
  'transformer-big': { total: 214245376, embedding: 37888000, position: 0, attention: 75497472, feed_forward: 100663296, biases: 135168, norms: 61440, unembedding: 0, stacks: [[25165824, 0, 50331648], [25165824, 25165824, 50331648]] },
  't5-small': { total: 60506624, embedding: 16449536, position: 512, attention: 18874368, feed_forward: 25165824, biases: 0, norms: 16384, unembedding: 0, stacks: [[6291456, 0, 12582912], [6291456, 6291456, 12582912]] },
  't5-base': { total: 222903552, embedding: 24674304, position: 768, attention: 84934656, feed_forward: 113246208, biases: 0, norms: 47616, unembedding: 0, stacks: [[28311552, 0, 56623104], [28311552, 28311552, 56623104]] },
  'bert-base-uncased': { total: 109514298, embedding: 23440896, position: 394752, attention: 28311552, feed_forward: 56623104, biases: 114234, norms: 39936, unembedding: 589824, stacks: [[28311552, 0, 56623104]] },
};

function summed(model: StackedModel) {
  const { encoder, decoder, total } = countModel(model);
  const stacks = [encoder, ...(decoder ? [decoder] : [])];
  const all = (part: 'embedding' | 'position' | 'attention' | 'cross_attention' | 'feed_forward' | 'biases' | 'norms' | 'unembedding') => stacks.reduce((sum, stack) => sum + stack[part], 0);
  return {
    total, embedding: all('embedding'), position: all('position'), attention: all('attention') + all('cross_attention'), feed_forward: all('feed_forward'), biases: all('biases'), norms: all('norms'), unembedding: all('unembedding'),
    stacks: stacks.map(({ attention, cross_attention, feed_forward }) => [attention, cross_attention, feed_forward]),
  };
}

describe('published encoders and decoders', () => {
  it('have the parameters that heed params counts, part by part', () => {
    expect(published.map(({ name }) => name).sort()).toEqual(Object.keys(params).sort());
    for (const model of published) expect(summed(model), model.name).toEqual(params[model.name]);
  });

  it('add up to their totals', () => {
    for (const model of published) {
      const { encoder, decoder, total } = countModel(model);
      expect(encoder.total + (decoder?.total ?? 0), model.name).toBe(total);
      for (const stack of [encoder, ...(decoder ? [decoder] : [])]) expect(Object.entries(stack).reduce((sum, [part, size]) => sum + (part === 'total' ? 0 : size), 0)).toBe(stack.total);
    }
  });
});

describe('a server’s translator', () => {
  const described = ({ norm, positions, key_value_heads, gated, activation_label, biases, ...sizes }: Stack): DescribedStack =>
    ({ ...sizes, architecture: { family: 'custom', norm, positions, key_value_heads, windows: [], gated, activation_label, query_key_norm: false, residual: 'sequential', biases } });

  it('has the parts that its number of parameters leaves no doubt about', () => {
    for (const { encoder, decoder } of published) {
      if (!decoder) continue;
      for (const norms of [{ final_norm: true, embedding_norm: false }, { final_norm: false, embedding_norm: false }, { final_norm: true, embedding_norm: true }]) {
        for (const end of [{}, { unembedding_bias: true }, { unembedding: 'own' as const }]) {
          const whole = { name: 'one', encoder: { ...encoder, ...norms }, decoder: { ...decoder, ...norms, ...end }, shared_embedding: true };
          expect(summed(modelOf('one', described(encoder), described(decoder), countModel(whole).total)!)).toEqual(summed(whole));
        }
      }
      const apart = { name: 'one', encoder, decoder: { ...decoder, unembedding: 'own' as const }, shared_embedding: false };
      expect(summed(modelOf('one', described(encoder), described(decoder), countModel(apart).total)!)).toEqual(summed(apart));
    }
  });

  it('is one that heed trains: two pre-norm blocks each, and a shared embedding', () => {
    // The sizes of the microworld's translator: 1,200 tokens, 128 channels, 4 heads, 256 neurons.
    const norm = 2 * 128;
    const [attention, feed_forward] = [4 * 128 * 128 + 4 * 128, 2 * 128 * 256 + 256 + 128];
    const total = 1200 * 128 + 2 * (attention + feed_forward + 2 * norm) + norm + 2 * (2 * attention + feed_forward + 3 * norm) + norm;
    const stack = described({ ...published[0].encoder, layers: 2, heads: 4, key_value_heads: 4, head_size: 32, channels: 128, feed_forward: 256, vocabulary: 1200, context: 128 });
    expect(total).toBe(816640); // of the numbers in its file
    const model = modelOf('small', stack, stack, total)!;
    expect(model).toMatchObject({ shared_embedding: true, encoder: { final_norm: true, cross_attention: false }, decoder: { final_norm: true, unembedding: 'tied', cross_attention: true } });
    expect(summed(model)).toMatchObject({ total, norms: 12 * norm, stacks: [[2 * 4 * 128 * 128, 0, 4 * 128 * 256], [2 * 4 * 128 * 128, 2 * 4 * 128 * 128, 4 * 128 * 256]] });
  });

  it('is not counted by part where its description contradicts its number of parameters', () => {
    const [encoder, decoder] = [published[0].encoder, published[0].decoder!].map(described);
    for (const wrong of [63082496 + 1, 63082496 - 6 * 512 * 512, 0]) expect(modelOf('one', encoder, decoder, wrong)).toBeNull();
  });
});
