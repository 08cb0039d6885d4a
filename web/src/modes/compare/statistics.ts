// Statistics of a head's attention: their names and formats, and sorting by them.

import type { Habit, HeadStatistics } from '../../lib/types';
import { percent, value } from '../../lib/numbers';

export type StatisticKey = Exclude<keyof HeadStatistics, 'layer' | 'head' | 'habit'>;

export interface StatisticName<Key extends string = StatisticKey> {
  key: Key;
  name: string;
  meaning: string;
  unit: 'share' | 'nats' | 'tokens';
}

export const statisticNames: StatisticName[] = [
  { key: 'content_weight', name: 'Content', meaning: 'largest weight on one token further back than the previous one: the head selects by content', unit: 'share' },
  { key: 'previous', name: 'Previous token', meaning: 'weight on the previous token', unit: 'share' },
  { key: 'first', name: 'First token', meaning: 'weight on the first token, where many heads put weight they do not need', unit: 'share' },
  { key: 'self', name: 'Own token', meaning: 'weight on the token itself', unit: 'share' },
  { key: 'induction', name: 'Induction', meaning: 'weight on the tokens that followed earlier copies of the token', unit: 'share' },
  { key: 'duplicate', name: 'Duplicate', meaning: 'weight on earlier copies of the token', unit: 'share' },
  { key: 'evenness', name: 'Spread', meaning: 'entropy of a row relative to that of uniform attention: 1 is uniform', unit: 'share' },
  { key: 'entropy', name: 'Entropy', meaning: 'entropy of a row, in nats', unit: 'nats' },
  { key: 'distance', name: 'Distance', meaning: 'mean number of tokens back', unit: 'tokens' },
];

export function statisticName(key: string): StatisticName {
  return statisticNames.find((statistic) => statistic.key === key) ?? statisticNames[0];
}

export function formatStatistic(number: number | null, unit: StatisticName['unit']): string {
  if (number === null) return '–';
  return unit === 'share' ? percent(number) : `${value(number, 2)} ${unit}`;
}

export const headName = (layer: number, head: number): string => `L${layer}H${head}`;

/** L2H3 as [2, 3]; null if it is not a head. */
export function parseHead(name: string): [number, number] | null {
  const found = /^L(\d+)H(\d+)$/.exec(name);
  return found ? [Number(found[1]), Number(found[2])] : null;
}

/** The heads in the order of one statistic, largest first, or by layer and head for `place`. */
export function sortHeads(heads: HeadStatistics[], key: StatisticKey | 'place'): HeadStatistics[] {
  const byPlace = (a: HeadStatistics, b: HeadStatistics) => a.layer - b.layer || a.head - b.head;
  if (key === 'place') return [...heads].sort(byPlace);
  return [...heads].sort((a, b) => b[key] - a[key] || byPlace(a, b));
}

const habitNames: Record<Habit['name'], string> = {
  first: 'first token', last: 'last token', self: 'own token', previous: 'previous token', next: 'next token',
  duplicate: 'earlier copies', induction: 'induction', even: 'spread', back: 'tokens back', peak: 'largest',
};

/** What characterises a head, in words. */
export function habitText({ name, strength }: Habit): string {
  return name === 'back' ? `${value(strength, 1)} ${habitNames.back}` : `${habitNames[name]} ${percent(strength)}`;
}
