// Statistics of a head on a pair of texts: their names.

import type { PairHeadStatistics, PairKind } from '../../lib/pair_types';
import type { StatisticName } from '../compare/statistics';

export type StatisticKey = Exclude<keyof PairHeadStatistics, 'kind' | 'layer' | 'head' | 'habit'>;

const all: StatisticName<StatisticKey>[] = [
  { key: 'largest', name: 'Largest', meaning: 'the largest weight of a row: how clearly the head chooses', unit: 'share' },
  { key: 'previous', name: 'Previous', meaning: 'weight on the token before the query’s own', unit: 'share' },
  { key: 'self', name: 'Own', meaning: 'weight on the query’s own token', unit: 'share' },
  { key: 'next', name: 'Next', meaning: 'weight on the token after the query’s own', unit: 'share' },
  { key: 'first', name: 'First', meaning: 'weight on the first token', unit: 'share' },
  { key: 'last', name: 'Last', meaning: 'weight on the last token that the row sees', unit: 'share' },
  { key: 'evenness', name: 'Spread', meaning: 'entropy of a row relative to that of uniform attention: 1 is uniform', unit: 'share' },
  { key: 'entropy', name: 'Entropy', meaning: 'entropy of a row, in nats', unit: 'nats' },
  { key: 'distance', name: 'Distance', meaning: 'mean distance in tokens', unit: 'tokens' },
];

/** Of two texts there is no own, previous or next token, and no distance; a decoder's next token is masked. */
export function statisticsOf(kind: PairKind): StatisticName<StatisticKey>[] {
  const missing: StatisticKey[] = kind === 'cross' ? ['self', 'previous', 'next', 'distance'] : kind === 'decoder' ? ['next'] : [];
  return all.filter(({ key }) => !missing.includes(key));
}
