// What a head does with a text, in numbers that have names, and the order that they put heads in.

import type { HeadStatistics } from '../../lib/types';
import { percent, value } from '../../lib/numbers';

export type StatisticKey = Exclude<keyof HeadStatistics, 'layer' | 'head'>;

export interface StatisticName {
  key: StatisticKey;
  name: string;
  meaning: string;
  unit: 'share' | 'nats' | 'tokens';
}

export const statisticNames: StatisticName[] = [
  { key: 'telling', name: 'Telling', meaning: 'largest weight on one earlier word further back than the previous: the head picks by content', unit: 'share' },
  { key: 'previous', name: 'Previous token', meaning: 'weight on the token just before', unit: 'share' },
  { key: 'first', name: 'First token', meaning: 'weight on the first token, where a head looks that has nothing to say', unit: 'share' },
  { key: 'self', name: 'Own token', meaning: 'weight on the token itself', unit: 'share' },
  { key: 'induction', name: 'Induction', meaning: 'weight on what followed earlier copies of the token, where it has come before', unit: 'share' },
  { key: 'duplicate', name: 'Duplicate', meaning: 'weight on earlier copies of the token, where it has come before', unit: 'share' },
  { key: 'evenness', name: 'Spread', meaning: 'entropy of a row over that of looking at everything alike; 1 is a plain mean', unit: 'share' },
  { key: 'entropy', name: 'Entropy', meaning: 'uncertainty of where it looks, in nats', unit: 'nats' },
  { key: 'distance', name: 'Distance', meaning: 'mean number of tokens back', unit: 'tokens' },
];

export function statisticName(key: string): StatisticName {
  return statisticNames.find((statistic) => statistic.key === key) ?? statisticNames[0];
}

export function formatStatistic(number: number, unit: StatisticName['unit']): string {
  if (unit === 'share') return percent(number);
  return `${value(number, 2)} ${unit}`;
}

export const headName = (layer: number, head: number): string => `L${layer}H${head}`;

/** L2H3 as [2, 3]; null when it is no head. */
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

/** Habits have to be this strong to be named. */
const strongHabit = 0.3;
const habits: [StatisticKey, string][] = [
  ['induction', 'induction'],
  ['duplicate', 'earlier copies'],
  ['previous', 'previous token'],
  ['self', 'own token'],
  ['first', 'first token'],
];

/** The habit that takes most of the head's weight, or how it spreads where none does. */
export function habitOf(head: HeadStatistics): string {
  const [key, name] = habits.reduce((best, habit) => (head[habit[0]] > head[best[0]] ? habit : best));
  if (head[key] >= strongHabit) return `${name} ${percent(head[key])}`;
  if (head.evenness > 0.9) return `spread ${percent(head.evenness)}`;
  return `${value(head.distance, 1)} tokens back`;
}
