// What the paths to a word say of it.

import { exactCount, percent, tokenWord } from '../../lib/numbers';
import type { CauseFeature, CausePath, WordCauses } from '../../lib/types';

const numerals = ['no', 'one', 'two', 'three'];

/** The probabilities that the controls of a path leave. */
export function controlRange({ controls }: CausePath): { least: number; most: number } {
  return { least: Math.min(...controls), most: Math.max(...controls) };
}

const quoted = (words: string[]) => words.map((word) => `“${word}”`).join(', ');

/** The words of a feature: those of its strongest contexts. */
export function wordsOf({ words }: CauseFeature): string[] {
  return [...new Set(words.map(({ token }) => tokenWord(token.text)))];
}

/** What stands between the word and the prediction, in plain words. */
export function nameOf({ neurons, features, layer }: CausePath): string {
  if (features.length === 0) return `${exactCount(neurons.length)} ${neurons.length === 1 ? 'neuron' : 'neurons'} of block ${layer}`;
  const count = features.length;
  const first = features.find(({ words }) => words.length > 0);
  const all = first ? wordsOf(first) : [];
  const words = first ? `: ${quoted(all.slice(0, 2))}${count > 1 || all.length > 2 ? ', …' : ''}` : '';
  return `${exactCount(count)} ${count === 1 ? 'feature' : 'features'} of block ${layer}${words}`;
}

/** What a feature answers to, and how sure that is. */
export function about({ words, of }: CauseFeature): string {
  if (of === 0) return 'nowhere active in the stories that were searched';
  const counts = words.slice(0, 3).map(({ token, contexts }, index) => `“${tokenWord(token.text)}” (${contexts}${index === 0 ? ` of ${of}` : ''})`);
  return `strongest at ${counts.join(', ')}${words.length > 3 ? ', …' : ''}`;
}

/** The strongest context of a feature: the words before, and the one where it is. */
export function contextOf({ context }: CauseFeature): { before: string; peak: string } {
  const before = context.slice(0, -1).map(({ text }) => text).join('');
  const peak = context.at(-1)?.text ?? '';
  return { before: `${before}${peak.startsWith(' ') ? ' ' : ''}`.replace(/\s+/g, ' ').replace(/^[ .,;:!?”’]+/, ''), peak: tokenWord(peak) };
}

export function verdict({ paths, probability }: WordCauses, word: string): string {
  const predicted = `“${word}” is predicted with ${percent(probability)}.`;
  const causes = paths.filter(({ cause }) => cause);
  if (causes.length === 0) return `${predicted} No single path decides it: switched off, none of the strongest takes more of it than its controls change.`;
  const all = causes.length === paths.length;
  if (all && causes.length === 1) return `${predicted} The strongest path to it is a cause, as switching it off shows:`;
  if (all) return `${predicted} The ${numerals[causes.length] ?? causes.length} strongest paths to it are causes, as switching each off shows:`;
  return `${predicted} ${causes.length === 1 ? 'One' : 'Two'} of the strongest paths to it ${causes.length === 1 ? 'is a cause' : 'are causes'}, as switching each off shows:`;
}
