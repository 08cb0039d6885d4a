// Predict, then see: a question for each chapter, whose answer is measured on the model at hand. Only questions with a
// clear answer are asked: null where this sentence has none.

import { percent, tokenWord, value } from '../../lib/numbers';
import { sortHeads } from '../../lib/statistics';
import type { Intervention } from '../../lib/types';
import type { ChapterId } from './chapters';
import { distanceOf, largestOf, settledAfter, type World } from './world';

/** A word of the text, a head, or a phrase. */
export type Choice = { text: string } | { layer: number; head: number };

export interface Question {
  ask: string;
  choices: Choice[];
  /** Index of the right choice. */
  answer: number;
  /** What was measured. */
  because: string;
}

/** The largest weight is this many times the second. */
export const weightMargin = 2;
/** Cutting the right edge moves the prediction this many times as far as cutting the second one, and by this much. */
const effectMargin = 3;
const leastEffect = 0.01; // nats of KL divergence
/** A part's ablation moves the prediction this many times as far as the next one's. */
const ablationMargin = 2;
const surpriseMargin = 1; // nats
const previousMargin = 1.5;
const mostTried = 4; // words or heads that are tried for a clear question
const mostChoices = 4;

const wordAt = ({ tokens }: World, position: number) => tokenWord(tokens[position]?.text ?? '');
const said = (text: string): Choice => ({ text });

/** Whether the largest number beats all others by a factor. */
export function isClear(numbers: ArrayLike<number>, factor: number): boolean {
  const [first, second = 0] = Array.from(numbers).sort((a, b) => b - a);
  return first > 0 && first >= factor * second;
}

/** Positions to ask about: the chosen one, then those before it from the end of the text. */
export function tried(chosen: number, length: number, least: number): number[] {
  const others = Array.from({ length }, (_, index) => length - 1 - index).filter((position) => position !== chosen);
  return [chosen, ...others].filter((position) => position >= least).slice(0, mostTried);
}

const oddWords = ['unbelievably', 'counterrevolutionary', 'xylophone'];

async function aboutTokens(world: World): Promise<Question | null> {
  for (const word of oddWords) {
    const count = (await world.tokensOf(` ${word}`)).length;
    if (count < 2) continue;
    const least = Math.max(1, count - (count % mostChoices));
    const counts = Array.from({ length: mostChoices }, (_, index) => least + index);
    return { ask: `Into how many tokens does this model split “${word}”?`, choices: counts.map((one) => said(String(one))), answer: counts.indexOf(count), because: `It becomes ${count} tokens: ${(await world.tokensOf(` ${word}`)).map(({ text }) => `“${tokenWord(text)}”`).join(', ')}.` };
  }
  return null;
}

async function aboutEmbeddings(world: World): Promise<Question | null> {
  const { position, tokens } = world;
  // The text up to the word, and the word again; without the first token where the context is full.
  const ids = tokens.map(({ id }) => id);
  const twice = [...ids.slice(ids.length === world.context ? 1 : 0), ids[position]];
  const at = twice.length - 1 - (ids.length - position);
  const last = twice.length - 1;
  if (at < 0) return null;
  const [[one, other], [before, after]] = await Promise.all([world.vectorsOf(twice, 'hook_embed', [at, last]), world.vectorsOf(twice, 'blocks.0.hook_resid_pre', [at, last])]);
  const apart = distanceOf(before, after);
  return {
    ask: `If “${wordAt(world, position)}” stood a second time at the end, would the same vector enter the first block there?`,
    choices: [said('Yes, the same vector'), said('No, another vector')],
    answer: apart > 0 ? 1 : 0,
    because: `The two token embeddings are ${value(distanceOf(one, other), 2)} apart, and the two vectors that enter block 0 are ${value(apart, 2)} apart: ${apart > 0 ? 'the position is added.' : 'positions enter later.'}`,
  };
}

/** A word and a head where one key has most of the weight and cutting that edge matters most. */
async function aboutHead(world: World): Promise<Question | null> {
  const statistics = sortHeads(await world.statistics(), 'content_weight');
  const heads = [{ layer: world.layer, head: world.head }, ...statistics.filter(({ layer, head }) => layer !== world.layer || head !== world.head)].slice(0, mostTried);
  for (const position of tried(world.position, world.tokens.length, 2)) {
    for (const { layer, head } of heads) {
      const row = await world.row(layer, head, position);
      if (!isClear(row, weightMargin)) continue;
      const key = largestOf(row);
      const second = largestOf(Array.from(row, (weight, at) => (at === key || at > position ? -1 : weight)));
      const cut = (to: number): Intervention => ({ kind: 'cut', layer, head, edges: [[position, to]], renormalise: true });
      const [most, next] = await Promise.all([key, second].map((to) => world.moved([cut(to)], position)));
      if (key === position || most < leastEffect || most < effectMargin * next) continue;
      const candidates = [...new Set([key, second, position, 0, position - 1, ...Array.from({ length: position }, (_, at) => at)])].slice(0, mostChoices).sort((a, b) => a - b);
      return {
        ask: `In block ${layer}, head ${head}, which word will “${wordAt(world, position)}” look at most?`,
        choices: candidates.map((at) => said(at === position ? `“${wordAt(world, at)}” itself` : `“${wordAt(world, at)}”${world.tokens.filter(({ id }) => id === world.tokens[at].id).length > 1 ? `, position ${at}` : ''}`)),
        answer: candidates.indexOf(key),
        because: `It gives “${wordAt(world, key)}” ${percent(row[key])} of its weight, “${wordAt(world, second)}” ${percent(row[second])}. It matters, too: without that one connection the prediction moves by ${value(most, 3)} nats, without the second one by ${value(next, 3)}.`,
      };
    }
  }
  return null;
}

async function aboutMask(world: World): Promise<Question | null> {
  const length = world.tokens.length;
  if (length < 3) return null;
  const position = Math.floor((length - 1) / 2);
  const row = Array.from(await world.row(world.layer, world.head, position));
  const after = row.slice(position + 1).filter((weight) => weight !== 0).length;
  const before = row.slice(0, position).filter((weight) => weight !== 0).length;
  return {
    ask: `How many of the ${length - 1 - position} words after “${wordAt(world, position)}” can it look at?`,
    choices: [said('All of them'), said('Only the next one'), said('None')],
    answer: after === 0 ? 2 : after === 1 ? 1 : 0,
    because: `Measured: ${after === 0 ? 'none' : after} of them ${after === 1 ? 'has' : 'have'} any weight, but ${before} of the ${position} before it ${before === 1 ? 'has' : 'have'}.`,
  };
}

async function aboutHeads(world: World): Promise<Question | null> {
  const ranked = sortHeads(await world.statistics(), 'previous');
  const [best] = ranked;
  const others = ranked.filter(({ previous }) => best.previous >= previousMargin * previous).slice(0, mostChoices - 1);
  if (others.length < 2) return null;
  const choices = [best, ...others].sort((a, b) => a.layer - b.layer || a.head - b.head);
  return {
    ask: 'Look at their pictures: which of these heads attends most to the previous word?',
    choices: choices.map(({ layer, head }) => ({ layer, head })),
    answer: choices.indexOf(best),
    because: `On average, ${choices.map(({ layer, head, previous }) => `L${layer}H${head} gives ${percent(previous)}`).join(', ')} of its weight to the previous word.`,
  };
}

async function aboutBlock(world: World): Promise<Question | null> {
  const { layers, position } = world;
  const blocks = [...new Set([0, Math.floor(layers / 2), layers - 1])];
  const parts = blocks.flatMap((layer) => [{ point: `blocks.${layer}.hook_attn_out`, name: `attention of block ${layer}` }, { point: `blocks.${layer}.hook_mlp_out`, name: `feed-forward of block ${layer}` }]);
  const measured = await Promise.all(parts.map(async (part, order) => ({ ...part, order, moved: await world.moved([{ kind: 'ablate', point: part.point }], position) })));
  const ranked = [...measured].sort((a, b) => b.moved - a.moved);
  const [most] = ranked;
  const others = ranked.filter(({ moved }) => most.moved >= ablationMargin * moved).slice(0, mostChoices - 1);
  if (others.length < 2 || most.moved < leastEffect) return null;
  const choices = [most, ...others].sort((a, b) => a.order - b.order);
  return {
    ask: `One part is switched off for all words. Which of these changes the prediction after “${wordAt(world, position)}” most?`,
    choices: choices.map(({ name }) => said(`${name[0].toUpperCase()}${name.slice(1)}`)),
    answer: choices.indexOf(most),
    because: `The prediction moves by ${choices.map(({ name, moved }) => `${value(moved, 2)} nats without ${name}`).join(', ')}.`,
  };
}

async function aboutDepth(world: World): Promise<Question> {
  const cells = await world.lens(world.position);
  const after = settledAfter(cells);
  const thirds = [0, 1, 2].map((third) => Math.round((third * world.layers) / 3));
  const names = ['first', 'second', 'last'].map((name, third) => said(`In the ${name} third of the blocks`));
  const last = cells.at(-1)!;
  return {
    ask: `When does the model settle on “${tokenWord(last.tokens[0].text)}” as the likeliest word after “${wordAt(world, world.position)}”?`,
    choices: names,
    answer: after > thirds[2] ? 2 : after > thirds[1] ? 1 : 0,
    because: `Asked after each block, its first choice was ${cells.map(({ tokens: [{ text }] }) => `“${tokenWord(text)}”`).join(', ')}: it stays with “${tokenWord(last.tokens[0].text)}” from ${after} of ${world.layers} blocks on.`,
  };
}

async function aboutTraining(world: World): Promise<Question | null> {
  const surprises = await world.surprises();
  if (surprises.length < 3) return null;
  const ranked = [...surprises].sort((a, b) => b.nats - a.nats);
  const [most] = ranked;
  const others = ranked.filter(({ nats }) => nats <= most.nats - surpriseMargin).slice(0, mostChoices - 1);
  if (others.length < 2) return null;
  const choices = [most, ...others].sort((a, b) => a.position - b.position);
  return {
    ask: 'Which of these words surprised the model most?',
    choices: choices.map(({ next, before }) => said(`“${tokenWord(next)}” after “${tokenWord(before)}”`)),
    answer: choices.indexOf(most),
    because: `Their surprise: ${choices.map(({ next, nats }) => `“${tokenWord(next)}” ${value(nats, 2)}`).join(', ')} nats.`,
  };
}

export const questions: Partial<Record<ChapterId, (world: World) => Promise<Question | null>>> = {
  tokens: aboutTokens, embeddings: aboutEmbeddings, head: aboutHead, mask: aboutMask, heads: aboutHeads, block: aboutBlock, depth: aboutDepth, training: aboutTraining,
};
