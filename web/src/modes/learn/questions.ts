// Predict, then see: a question for each chapter, whose answer is measured on the model at hand. Only questions with a
// clear answer are asked: null where this sentence has none.

import { percent, tokenWord, value } from '../../lib/numbers';
import { sortHeads } from '../../lib/statistics';
import type { Intervention, LensCell, ShownEdge } from '../../lib/types';
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
  /** The head that it is about. */
  shows?: { layer: number; head: number };
}

/** The largest weight is this many times the second. */
export const weightMargin = 2;
/** Cutting the right edge moves the prediction this many times as far as cutting the second one, and by this much. */
const effectMargin = 3;
const leastEffect = 0.01; // nats of KL divergence
/** A part's ablation moves the prediction this many times as far as the next one's. */
const ablationMargin = 2;
/** A first choice is clear where its probability is this many times the second one's. */
const settledMargin = 1.25;
const surpriseMargin = 1; // nats
const previousMargin = 1.5;
const mostTried = 4; // words or heads that are tried for a clear question
const mostLenses = 12; // words of which the lens is read
const mostChoices = 4;

const isWord = (text: string) => /\p{L}/u.test(text);
const wordAt = ({ tokens }: World, position: number) => tokenWord(tokens[position]?.text ?? '');
const said = (text: string): Choice => ({ text });

/** Whether the largest number beats all others by a factor. */
export function isClear(numbers: ArrayLike<number>, factor: number): boolean {
  const [first, second = 0] = Array.from(numbers).sort((a, b) => b - a);
  return first > 0 && first >= factor * second;
}

/** Positions to ask about: the chosen one, then those before it from the end of the text. */
export function tried(chosen: number, length: number, least: number, most = mostTried): number[] {
  const others = Array.from({ length }, (_, index) => length - 1 - index).filter((position) => position !== chosen);
  return [chosen, ...others].filter((position) => position >= least).slice(0, most);
}

const oddWords = ['unbelievably', 'counterrevolutionary', 'xylophone'];

/** The choices reach from one token to one for each letter. */
async function aboutTokens(world: World): Promise<Question | null> {
  for (const word of oddWords) {
    const tokens = await world.tokensOf(` ${word}`);
    const count = tokens.length;
    if (count < 2) continue;
    const counts = [...new Set([1, count, Math.max(2, Math.round(count / 2)), word.length])].sort((a, b) => a - b);
    return {
      ask: `Into how many tokens does this model split “${word}”, a word of ${word.length} letters?`,
      choices: counts.map((one) => said(one === 1 ? '1: it knows the word' : one === word.length && one !== count ? `${one}: letter by letter` : String(one))),
      answer: counts.indexOf(count),
      because: `It becomes ${count} tokens: ${tokens.map(({ text }) => `“${tokenWord(text)}”`).join(', ')}. The whole word is not in its vocabulary.`,
    };
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
    ask: `If “${wordAt(world, position)}” stood a second time at the end, would it enter the model there as the same vector?`,
    choices: [said('Yes, the same vector'), said('No, another vector')],
    answer: apart > 0 ? 1 : 0,
    because: `The two token embeddings are ${value(distanceOf(one, other), 2)} apart, and the two vectors that enter the model are ${value(apart, 2)} apart: ${apart > 0 ? 'the position is added.' : 'in this model positions come in later.'}`,
  };
}

const timesOf = ({ begin, end }: { begin: number; end: number }, { words }: World) => {
  const text = (one: { text: string }) => one.text.trim();
  const own = words.find((one) => one.begin === begin && one.end === end);
  return own ? words.filter((one) => text(one) === text(own)).length : 1;
};

/** The word whose connection decides the prediction, by the server's rule: without it the likeliest token loses half of its probability, and three times as much changes as without another one. */
function aboutEdge(world: World, edge: ShownEdge): Question | null {
  const { layer, head, query, key, weight, likeliest, likeliest_without: instead, others } = edge;
  const before = world.words.filter(({ text, end }) => end <= query && isWord(text));
  const right = before.findIndex(({ begin, end }) => begin === key.begin && end === key.end);
  if (right < 0 || before.length < 2) return null;
  // The right word among its neighbours: those after it first.
  const nearby = before.map((_, index) => index).sort((a, b) => Math.abs(a - right) - Math.abs(b - right) || b - a).slice(0, mostChoices).sort((a, b) => a - b);
  const word = wordAt(world, query);
  const fell = `“${tokenWord(likeliest.token.text)}” falls from ${percent(likeliest.before)} to ${percent(likeliest.after)}`;
  const gained = instead.token.id === likeliest.token.id ? '' : `, and “${tokenWord(instead.token.text)}” comes first with ${percent(instead.after)}`;
  const control = others.cut === null ? '' : ` Cutting the connection to another word changes ${percent(others.cut)} of the probabilities on average, this one ${percent(edge.cut)}.`;
  return {
    shows: { layer, head },
    ask: `One word decides what comes after “${word}”. Which one does block ${layer}, head ${head} look at for it?`,
    choices: nearby.map((index) => said(`“${tokenWord(before[index].text)}”${timesOf(before[index], world) > 1 ? `, position ${before[index].begin}` : ''}`)),
    answer: nearby.indexOf(right),
    because: `L${layer}H${head} gives “${tokenWord(key.text)}” ${percent(weight)} of the weight of “${word}”. With this one connection cut, ${fell}${gained}.${control}`,
  };
}

/** Where no single word decides: a word and a head where one key has most of the weight, which the question says. */
async function aboutWeight(world: World): Promise<Question | null> {
  const statistics = sortHeads(await world.statistics(), 'content_weight');
  const heads = [{ layer: world.layer, head: world.head }, ...statistics.filter(({ layer, head }) => layer !== world.layer || head !== world.head)].slice(0, mostTried);
  for (const position of tried(world.position, world.tokens.length, 2)) {
    if ((await world.edge(position))?.decides) continue;
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
        ask: `No single word decides what comes after “${wordAt(world, position)}”. To which one does block ${layer}, head ${head} give the largest weight?`,
        choices: candidates.map((at) => said(at === position ? `“${wordAt(world, at)}” itself` : `“${wordAt(world, at)}”${world.tokens.filter(({ id }) => id === world.tokens[at].id).length > 1 ? `, position ${at}` : ''}`)),
        answer: candidates.indexOf(key),
        because: `It gives “${wordAt(world, key)}” ${percent(row[key])} of its weight, “${wordAt(world, second)}” ${percent(row[second])}. Without the first connection the prediction moves by ${value(most, 3)} nats, without the second by ${value(next, 3)}.`,
      };
    }
  }
  return null;
}

async function aboutHead(world: World): Promise<Question | null> {
  for (const position of tried(world.position, world.tokens.length, 2)) {
    const edge = await world.edge(position);
    const question = edge?.decides ? aboutEdge(world, edge) : null;
    if (question) return question;
  }
  return aboutWeight(world);
}

async function aboutMask(world: World): Promise<Question | null> {
  const length = world.tokens.length;
  if (length < 3) return null;
  // The word nearest to the middle, with words on both sides.
  const middle = (length - 1) / 2;
  const position = Array.from({ length: length - 2 }, (_, index) => index + 1).sort((a, b) => Number(isWord(world.tokens[b].text)) - Number(isWord(world.tokens[a].text)) || Math.abs(a - middle) - Math.abs(b - middle) || a - b)[0];
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
    because: `The share of their weight on the previous word, on average over your sentence: ${choices.map(({ layer, head, previous }) => `L${layer}H${head} ${percent(previous)}`).join('; ')}.`,
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
    ask: `Suppose that one of these parts is switched off for all words. Which one changes the prediction after “${wordAt(world, position)}” most?`,
    choices: choices.map(({ name }) => said(`${name[0].toUpperCase()}${name.slice(1)}`)),
    answer: choices.indexOf(most),
    because: `The prediction moves by ${choices.map(({ name, moved }) => `${value(moved, 2)} nats without ${name}`).join(', ')}.`,
  };
}

/** The third of the blocks in which the final first choice comes to stay; null where it depends on choices that are nearly equal. */
export function thirdOf(cells: LensCell[]): 0 | 1 | 2 | null {
  const layers = cells.length - 1;
  const final = cells.at(-1)!.tokens[0].id;
  const [first, second] = [1, 2].map((third) => Math.round((third * layers) / 3));
  const third = (after: number) => (after > second ? 2 : after > first ? 1 : 0);
  const share = ({ tokens, probabilities }: LensCell) => probabilities[tokens.findIndex(({ id }) => id === final)] ?? 0;
  const rival = ({ tokens, probabilities }: LensCell) => probabilities[tokens.findIndex(({ id }) => id !== final)] ?? 0;
  /** As settledAfter, where the final choice has to beat the other by a factor. */
  const settled = (factor: number) => {
    let after = layers + 1;
    while (after > 0 && share(cells[after - 1]) > 0 && share(cells[after - 1]) >= factor * rival(cells[after - 1])) after -= 1;
    return after;
  };
  const [strict, lenient] = [settled(settledMargin), settled(1 / settledMargin)];
  return strict <= layers && third(strict) === third(lenient) ? third(strict) : null;
}

async function aboutDepth(world: World): Promise<Question | null> {
  for (const position of tried(world.position, world.tokens.length, 0, mostLenses)) {
    const cells = await world.lens(position);
    const answer = thirdOf(cells);
    if (answer === null) continue;
    const last = tokenWord(cells.at(-1)!.tokens[0].text);
    const after = settledAfter(cells);
    return {
      ask: `When does the model settle on “${last}” as the likeliest word after “${wordAt(world, position)}”?`,
      choices: ['first', 'second', 'last'].map((name) => said(`In the ${name} third of the blocks`)),
      answer,
      because: `Asked before the first block and then after each one, its first choice was ${cells.map(({ tokens: [{ text }] }) => `“${tokenWord(text)}”`).join(', ')}: it stays with “${last}” ${after === 0 ? 'from the start' : `from block ${after - 1} on`}.`,
    };
  }
  return null;
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
