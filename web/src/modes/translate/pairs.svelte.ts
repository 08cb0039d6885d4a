// The pairs that the page looks at. A pair that the server has dropped, or of a server that was restarted, is made again.

import { api, ApiError } from '../../lib/api';
import { connection } from '../../lib/connection.svelte';
import type { Site, PairMeta, PairRequest, PairRow } from '../../lib/pair_types';
import type { NumberArray } from '../../lib/types';
import { TileCache } from '../compare/tiles';
import type { HeadChoice } from '../../lib/head_choice';
import { siteOf } from './heads';
import { translator } from './translator.svelte';
import { meanOf } from './words';

export const keyOf = (request: PairRequest): string => JSON.stringify(request);

export class Pair {
  /** As when it was first made. */
  readonly meta: PairMeta;
  readonly key: string;
  /** Its present name on the server. */
  id = $state('');
  #request: PairRequest;
  #id: Promise<string>;
  #returns = connection.returns;
  #answers = new TileCache<unknown>(400);

  constructor(request: PairRequest, meta: PairMeta) {
    this.#request = request;
    this.key = keyOf(request);
    this.meta = meta;
    this.id = meta.id;
    this.#id = Promise.resolve(meta.id);
  }

  /** Sends a request about the pair once. */
  ask<T>(name: string, send: (id: string) => Promise<T>): Promise<T> {
    return this.#answers.get(name, () => this.#send(send)) as Promise<T>;
  }

  async #send<T>(send: (id: string) => Promise<T>): Promise<T> {
    if (this.#returns !== connection.returns) this.#makeAgain();
    const id = this.#id;
    try {
      return await send(await id);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) throw error;
      // Only the first of several requests that find it gone makes it again.
      if (id === this.#id) this.#makeAgain();
      return send(await this.#id);
    }
  }

  #makeAgain(): void {
    this.#returns = connection.returns;
    this.#id = api.makePair(this.#request).then(({ id }) => (this.id = id));
    this.#id.catch(() => {});
  }

  /** One head's weights, or the mean of a block's: (query words, key words), or with `unit` by tokens. */
  weights(kind: Site, { layer, head }: HeadChoice, row: PairRow, unit: 'words' | 'tokens' = 'words'): Promise<NumberArray> {
    const query = unit === 'tokens' ? undefined : { unit, ...(kind === 'encoder' ? {} : { row }) };
    const of = (one: number) => this.ask(`weights ${kind} ${layer} ${one} ${JSON.stringify(query)}`, (id) => api.attentionAt(id, kind, layer, one, query));
    if (head !== null) return of(head);
    return Promise.all(Array.from({ length: siteOf(this.meta, kind).heads }, (_, one) => of(one))).then(meanOf);
  }
}

/** How many pairs the page remembers. */
const most = 24;
let made = new TileCache<Pair>(most);
/** The translator that they are of. */
let madeBy: object | null = null;

/** Makes a pair, or returns the one that was made of the same request. */
export function pairOf(request: PairRequest): Promise<Pair> {
  if (madeBy !== translator.card) {
    madeBy = translator.card;
    made = new TileCache(most);
  }
  return made.get(keyOf(request), async () => new Pair(request, await api.makePair(request)));
}
