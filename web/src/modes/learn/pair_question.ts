// The question of the chapter on two texts, measured on the translator at hand.

import { api } from '../../lib/api';
import type { PairMeta, TranslatorCard } from '../../lib/pair_types';
import { percent, tokenWord } from '../../lib/numbers';
import { isClear, weightMargin, type Question } from './questions';
import { clearestHead, exampleWord, firstExample, largest } from './two_texts';

const mostTried = 6; // words of the target
const mostChoices = 4;
/** Replacing the right word moves the decoder's vector this many times as far as replacing another choice. */
const influenceMargin = 2;

/** The target as it is read, without the tokens that begin and end it. */
export function sentenceOf({ target }: Pick<PairMeta, 'target'>): string {
  return target.tokens.map(({ text }) => text).filter((text) => !/^<\/?s>$/.test(text)).join('').trim();
}

/** Which source word has the largest weight where cross-attention writes a word of the target; asked only where its replacement moves the decoder clearly most, too. */
export async function aboutPair(translator: TranslatorCard): Promise<Question | null> {
  const example = firstExample(translator);
  const pair = await api.makePair({ source: example.source, ...(example.target && { target: example.target }) });
  const { layer, head } = typeof example.layer === 'number' && typeof example.head === 'number' ? { layer: example.layer, head: example.head } : clearestHead('cross', await api.siteHeads(pair.id, 'cross'));
  const { data, shape } = await api.attentionAt(pair.id, 'cross', layer, head, { unit: 'words', row: 'written' });
  const { words } = pair.source;
  const usual = exampleWord(example, pair.target.words);
  const order = [usual, ...pair.target.words.map((_, index) => index).filter((index) => index !== usual && index > 0)].slice(0, mostTried);
  for (const word of order) {
    const row = data.subarray(word * shape[1], (word + 1) * shape[1]);
    if (!isClear(row, weightMargin)) continue;
    const ranked = largest(row, words, mostChoices);
    if (ranked.length < 2) continue;
    const writer = Math.max(0, pair.target.words[word].begin - 1);
    const moved = await Promise.all(ranked.map(async ({ index }) => (await api.influence(pair.id, 'source', words[index].begin)).decoder[writer]));
    if (!isClear(moved, influenceMargin) || moved[0] !== Math.max(...moved)) continue;
    const next = moved.indexOf(Math.max(...moved.slice(1)));
    const choices = [...ranked].sort((a, b) => a.index - b.index);
    const written = tokenWord(pair.target.words[word].text);
    return {
      ask: `The translator turns “${example.source}” into “${sentenceOf(pair)}”. To which word does block ${layer}, head ${head} of cross-attention give the largest weight to write “${written}”?`,
      choices: choices.map(({ word: text }) => ({ text: `“${text}”` })),
      answer: choices.findIndex(({ index }) => index === ranked[0].index),
      because: `It gives “${ranked[0].word}” ${percent(ranked[0].weight)} and “${ranked[1].word}” ${percent(ranked[1].weight)}. It matters, too: with another word in the place of “${ranked[0].word}”, the decoder’s vector moves by ${percent(moved[0])} of its length; in the place of “${ranked[next].word}”, the next one, by ${percent(moved[next])}.`,
    };
  }
  return null;
}
