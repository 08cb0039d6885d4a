import { describe, expect, it } from 'vitest';
import type { HeadStatistics, Intervention, LensCell, ShownEdge } from '../../lib/types';
import { exercises } from './exercises';
import { sentenceOf } from './pair_question';
import { isClear, questions, thirdOf, tried } from './questions';
import { keptOf } from './score.svelte';
import { settledAfter, type World } from './world';

const texts = ['Late', ' one', ' fluffy', ' blue', ' hare'];
const head = (layer: number, index: number, previous: number): HeadStatistics => ({ layer, head: index, previous, entropy: 0, evenness: 0, distance: 0, first: 0, self: 0, duplicate: 0, induction: 0, content_weight: 1 - index / 10, habit: { name: 'back', strength: 0 } });

/** The connection from “hare” to “one”, which decides or not. */
const edge = (decides: boolean): ShownEdge => {
  const change = (text: string, before: number, after: number) => ({ token: { id: 0, text }, before, after });
  return { layer: 2, head: 3, query: 4, key: { begin: 1, end: 2, text: ' one' }, weight: 0.9, cut: 0.5, direct: null, replaced: 0.4, others: { count: 3, cut: 0.01 }, threshold: 1 / 3, decides, word_cut: 0.5, likeliest: change(' soft', 0.6, 0.1), likeliest_without: { ...change(' deep', 0.1, 0.8), token: { id: 1, text: ' deep' } }, gained: [], measured: 9, positions_read: 9 };
};
const lensOf = (...shares: [number, number][]): LensCell[] => shares.map(([own, other]) => {
  const [first, second] = own >= other ? [5, 1] : [1, 5];
  return { tokens: [first, second].map((id) => ({ id, text: ` t${id}` })), probabilities: [Math.max(own, other), Math.min(own, other)], entropy: 1, divergence: 0 };
});

/** A model of one block with three heads, of which each answer is given. */
function world(some: Partial<World> = {}): World {
  const tokens = texts.map((text, id) => ({ id, text }));
  return {
    tokens, words: tokens.map(({ text }, at) => ({ text: text.trim(), begin: at, end: at + 1 })), layers: 3, heads: 3, context: 16, layer: 0, head: 0, position: 4, extra: {},
    row: async () => [0.05, 0.05, 0.8, 0.05, 0.05],
    statistics: async () => [head(0, 0, 0.1), head(0, 1, 0.9), head(0, 2, 0.2)],
    vector: async (point) => (point.includes('mlp') ? [3, 4] : [1, 0]),
    edge: async () => null,
    lens: async () => lensOf([0.1, 0.6], [0.2, 0.5], [0.6, 0.1], [0.7, 0.1]),
    surprises: async () => [0.5, 4, 1, 0.2].map((nats, position) => ({ position, before: texts[position], next: texts[position + 1], nats })),
    tokensOf: async () => [' un', 'be', 'lie'].map((text, id) => ({ id, text })),
    moved: async (changes: Intervention[]) => (changes[0].edges?.[0][1] === 2 ? 0.6 : changes[0].point === 'blocks.0.hook_mlp_out' ? 5 : 0.05),
    vectorsOf: async (_, point, positions) => positions.map((at) => (point === 'hook_embed' ? [1, 1] : [at, 0])),
    ...some,
  };
}
const answerOf = async (chapter: keyof typeof questions, some: Partial<World> = {}) => {
  const question = await questions[chapter]!(world(some));
  return question && { ...question, right: question.choices[question.answer] };
};

describe('questions', () => {
  it('have the answer that was measured', async () => {
    expect((await answerOf('tokens'))!.right).toEqual({ text: '3' });
    expect((await answerOf('embeddings'))!.right).toEqual({ text: 'No, another vector' });
    expect((await answerOf('embeddings', { vectorsOf: async (_, __, positions) => positions.map(() => [1, 1]) }))!.right).toEqual({ text: 'Yes, the same vector' });
    expect((await answerOf('head'))!.right).toEqual({ text: '“fluffy”' });
    expect((await answerOf('head', { edge: async () => edge(true) }))!.right, 'what decides, not what has the largest weight').toEqual({ text: '“one”' });
    expect((await answerOf('mask', { row: async () => [0.2, 0.2, 0.6, 0, 0] }))!.right).toEqual({ text: 'None' });
    expect((await answerOf('mask'))!.right).toEqual({ text: 'All of them' });
    expect((await answerOf('heads'))!.right).toEqual({ layer: 0, head: 1 });
    expect((await answerOf('block'))!.right).toEqual({ text: 'Feed-forward of block 0' });
    expect((await answerOf('depth'))!.right).toEqual({ text: 'In the second third of the blocks' });
    expect((await answerOf('training'))!.right).toEqual({ text: '“fluffy” after “one”' });
  });

  it('are asked only where the answer is clear', async () => {
    expect((await answerOf('head', { edge: async () => edge(false) }))!.ask, 'the question says that it asks for the weight').toMatch(/No single word decides.*largest weight/);
    expect((await answerOf('head', { edge: async (position) => (position === 4 ? null : edge(true)) }))!.right, 'another word that is decided by one').toEqual({ text: '“one”' });
    expect(await answerOf('depth', { lens: async () => lensOf([0.1, 0.6], [0.2, 0.5], [0.6, 0.1], [0.52, 0.48]) }), 'two words are nearly as likely').toBeNull();
    expect(await answerOf('head', { row: async () => [0.1, 0.35, 0.45, 0.05, 0.05] })).toBeNull();
    expect(await answerOf('head', { moved: async () => 0.3 }), 'cutting another edge moves as much').toBeNull();
    expect(await answerOf('head', { moved: async () => 0.001 }), 'no edge matters').toBeNull();
    expect(await answerOf('heads', { statistics: async () => [head(0, 0, 0.5), head(0, 1, 0.51), head(0, 2, 0.49)] })).toBeNull();
    expect(await answerOf('block', { moved: async () => 1 })).toBeNull();
    expect(await answerOf('training', { surprises: async () => [1, 1.2, 0.9].map((nats, position) => ({ position, before: 'a', next: 'b', nats })) })).toBeNull();
    expect(isClear([0, 0], 2)).toBe(false);
    expect(isClear([0.8, 0.4, 0], 2)).toBe(true);
  });

  it('hold the right choice once, and every choice once', async () => {
    for (const [chapter, ask] of Object.entries(questions)) {
      const { choices, answer } = (await ask(world()))!;
      expect(answer, chapter).toBeGreaterThanOrEqual(0);
      expect(answer, chapter).toBeLessThan(choices.length);
      expect(new Set(choices.map((one) => JSON.stringify(one))).size, chapter).toBe(choices.length);
    }
  });

  it('try the chosen word first, then from the end', () => {
    expect(tried(2, 6, 2)).toEqual([2, 5, 4, 3]);
    expect(tried(0, 4, 2)).toEqual([3, 2]);
  });
});

describe('exercises', () => {
  const verdict = async (chapter: keyof typeof exercises, some: Partial<World>) => (await exercises[chapter].check(world(some))).done;

  it('are done or not by what is measured', async () => {
    expect(await verdict('tokens', {})).toBe(false);
    expect(await verdict('tokens', { words: [{ text: 'Ravenwood', begin: 0, end: 3 }] })).toBe(true);
    expect(await verdict('embeddings', {})).toBe(false);
    const twins = [' the', ' hare', ' the'].map((text, at) => ({ id: at % 2, text }));
    expect(await verdict('embeddings', { tokens: twins, position: 2 })).toBe(true);
    expect(await verdict('embeddings', { tokens: twins, position: 1 })).toBe(false);
    expect(await verdict('head', {})).toBe(true);
    expect(await verdict('head', { row: async () => [0, 0, 0.1, 0.9, 0] })).toBe(false);
    expect(await verdict('head', { row: async () => [0.4, 0.2, 0.2, 0.1, 0.1] })).toBe(false);
    expect(await verdict('mask', { row: async () => [0.5, 0.3, 0.2, 0, 0] })).toBe(true);
    expect(await verdict('mask', {})).toBe(false);
    expect(await verdict('heads', {})).toBe(false);
    expect(await verdict('heads', { head: 1 })).toBe(true);
    expect(await verdict('block', {})).toBe(true);
    expect(await verdict('block', { vector: async (point) => (point.includes('attn') ? [9] : [1]) })).toBe(false);
    expect(await verdict('depth', {})).toBe(false);
    expect(await verdict('depth', { layers: 6 })).toBe(true);
    expect(await verdict('training', {})).toBe(false);
    expect(await verdict('training', { tokens: Array.from({ length: 6 }, (_, id) => ({ id, text: 'a' })), surprises: async () => [{ position: 0, before: 'a', next: 'b', nats: 0.3 }] })).toBe(true);
    expect(await verdict('two-texts', { extra: { mask: 'on' } })).toBe(false);
    expect(await verdict('two-texts', { extra: { mask: 'on', to: '2' } })).toBe(true);
  });
});

it('tells the third in which a choice settles only where no near tie decides it', () => {
  expect(thirdOf(lensOf([0.1, 0.6], [0.6, 0.1], [0.6, 0.1], [0.7, 0.1]))).toBe(0);
  expect(thirdOf(lensOf([0.1, 0.6], [0.1, 0.6], [0.1, 0.6], [0.7, 0.1]))).toBe(2);
  expect(thirdOf(lensOf([0.1, 0.6], [0.1, 0.6], [0.48, 0.5], [0.7, 0.1])), 'a tie before the last third').toBeNull();
  expect(thirdOf(lensOf([0.1, 0.6], [0.48, 0.5], [0.6, 0.1], [0.7, 0.1])), 'a tie before the second third').toBeNull();
  expect(thirdOf(lensOf([0.48, 0.5], [0.6, 0.1], [0.6, 0.1], [0.7, 0.1])), 'a tie within the first third').toBe(0);
});

it('writes a translation as it is read', () => {
  const target = { tokens: ['<s>', 'Die', ' Mutter', '.', '</s>'].map((text, id) => ({ id, text })), words: [], is_translation: true };
  expect(sentenceOf({ target })).toBe('Die Mutter.');
});

it('settles where the last choice stays', () => {
  const cells = (...ids: number[]) => ids.map((id) => ({ tokens: [{ id, text: '' }] }));
  expect(settledAfter(cells(1, 2, 3))).toBe(2);
  expect(settledAfter(cells(3, 2, 3, 3))).toBe(2);
  expect(settledAfter(cells(3, 3))).toBe(0);
});

it('reads a score that anything may have written', () => {
  expect(keptOf('{"answers":{"head":true},"solved":{"mask":true,"x":1}}')).toEqual({ answers: { head: true }, solved: { mask: true } });
  for (const odd of [null, 'no', '3', 'null', '{"answers":5}']) expect(keptOf(odd)).toEqual({ answers: {}, solved: {} });
});
