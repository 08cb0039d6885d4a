// What the paths to a word say of it.

import { percent } from '../../lib/numbers';
import type { CausePath, WordCauses } from '../../lib/types';

const numerals = ['no', 'one', 'two', 'three'];

/** The probabilities that the controls of a path leave. */
export function controlRange({ controls }: CausePath): { least: number; most: number } {
  return { least: Math.min(...controls), most: Math.max(...controls) };
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
