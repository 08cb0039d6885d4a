// The chapter on encoder and decoder, and what its live view says of a translator's numbers.

import { exactCount, tokenWord } from '../../lib/numbers';
import { noTranslator, opening } from '../../lib/translator';
import type { PairHeadStatistics, Site, PairMeta, TranslatorCard, TranslatorExample } from '../../lib/pair_types';
import type { Word } from '../../lib/types';
import type { Chapter } from './chapters';

function shownTranslator(translator: TranslatorCard | null | undefined): string[] {
  if (translator === undefined) return [];
  if (translator === null) return [`${noTranslator}, so there are no numbers to show beside this chapter.`];
  const { name, encoder, decoder, languages } = translator;
  const direction = languages?.length === 2 ? ` from ${languages[0]} to ${languages[1]}` : '';
  const blocks = ({ layers, heads }: { layers: number; heads: number }) => `${exactCount(layers)} ${layers === 1 ? 'block' : 'blocks'} of ${exactCount(heads)} ${heads === 1 ? 'head' : 'heads'}`;
  return [`The numbers beside this are those of “${name}”, a translator${direction}: an encoder of ${blocks(encoder)} and a decoder of ${blocks(decoder)}.`];
}

export function twoTexts(translator: TranslatorCard | null | undefined): Chapter {
  return {
    id: 'two-texts',
    title: 'Two texts: encoder, decoder and cross-attention',
    plain: [
      'A model can also read one text, the source, and write another, the target, as in translation. The first transformer (Vaswani and others, 2017) was made for that. It has two stacks of six blocks: an *encoder* reads the source, a *decoder* writes the target.',
      'The encoder has no *mask*. The whole source is known from the start, so each of its words may attend to all others, before and after it: a later word changes the vectors of earlier ones too.',
      'The decoder works like the model of the other chapters: each word attends to itself and to those before it, and the last vector predicts the next word. Between attention and feed-forward, every block of it has *cross-attention*. Its queries come from the target, its keys and values from the encoder’s result. It needs no mask, because the whole source is already there.',
      'The source stays the same while the target is written. So the encoder runs once, and the keys and values of cross-attention are computed once; each new word brings only new queries to them.',
      'In the first transformer, what a part computes is added and then the sum goes through a norm: *add & norm* (post-norm). In GPT-2 and most models since, the norm stands before each part, and its output is added as it is (pre-norm).',
      ...shownTranslator(translator),
    ].map((text) => ({ text })),
    formula: [
      { latex: '\\begin{aligned} Q &= Y W_Q,\\quad K = M W_K,\\quad V = M W_V\\\\ Z &= \\operatorname{softmax}\\!\\Big(\\frac{Q K^{\\top}}{\\sqrt{D}}\\Big)\\,V \\end{aligned}', says: 'cross-attention: Y is the stream of the target, M the encoder’s result; a row for each word of the target, a column for each of the source' },
      { latex: 'p(y_{t+1}\\mid y_1\\dots y_t;\\;x_1\\dots x_S)', says: 'the next word, given the target so far and the whole source' },
      { latex: '\\begin{aligned} \\text{post-norm:}\\quad x &\\leftarrow \\operatorname{norm}\\big(x+f(x)\\big)\\\\ \\text{pre-norm:}\\quad x &\\leftarrow x+f\\big(\\operatorname{norm}(x)\\big) \\end{aligned}', says: 'f is attention, cross-attention or feed-forward' },
    ],
    exact: 'The base model of 2017 has 512 channels, 8 heads of 64 and 2,048 neurons with ReLU in each block, fixed sines and cosines for positions, and one table for the embeddings of both texts and the output; the big one has 1,024 channels, 16 heads and 4,096 neurons. BERT is an encoder alone, trained to fill in masked words; GPT is a decoder alone. Post-norm puts a norm on the residual path after every part, and training then usually needs a slow start of the learning rate; pre-norm leaves that path free up to the final norm.',
  };
}

export function firstExample({ examples }: TranslatorCard): TranslatorExample {
  return examples?.[0] ?? opening;
}

/** The word of the target that the example is about: by index or by its text; the first one after the start otherwise. */
export function exampleWord({ target_word }: TranslatorExample, words: Word[]): number {
  const named = typeof target_word === 'string' ? words.findIndex(({ text }) => text === target_word) : (target_word ?? -1);
  return named >= 0 && named < words.length ? named : Math.min(1, words.length - 1);
}

/** The largest weights of a row, with the words that have them. */
export function largest(row: ArrayLike<number>, words: Word[], most: number): { word: string; index: number; weight: number }[] {
  return words
    .map(({ text }, index) => ({ word: tokenWord(text), index, weight: row[index] ?? 0 }))
    .filter(({ weight }) => weight > 0)
    .sort((one, other) => other.weight - one.weight || one.index - other.index)
    .slice(0, most);
}

/** The weights of words after the given one, which a mask would hide. */
export function weightAfter(row: ArrayLike<number>, word: number): number {
  return Array.from(row).slice(word + 1).reduce((sum, weight) => sum + weight, 0);
}

/** How many vectors before a position changed at all. */
export function changedBefore(changes: number[], position: number): number {
  return changes.slice(0, position).filter((change) => change !== 0).length;
}

/** The same two texts, for a pair with interventions. */
export function sameTexts({ source, target }: PairMeta): { source_tokens: number[]; target_tokens: number[] } {
  return { source_tokens: source.tokens.map(({ id }) => id), target_tokens: target.tokens.map(({ id }) => id) };
}

/** The head that does most of what its kind is known for, and in words why it is the one. */
export function clearestHead(kind: Site, heads: PairHeadStatistics[]): { layer: number; head: number; why: string } {
  const [measure, what] = ({ encoder: ['next', 'attends most to the next token'], decoder: ['previous', 'attends most to the token before'], cross: ['largest', 'has the sharpest rows'] } as const)[kind];
  const best = heads.reduce((most, one) => ((one[measure] ?? 0) > (most[measure] ?? 0) ? one : most));
  return { layer: best.layer, head: best.head, why: `Of all heads of this kind, this one ${what}, on average over the text.` };
}
