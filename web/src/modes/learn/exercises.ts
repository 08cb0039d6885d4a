// The tasks of the chapters, as data: what to do, and how it is checked on the model at hand.
// e2e/exercises.test.mjs solves each of them on the served model.

import { tokenWord, percent, value } from '../../lib/numbers';
import type { ChapterId } from './chapters';
import { averageOf } from './surprise';
import { distanceOf, largestOf, lengthOf, settledAfter, type World } from './world';

export interface Verdict {
  done: boolean;
  /** What was measured, in a sentence. */
  says: string;
}

export interface Exercise {
  /** What to do, in a sentence or two. */
  what: string;
  /** Shown on demand. */
  hint: string;
  check: (world: World) => Promise<Verdict>;
}

const manyTokens = 3;
const clearlyMost = 0.5;
const keysWanted = 3;
const lowLoss = 1; // nats
const fewestTokens = 6;

const plural = (count: number, word: string) => `${count} ${word}${count === 1 ? '' : 's'}`;
const wordAt = ({ tokens }: World, position: number) => tokenWord(tokens[position]?.text ?? '');

export const exercises: Record<ChapterId, Exercise> = {
  tokens: {
    what: `Write a sentence with a word that becomes ${manyTokens} tokens or more.`,
    hint: 'Rare names, long words and spelling mistakes are split: try “cheeseburger”, or your own name.',
    check: async ({ words }) => {
      const longest = words.reduce((most, word) => (word.end - word.begin > most.end - most.begin ? word : most));
      const count = longest.end - longest.begin;
      return { done: count >= manyTokens, says: `“${tokenWord(longest.text)}” is ${plural(count, 'token')}${count < manyTokens ? ', and no word here is more' : ''}.` };
    },
  },
  embeddings: {
    what: 'Take a sentence in which a token occurs twice, and choose that token.',
    hint: 'Write, for example, “The fox saw the hare, and the hare saw the fox”, and choose the last word.',
    check: async (world) => {
      const { tokens, position } = world;
      const twin = tokens.findIndex(({ id }, at) => at !== position && id === tokens[position].id);
      if (twin < 0) return { done: false, says: `“${wordAt(world, position)}” occurs once.` };
      const [one, other, first, second] = await Promise.all([world.vector('hook_embed', twin), world.vector('hook_embed', position), world.vector('blocks.0.hook_resid_pre', twin), world.vector('blocks.0.hook_resid_pre', position)]);
      const entering = distanceOf(first, second);
      return { done: true, says: `“${wordAt(world, position)}” stands at positions ${Math.min(twin, position)} and ${Math.max(twin, position)}. Its two token embeddings are ${value(distanceOf(one, other), 2)} apart; the vectors that enter block 0 are ${value(entering, 2)} apart${entering > 0 ? ', because their positions differ' : ''}.` };
    },
  },
  head: {
    what: 'Choose a head in which the chosen word gives more than half of its weight to a word that is neither itself nor the one just before it.',
    hint: 'Go through the heads of the middle blocks. If none does, choose another word.',
    check: async (world) => {
      const { layer, head, position } = world;
      const row = await world.row(layer, head, position);
      const most = largestOf(row);
      const done = position - most > 1 && row[most] > clearlyMost;
      return { done, says: `Here “${wordAt(world, position)}” attends most to ${most === position ? 'itself' : `“${wordAt(world, most)}”`}, with ${percent(row[most])}.` };
    },
  },
  mask: {
    what: `Choose the word that can look at exactly ${keysWanted} words, itself included.`,
    hint: 'A word sees itself and those before it.',
    check: async (world) => {
      const { layer, head, position } = world;
      const seen = Array.from(await world.row(layer, head, position)).filter((weight) => weight > 0).length;
      return { done: seen === keysWanted, says: `“${wordAt(world, position)}” gives weight to ${plural(seen, 'word')}.` };
    },
  },
  heads: {
    what: 'Find the head that attends most to the previous word, on average over your sentence.',
    hint: 'In its picture the strong spots lie just below the diagonal.',
    check: async ({ layer, head, ...world }) => {
      const statistics = await world.statistics();
      const here = statistics.find((one) => one.layer === layer && one.head === head)!;
      const better = statistics.filter(({ previous }) => previous > here.previous).length;
      return { done: better === 0, says: `This head gives ${percent(here.previous)} of its weight to the previous word; ${better === 0 ? 'no head gives more' : `${plural(better, 'head')} ${better === 1 ? 'gives' : 'give'} more`}.` };
    },
  },
  block: {
    what: 'Find a block in which feed-forward adds a longer vector to the chosen word than attention does.',
    hint: 'Try the first block, and the last one.',
    check: async (world) => {
      const { layer, position } = world;
      const [attention, feedForward] = await Promise.all(['attn', 'mlp'].map(async (half) => lengthOf(await world.vector(`blocks.${layer}.hook_${half}_out`, position))));
      return { done: feedForward > attention, says: `In block ${layer}, attention adds a vector of length ${value(attention, 2)} to “${wordAt(world, position)}”, feed-forward one of ${value(feedForward, 2)}.` };
    },
  },
  depth: {
    what: 'Choose a word after which the model settles early: its final first choice is on top after a third of the blocks, and stays there.',
    hint: 'Look for a word whose next word is nearly certain, inside a fixed phrase.',
    check: async (world) => {
      const after = settledAfter(await world.lens(world.position));
      const early = Math.max(1, Math.floor(world.layers / 3));
      return { done: after <= early, says: `After “${wordAt(world, world.position)}” it settles ${after === 0 ? 'before any block' : `after ${plural(after, 'block')}`} of ${world.layers}${after <= early ? '' : `; ${early} ${early === 1 ? 'is' : 'are'} wanted`}.` };
    },
  },
  training: {
    what: `Write a sentence of at least ${fewestTokens} tokens that surprises the model little: a loss below ${lowLoss} nat.`,
    hint: 'Go on with the words that it expects, or repeat a phrase.',
    check: async (world) => {
      const loss = averageOf(await world.surprises());
      const enough = world.tokens.length >= fewestTokens;
      return { done: enough && loss < lowLoss, says: enough ? `The loss of this sentence is ${value(loss, 2)} nats.` : `This sentence has ${plural(world.tokens.length, 'token')}.` };
    },
  },
  'two-texts': {
    what: 'Choose another word of the translation, then switch the mask on in the encoder.',
    hint: 'The words of the target are buttons, too.',
    check: async ({ extra }) => {
      const [word, mask] = [extra.to !== undefined && extra.to !== '', extra.mask === 'on'];
      return { done: word && mask, says: `${word ? 'Another word is chosen' : 'No other word is chosen yet'}, and the encoder ${mask ? 'has a mask' : 'has no mask'}.` };
    },
  },
};
