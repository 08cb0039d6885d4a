// The numbers in the picture: requested when they come into sight, kept as long as the trace is shown.

import { api } from '../../lib/api';
import { current } from '../../lib/state.svelte';
import type { NumberArray, Token, WeightRole } from '../../lib/types';
import type { Shape } from '../count/shape';
import type { CellRange } from './detail';
import { placeIn, type Cell } from './find';
import { completeNumbers, emptyNumbers, fill, type Numbers } from './numbers';
import { headOfSource, type Part, type Source } from './parts';
import { tilesOf } from './weight_tiles';

/** A request that is sent when it is its turn. */
interface Wanted {
  ask: () => Promise<void>;
  failed: () => void;
}

const mostRequests = 6;

export interface Setting {
  shape: Shape;
  tied: boolean;
  tokens: Token[];
  first: number;
  count: number;
  position: number;
  /** The ids of the likeliest next tokens. */
  candidates: number[];
}

type WeightSource = Extract<Source, { from: 'weights' }>['of'];

const roles: Record<Exclude<WeightSource, 'unembedding'>, { role: WeightRole; ofHead: boolean }> = {
  query: { role: 'attention.query', ofHead: true }, key: { role: 'attention.key', ofHead: true }, value: { role: 'attention.value', ofHead: true },
  'head-output': { role: 'attention.output', ofHead: true }, output: { role: 'attention.output', ofHead: false },
  gate: { role: 'feed_forward.gate', ofHead: false }, up: { role: 'feed_forward.up', ofHead: false }, down: { role: 'feed_forward.down', ofHead: false },
};

interface HeldWeights {
  numbers: Numbers;
  /** Areas that are loaded, on their way or failed. */
  asked: Set<string>;
  failed: boolean;
}

/** Weight matrices and the areas of them that are loaded; they outlive a trace. */
export type Weights = Map<string, HeldWeights>;

export class Store {
  #activations = new Map<string, Numbers | 'loading' | 'failed'>();
  #wanted: Wanted[] = [];
  #running = 0;
  #moving = false;
  #extra = new Map<string, NumberArray | 'loading' | 'failed'>();
  #closed = false;

  constructor(readonly setting: Setting, private readonly held: Weights, private readonly changed: () => void) {}

  /** Where the server has a part's numbers. */
  #place(source: Source, path: string[]): { layer: number; head: number } {
    const { layer, head } = placeIn(path);
    return { layer, head: headOfSource(source, this.setting.shape, head) };
  }

  close(): void {
    this.#closed = true;
    this.#wanted = [];
  }

  /** Requests that are not yet sent are forgotten: the next drawing asks for what it sees. */
  begin(moving: boolean): void {
    this.#wanted = [];
    this.#moving = moving;
  }

  /** While the camera moves, answers would cost frames: then at most one request is sent with each. */
  end(): void {
    const most = this.#moving ? 1 : mostRequests;
    while (this.#running < most && this.#wanted.length > 0 && !this.#closed) void this.#send(this.#wanted.shift()!);
  }

  async #send({ ask, failed }: Wanted): Promise<void> {
    this.#running += 1;
    try {
      await ask();
    } catch {
      failed();
    } finally {
      this.#running -= 1;
      this.#arrived();
      if (!this.#moving) this.end();
    }
  }

  /** An activation or a pattern; loads it unless `peek`. */
  activation(part: Part, path: string[], peek = false): Numbers | null {
    const source = part.source;
    if (!source || source.from === 'weights') return null;
    const { layer, head } = this.#place(source, path);
    const key = source.from === 'pattern' ? `pattern ${layer} ${head}` : `${source.point} ${layer} ${head}`;
    const known = this.#activations.get(key);
    if (known) return typeof known === 'string' ? null : known;
    if (peek) return null;
    this.#wanted.push({
      ask: async () => {
        if (this.#activations.has(key)) return;
        this.#activations.set(key, 'loading');
        this.#activations.set(key, await this.#load(source, layer, head, key));
      },
      failed: () => this.#activations.set(key, 'failed'),
    });
    return null;
  }

  async #load(source: Exclude<Source, { from: 'weights' }>, layer: number, head: number, key: string): Promise<Numbers> {
    const { first, count, tokens } = this.setting;
    if (source.from === 'pattern') {
      const range = { query_begin: first, query_end: first + count, key_begin: first, key_end: first + count };
      const { data } = await current.keep(`whole ${key} ${first}`, (id) => api.attention(id, layer, head, count < tokens.length ? range : {}));
      return completeNumbers(count, count, data, 'weight');
    }
    const point = source.inBlock ? `blocks.${layer}.${source.point}` : source.point;
    const query = { positions: `${first}-${first + count - 1}`, heads: source.ofHead ? String(head) : undefined };
    const { data } = await current.keep(`whole ${key} ${first}`, (id) => api.array(id, point, query));
    return completeNumbers(count, data.length / count, data, 'value');
  }

  #heldKey(of: WeightSource, layer: number, head: number): string {
    return `${of} ${layer} ${head} ${of === 'unembedding' ? this.setting.candidates.join(' ') : ''}`;
  }

  /** A weight matrix as far as it is loaded; with `visible`, asks for the areas of the cells in sight. */
  weights(part: Part, path: string[], visible: CellRange | null): Numbers | null {
    if (part.source?.from !== 'weights') return null;
    const { of } = part.source;
    const { layer, head } = this.#place(part.source, path);
    const key = this.#heldKey(of, layer, head);
    let held = this.held.get(key);
    if (!visible) return held?.numbers ?? null;
    if (!held) this.held.set(key, (held = { numbers: emptyNumbers(part.rows, part.columns), asked: new Set(), failed: false }));
    if (of === 'unembedding') this.#wantCandidates(held, part);
    else for (const tile of tilesOf(part.rows, part.columns, visible)) this.#want(held, tile, () => this.#tile(of, layer, head, tile));
    return held.numbers;
  }

  /** Whether numbers of a weight matrix could not be loaded. */
  hasFailed(part: Part, path: string[]): boolean {
    if (part.source?.from !== 'weights') return false;
    const { layer, head } = this.#place(part.source, path);
    return this.held.get(this.#heldKey(part.source.of, layer, head))?.failed ?? false;
  }

  #want(held: HeldWeights, area: CellRange, load: () => Promise<Float32Array>): void {
    const key = `${area.top} ${area.left}`;
    if (held.asked.has(key)) return;
    this.#wanted.push({
      ask: async () => {
        // Heads that share a matrix want it in the same drawing.
        if (held.asked.has(key)) return;
        held.asked.add(key);
        fill(held.numbers, area, await load());
      },
      failed: () => (held.failed = true),
    });
  }

  async #tile(of: Exclude<WeightSource, 'unembedding'>, layer: number, head: number, { top, bottom, left, right }: CellRange): Promise<Float32Array> {
    const { role, ofHead } = roles[of];
    const { data } = await api.weights(layer, role, { head: ofHead ? head : undefined, rows: `${top}-${bottom - 1}`, columns: `${left}-${right - 1}` });
    return data;
  }

  /** A row of the unembedding for each candidate: the token embedding's where they are tied, else from its logit. */
  #wantCandidates(held: HeldWeights, { rows, columns }: Part): void {
    const { candidates, tied } = this.setting;
    for (const [row, token] of candidates.slice(0, rows).entries()) {
      this.#want(held, { top: row, bottom: row + 1, left: 0, right: columns }, async () => {
        if (tied) return (await api.tokenEmbedding(String(token))).data;
        const { position } = this.setting;
        const { terms } = await current.keep(`whole logit ${position} ${token}`, (id) => api.derivation(id, { point: 'logits', position, index: token }, undefined, 1 << 20));
        const weights = new Float32Array(columns);
        // Terms are sorted by size; their names end with the index: "channel 17".
        for (const { label, right } of terms) weights[Number(/\d+$/.exec(label)?.[0])] = right ?? NaN;
        return weights;
      });
    }
  }

  /** The chosen token's vector at a point. */
  vector(point: string): Float32Array | null {
    const array = this.#once(`vector ${point}`, async () => ({ shape: [], data: await current.vector(point, this.setting.position) }));
    return array?.data ?? null;
  }

  /** Small patterns of all heads: (L, H, side, side). */
  thumbnails(): NumberArray | null {
    return this.#once('thumbnails', () => current.keep('whole thumbnails', (id) => api.thumbnails(id, 24)));
  }

  #once(key: string, ask: () => Promise<NumberArray>): NumberArray | null {
    const known = this.#extra.get(key);
    if (known) return typeof known === 'string' ? null : known;
    this.#extra.set(key, 'loading');
    ask().then((array) => this.#extra.set(key, array), () => this.#extra.set(key, 'failed')).finally(() => this.#arrived());
    return null;
  }

  #arrived(): void {
    if (!this.#closed) this.changed();
  }

  /** The matrix of a part, as far as it is loaded. */
  numbers(part: Part, path: string[]): Numbers | null {
    return part.source?.from === 'weights' ? this.weights(part, path, null) : this.activation(part, path, true);
  }

  read(part: Part, path: string[], { row, column }: Cell): number | null {
    const numbers = this.numbers(part, path);
    if (!numbers || row >= numbers.rows || column >= numbers.columns) return null;
    const number = numbers.data[row * numbers.columns + column];
    return Number.isNaN(number) ? null : number;
  }
}
