// What exercises and questions ask of the model at hand, on the shown text.

import { api } from '../../lib/api';
import { current, page } from '../../lib/state.svelte';
import type { HeadStatistics, Intervention, LensCell, Token, Word } from '../../lib/types';
import { surprisesOf, type Surprised } from './surprise';

export interface World {
  tokens: Token[];
  words: Word[];
  layers: number;
  heads: number;
  /** The longest text, in tokens. */
  context: number;
  layer: number;
  head: number;
  position: number;
  extra: Record<string, string>;
  /** The weights of a query on all positions; those that are masked are 0. */
  row(layer: number, head: number, position: number): Promise<ArrayLike<number>>;
  statistics(): Promise<HeadStatistics[]>;
  vector(point: string, position: number): Promise<ArrayLike<number>>;
  /** The logit lens at a position, from before the first block to the end. */
  lens(position: number): Promise<LensCell[]>;
  surprises(): Promise<Surprised[]>;
  /** How many tokens a text becomes. */
  tokensOf(text: string): Promise<Token[]>;
  /** How far a change moves the prediction at a position: KL divergence in nats. */
  moved(interventions: Intervention[], position: number): Promise<number>;
  /** A point's vectors at two positions of other tokens. */
  vectorsOf(tokens: number[], point: string, positions: number[]): Promise<ArrayLike<number>[]>;
}

/** As the page shows it now; null while there is no trace of the text. */
export function worldNow(): World | null {
  const { meta } = current;
  if (!meta || current.text !== page.view.text) return null;
  const { position } = current;
  const { layer, head, extra } = page.view;
  return {
    tokens: meta.tokens, words: meta.words, layers: meta.layers, heads: meta.heads, context: meta.dimensions.context, layer, head, position, extra: { ...extra },
    row: async (of, index, query) => (await current.keep(`row ${of} ${index} ${query}`, (id) => api.attentionRow(id, of, index, query))).data,
    statistics: () => current.keep('heads', (id) => api.heads(id)),
    vector: (point, at) => current.vector(point, at),
    lens: async (at) => (await current.keep(`lens at ${at}`, (id) => api.lens(id, 1, String(at)))).cells.map(([cell]) => cell),
    surprises: surprisesOf,
    tokensOf: (text) => api.tokenize(text),
    moved: (interventions, at) =>
      current.keep(`moved ${JSON.stringify(interventions)} ${at}`, async (id) => {
        const changed = await api.makeTrace({ tokens: meta.tokens.map((token) => token.id), interventions });
        const { kl } = await api.compare(id, changed.id, at, 1);
        void api.removeTrace(changed.id).catch(() => undefined);
        return kl;
      }),
    vectorsOf: async (tokens, point, positions) => {
      const made = await api.makeTrace({ tokens });
      const vectors = await Promise.all(positions.map(async (at) => (await api.array(made.id, point, { positions: String(at) })).data));
      void api.removeTrace(made.id).catch(() => undefined);
      return vectors;
    },
  };
}

export function lengthOf(vector: ArrayLike<number>): number {
  return Math.sqrt(Array.from(vector).reduce((sum, number) => sum + number * number, 0));
}

export function distanceOf(one: ArrayLike<number>, other: ArrayLike<number>): number {
  return lengthOf(Array.from(one, (number, index) => number - other[index]));
}

/** The index of the largest number, the first of several. */
export function largestOf(numbers: ArrayLike<number>): number {
  return Array.from(numbers).reduce((best, number, index, all) => (number > all[best] ? index : best), 0);
}

/** After how many blocks the final first choice is on top to stay: 0 before any, up to L + 1 rows. */
export function settledAfter(cells: Pick<LensCell, 'tokens'>[]): number {
  const choices = cells.map(({ tokens }) => tokens[0].id);
  let after = choices.length - 1;
  while (after > 0 && choices[after - 1] === choices.at(-1)) after -= 1;
  return after;
}
