// The question of the chapter on two texts, measured on the translator at hand.

import { api } from '../../lib/api';
import type { TranslatorCard } from '../../lib/pair_types';
import { percent, tokenWord, value } from '../../lib/numbers';
import { isClear, weightMargin, type Question } from './questions';
import { clearestHead, exampleWord, firstExample, largest } from './two_texts';

const mostTried = 6; // words of the target
const mostChoices = 4;

/** What cross-attention reads to write a word of the target: one source word clearly most, whose replacement also moves the decoder most. */
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
    const [most, second] = await Promise.all(ranked.slice(0, 2).map(async ({ index }) => (await api.influence(pair.id, 'source', words[index].begin)).decoder[writer]));
    if (!(most > second)) continue;
    const choices = [...ranked].sort((a, b) => a.index - b.index);
    const written = tokenWord(pair.target.words[word].text);
    return {
      ask: `The translator turns “${example.source}” into “${pair.target.words.map(({ text }) => tokenWord(text)).join(' ')}”. Which word does block ${layer}, head ${head} of cross-attention read most to write “${written}”?`,
      choices: choices.map(({ word: text }) => ({ text: `“${text}”` })),
      answer: choices.findIndex(({ index }) => index === ranked[0].index),
      because: `It gives “${ranked[0].word}” ${percent(ranked[0].weight)} and “${ranked[1].word}” ${percent(ranked[1].weight)}. Another word instead of “${ranked[0].word}” moves the decoder’s vector by ${value(most, 2)} of its length, instead of “${ranked[1].word}” by ${value(second, 2)}.`,
    };
  }
  return null;
}
