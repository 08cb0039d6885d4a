// Statistics of a head's attention: their names and formats, and sorting by them.

import type { HeadStatistics } from '../../lib/types';
import { percent, value } from '../../lib/numbers';

export type StatisticKey = Exclude<keyof HeadStatistics, 'layer' | 'head'>;

export interface StatisticName<Key extends string = StatisticKey> {
  key: Key;
  name: string;
  meaning: string;
  unit: 'share' | 'nats' | 'tokens';
}

export const statisticNames: StatisticName[] = [
  { key: 'telling', name: 'Content', meaning: 'largest weight on one token further back than the previous one: the head selects by content', unit: 'share' },
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

/** The least weight of a habit that is named. */
const strongHabit = 0.3;
const habits: [StatisticKey, string][] = [
  ['induction', 'induction'],
  ['duplicate', 'earlier copies'],
  ['previous', 'previous token'],
  ['self', 'own token'],
  ['first', 'first token'],
];

/** Where most of the head's weight goes; its spread or distance where nothing dominates. */
export function habitOf(head: HeadStatistics): string {
  const [key, name] = habits.reduce((best, habit) => (head[habit[0]] > head[best[0]] ? habit : best));
  if (head[key] >= strongHabit) return `${name} ${percent(head[key])}`;
  if (head.evenness > 0.9) return `spread ${percent(head.evenness)}`;
  return `${value(head.distance, 1)} tokens back`;
}
