import { beforeEach, expect, it, vi } from 'vitest';
import { llama } from '../../lib/families';
import { describedBy, shapeOf } from '../count/shape';
import { layOut } from './scene';
import { find } from './find';

const api = vi.hoisted(() => ({ weights: vi.fn(), tokenEmbedding: vi.fn(), derivation: vi.fn() }));
vi.mock('../../lib/api', () => ({ api }));
vi.mock('../../lib/state.svelte', () => ({ current: { keep: (_: string, ask: (id: string) => unknown) => ask('trace') } }));
const { Store } = await import('./store');

const shape = shapeOf({ n_layer: 2, n_head: 3, n_embd: 12, n_inner: 48, vocab_size: 50, n_positions: 16, tie_word_embeddings: true });
const scene = layOut({ shape, architecture: describedBy(shape), tokens: 2, candidates: 3, chosen: 1 }, { columns: 2, stacked: false }, []);
const setting = { shape, tied: true, tokens: [], first: 0, count: 2, position: 1, candidates: [7, 5, 9] };
const everything = { top: 0, left: 0, bottom: 1000, right: 1000 };

/** Draws until nothing is asked any more. */
async function settled(draw: () => void) {
  for (let round = 0; round < 5; ++round) {
    draw();
    await new Promise((resolve) => setTimeout(resolve));
  }
}

beforeEach(() => {
  for (const ask of Object.values(api)) ask.mockReset();
  api.weights.mockImplementation(async (_layer: number, _role: string, { rows, columns }: Record<string, string>) => {
    const [[top, bottom], [left, right]] = [rows, columns].map((range) => range.split('-').map(Number));
    const across = right - left + 1;
    return { shape: [], data: Float32Array.from({ length: (bottom - top + 1) * across }, (_, index) => 1000 * (top + Math.floor(index / across)) + left + (index % across)) };
  });
});

for (const [path, role, head] of [['b1/attention/h2/wq', 'attention.query', 2], ['b1/attention/h0/wo', 'attention.output', 0], ['b0/attention/out/wo', 'attention.output', undefined], ['b0/mlp/up', 'feed_forward.up', undefined], ['b1/mlp/down', 'feed_forward.down', undefined]] as const) {
  it(`loads ${path} as it is drawn, in one answer`, async () => {
    const store = new Store(setting, new Map(), () => {});
    const { part, path: keys } = find(scene, path.split('/'));
    const visible = { ...everything, bottom: part.rows, right: part.columns };
    await settled(() => {
      store.begin(false);
      store.weights(part, keys, visible);
      store.end();
    });
    expect(api.weights.mock.calls).toEqual([[Number(path[1]), role, { head, rows: `0-${part.rows - 1}`, columns: `0-${part.columns - 1}` }]]);
    expect(store.read(part, keys, { row: 2, column: 3 })).toBe(2003);
    expect(store.numbers(part, keys)!.filled).toBe(part.rows * part.columns);
  });
}

it('loads a shared key matrix once, under the head that has it', async () => {
  const grouped = shapeOf({ layers: 2, heads: 4, head_size: 3, channels: 12, feed_forward: 8, vocabulary: 50, context: 16 }, llama);
  const picture = layOut({ shape: grouped, architecture: llama, tokens: 2, candidates: 3, chosen: 1 }, { columns: 2, stacked: false }, []);
  const store = new Store({ ...setting, shape: grouped }, new Map(), () => {});
  await settled(() => {
    store.begin(false);
    for (const path of ['b0/attention/h2/wk', 'b0/attention/h3/wk', 'b0/attention/h3/wq', 'b0/mlp/gate']) {
      const { part, path: keys } = find(picture, path.split('/'));
      store.weights(part, keys, { ...everything, bottom: part.rows, right: part.columns });
    }
    store.end();
  });
  expect(api.weights.mock.calls.map(([, role, { head }]) => [role, head])).toEqual([['attention.key', 1], ['attention.query', 3], ['feed_forward.gate', undefined]]);
});

it('reads a tied unembedding from the token embedding, one row for each candidate', async () => {
  api.tokenEmbedding.mockImplementation(async (id: string) => ({ shape: [1, 12], data: new Float32Array(12).fill(Number(id)) }));
  const store = new Store(setting, new Map(), () => {});
  const { part, path } = find(scene, ['exit', 'unembedding']);
  await settled(() => {
    store.begin(false);
    store.weights(part, path, everything);
    store.end();
  });
  expect(api.tokenEmbedding).toHaveBeenCalledTimes(3);
  expect([0, 1, 2].map((row) => store.read(part, path, { row, column: 4 }))).toEqual(setting.candidates);
});

it('asks for one matrix at a time while the camera moves, and not again for one that failed', async () => {
  api.weights.mockRejectedValue(new Error('no such route'));
  const store = new Store(setting, new Map(), () => {});
  const [up, down] = ['up', 'down'].map((key) => find(scene, ['b0', 'mlp', key]));
  const draw = (moving: boolean) => {
    store.begin(moving);
    for (const { part, path } of [up, down]) store.weights(part, path, { ...everything, bottom: part.rows, right: part.columns });
    store.end();
  };
  draw(true);
  expect(api.weights).toHaveBeenCalledTimes(1);
  await settled(() => draw(false));
  expect(api.weights).toHaveBeenCalledTimes(2);
  expect([up, down].map(({ part, path }) => store.hasFailed(part, path))).toEqual([true, true]);
  expect(store.read(up.part, up.path, { row: 0, column: 0 })).toBeNull();
});
