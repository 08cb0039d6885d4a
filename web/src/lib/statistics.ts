// Statistics of a head's attention: their names and formats, and sorting by them.

import type { PairHeadStatistics, Site } from './pair_types';
import type { Habit, HeadStatistics } from './types';
import { percent, value } from './numbers';

/** Of a head on one text. */
export type StatisticKey = Exclude<keyof HeadStatistics, 'layer' | 'head' | 'habit'>;
/** Of a head on two texts. */
export type PairStatisticKey = Exclude<keyof PairHeadStatistics, 'site' | 'layer' | 'head' | 'habit'>;

export interface StatisticName<Key extends string = StatisticKey> {
  key: Key;
  name: string;
  meaning: string;
  unit: 'share' | 'nats' | 'tokens';
}

const names: Record<StatisticKey | PairStatisticKey, Omit<StatisticName, 'key'>> = {
  content_weight: { name: 'Content', meaning: 'largest weight on one token further back than the previous one: the head selects by content', unit: 'share' },
  largest: { name: 'Largest', meaning: 'the largest weight of a row: how clearly the head chooses', unit: 'share' },
  previous: { name: 'Previous token', meaning: 'weight on the token before the query’s own', unit: 'share' },
  self: { name: 'Own token', meaning: 'weight on the query’s own token', unit: 'share' },
  next: { name: 'Next token', meaning: 'weight on the token after the query’s own', unit: 'share' },
  first: { name: 'First token', meaning: 'weight on the first token, where many heads put weight they do not need', unit: 'share' },
  last: { name: 'Last token', meaning: 'weight on the last token that the row sees', unit: 'share' },
  induction: { name: 'Induction', meaning: 'weight on the tokens that followed earlier copies of the token', unit: 'share' },
  duplicate: { name: 'Duplicate', meaning: 'weight on earlier copies of the token', unit: 'share' },
  evenness: { name: 'Spread', meaning: 'entropy of a row relative to that of uniform attention: 1 is uniform', unit: 'share' },
  entropy: { name: 'Entropy', meaning: 'entropy of a row, in nats', unit: 'nats' },
  distance: { name: 'Distance', meaning: 'mean distance of the key in tokens', unit: 'tokens' },
};
const named = <Key extends StatisticKey | PairStatisticKey>(keys: Key[]): StatisticName<Key>[] => keys.map((key) => ({ key, ...names[key] }));

export const statisticNames = named(['content_weight', 'previous', 'first', 'self', 'induction', 'duplicate', 'evenness', 'entropy', 'distance']);

/** Across two texts there is no own, previous or next token, and no distance; a decoder's next token is masked. */
export function statisticsOf(site: Site): StatisticName<PairStatisticKey>[] {
  if (site === 'cross') return named(['largest', 'first', 'last', 'evenness', 'entropy']);
  if (site === 'decoder') return named(['largest', 'previous', 'self', 'first', 'last', 'evenness', 'entropy', 'distance']);
  return named(['largest', 'previous', 'self', 'next', 'first', 'last', 'evenness', 'entropy', 'distance']);
}

export function statisticName(key: string): StatisticName {
  return statisticNames.find((statistic) => statistic.key === key) ?? statisticNames[0];
}

export function formatStatistic(number: number | null, unit: StatisticName['unit']): string {
  if (number === null) return '–';
  return unit === 'share' ? percent(number) : `${value(number, 2)} ${unit}`;
}

/** The short name of a head, for a chip, a label of a grid or a file. */
export const headName = (layer: number, head: number): string => `L${layer}H${head}`;

/** A head in a sentence or a label. */
export const headInWords = (layer: number, head: number): string => `block ${layer}, head ${head}`;

export const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Whether a sentence begins after this text. */
export const endsSentence = (text: string): boolean => /(^|[.!?]”?\s+)$/.test(text);

/** L2H3 as [2, 3]; null if it is not a head. */
export function parseHead(name: string): [number, number] | null {
  const found = /^L(\d+)H(\d+)$/.exec(name);
  return found ? [Number(found[1]), Number(found[2])] : null;
}

/** A sentence cut at the names of heads ("L4H1", "head L4H1"), which become [layer, head]. */
export function headParts(text: string): (string | [number, number])[] {
  return text.split(/(?:\bhead )?\b(L\d+H\d+)\b/).filter((part) => part !== '').map((part) => parseHead(part) ?? part);
}

/** The heads in the order of one statistic, largest first, or by layer and head for `place`; those without a number last. */
export function sortHeads<Head extends { layer: number; head: number }>(heads: Head[], key: Exclude<keyof Head, 'habit'> | 'place'): Head[] {
  const byPlace = (a: Head, b: Head) => a.layer - b.layer || a.head - b.head;
  if (key === 'place') return [...heads].sort(byPlace);
  const of = (head: Head) => (head[key as keyof Head] as number | null) ?? -Infinity;
  return [...heads].sort((a, b) => of(b) - of(a) || byPlace(a, b));
}

const habitNames: Record<Habit['name'], string> = {
  first: 'first token', last: 'last token', self: 'own token', previous: 'previous token', next: 'next token',
  duplicate: 'earlier copies', induction: 'induction', even: 'spread', back: 'tokens back', peak: 'largest',
};

/** What characterises a head, in words. */
export function habitText({ name, strength }: Habit): string {
  return name === 'back' ? `${value(strength, 1)} ${habitNames.back}` : `${habitNames[name]} ${percent(strength)}`;
}
