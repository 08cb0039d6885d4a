// The numbers in the picture: requested when they come into sight, kept as long as the trace is shown.

import { api } from '../../lib/api';
import { extentOf } from '../../lib/colour';
import { current } from '../../lib/state.svelte';
import type { NumberArray, PointElement, Token } from '../../lib/types';
import type { Shape } from '../count/shape';
import { coarseFirst, type Sight } from './detail';
import { placeIn, type Cell } from './find';
import type { Part } from './parts';

/** A matrix, filled as its numbers arrive. */
export interface Numbers {
  rows: number;
  columns: number;
  data: Float32Array;
  kind: 'weight' | 'value';
  /** The number with the full colour. */
  extent: number;
  /** Changes with the data. */
  version: number;
  /** Indices of numbers that came since the image was drawn. */
  fresh: number[];
  /** How many numbers there are so far. */
  filled: number;
}

/** Numbers of a weight matrix that come with one answer: a column, or a part of it, or a row. */
interface Piece {
  key: string;
  element: PointElement;
  put: (weights: Float32Array) => void;
}

const mostRequests = 3;
/** A matrix with more pieces in sight asks for closer zoom. */
export const mostPieces = 800;

export interface Setting {
  shape: Shape;
  tokens: Token[];
  first: number;
  count: number;
  position: number;
  /** The ids of the likeliest next tokens. */
  candidates: number[];
}

/** Weight matrices and the pieces of them that are loaded; they outlive a trace. */
export type Weights = Map<string, { numbers: Numbers; asked: Set<string> }>;

export class Store {
  #activations = new Map<string, Numbers | 'loading' | 'failed'>();
  #wanted: Piece[] = [];
  #running = 0;
  #extra = new Map<string, NumberArray | 'loading' | 'failed'>();
  #closed = false;
  /** Shown instead of numbers that could not be loaded. */
  failure = '';

  constructor(readonly setting: Setting, private readonly held: Weights, private readonly changed: () => void) {}

  close(): void {
    this.#closed = true;
    this.#wanted = [];
  }

  /** Requests that are not yet sent are forgotten: the next drawing asks for what it sees. */
  begin(): void {
    this.#wanted = [];
  }

  end(): void {
    while (this.#running < mostRequests && this.#wanted.length > 0 && !this.#closed) void this.#ask(this.#wanted.shift()!);
  }

  /** Whether answers are still to come. */
  get waiting(): boolean {
    return this.#running > 0 || [...this.#activations.values(), ...this.#extra.values()].includes('loading');
  }

  /** An activation or a pattern; loads it unless `peek`. */
  activation(part: Part, path: string[], peek = false): Numbers | null {
    const source = part.source;
    if (!source || source.from === 'weights') return null;
    const { layer, head } = placeIn(path);
    const key = source.from === 'pattern' ? `pattern ${layer} ${head}` : `${source.point} ${layer} ${head}`;
    const known = this.#activations.get(key);
    if (known) return typeof known === 'string' ? null : known;
    if (peek) return null;
    this.#activations.set(key, 'loading');
    this.#load(part, layer, head, key).then(
      (numbers) => this.#activations.set(key, numbers),
      (error) => {
        this.failure = String(error?.message ?? error);
        this.#activations.set(key, 'failed');
      },
    ).finally(() => this.#arrived());
    return null;
  }

  async #load(part: Part, layer: number, head: number, key: string): Promise<Numbers> {
    const { first, count, tokens } = this.setting;
    const source = part.source!;
    if (source.from === 'pattern') {
      const range = { query_begin: first, query_end: first + count, key_begin: first, key_end: first + count };
      const { data } = await current.keep(`whole ${key} ${first}`, (id) => api.attention(id, layer, head, count < tokens.length ? range : {}));
      return { rows: count, columns: count, data, kind: 'weight', extent: 1, version: 0, fresh: [], filled: data.length };
    }
    if (source.from !== 'activation') throw new Error('not an activation');
    const point = source.inBlock ? `blocks.${layer}.${source.point}` : source.point;
    const query = { positions: `${first}-${first + count - 1}`, heads: source.ofHead ? String(head) : undefined };
    const { data } = await current.keep(`whole ${key} ${first}`, (id) => api.array(id, point, query));
    const columns = data.length / count;
    return { rows: count, columns, data, kind: 'value', extent: extentOf(data), version: 0, fresh: [], filled: data.length };
  }

  /** A weight matrix as far as it is loaded; asks for the pieces of the cells in sight. */
  weights(part: Part, path: string[], sight: Sight | null): Numbers | null {
    if (part.source?.from !== 'weights') return null;
    const { layer, head } = placeIn(path);
    const rows = part.source.of === 'unembedding' ? this.setting.candidates.join(' ') : '';
    const key = `${part.source.of} ${layer} ${head} ${rows}`;
    let held = this.held.get(key);
    if (!held) {
      const data = new Float32Array(part.rows * part.columns).fill(NaN);
      held = { numbers: { rows: part.rows, columns: part.columns, data, kind: 'value', extent: 0, version: 0, fresh: [], filled: 0 }, asked: new Set() };
      this.held.set(key, held);
    }
    if (sight) this.#want(part, layer, head, held, sight);
    return held.numbers;
  }

  #want(part: Part, layer: number, head: number, held: { numbers: Numbers; asked: Set<string> }, sight: Sight): void {
    const { numbers, asked } = held;
    const { head_size } = this.setting.shape;
    const { of } = part.source as { of: string };
    const position = this.setting.position;
    const set = (index: number, weight: number) => {
      numbers.data[index] = weight;
      numbers.fresh.push(index);
    };
    const column = (index: number, from = 0) => (weights: Float32Array) => weights.forEach((weight, row) => set((from + row) * numbers.columns + index, weight));
    const pieces: Piece[] = [];
    const inSight = coarseFirst(sight.left, sight.right);
    if (of === 'unembedding') {
      for (let row = sight.top; row < sight.bottom; ++row) {
        const token = this.setting.candidates[row];
        if (token !== undefined) pieces.push({ key: `${row}`, element: { point: 'logits', position, index: token }, put: (weights) => weights.forEach((weight, channel) => set(row * numbers.columns + channel, weight)) });
      }
    } else if (of === 'output') {
      for (const index of inSight) {
        for (let one = Math.floor(sight.top / head_size); one < Math.ceil(sight.bottom / head_size); ++one) {
          pieces.push({ key: `${index} ${one}`, element: { point: `blocks.${layer}.attn.hook_result`, layer, head: one, position, index }, put: column(index, one * head_size) });
        }
      }
    } else {
      const points: Record<string, string> = { query: 'attn.hook_q', key: 'attn.hook_k', value: 'attn.hook_v', 'head-output': 'attn.hook_result', up: 'mlp.hook_pre', down: 'hook_mlp_out' };
      for (const index of inSight) {
        const element: PointElement = { point: `blocks.${layer}.${points[of]}`, layer, position, index };
        if (head >= 0) element.head = head;
        pieces.push({ key: `${index}`, element, put: column(index) });
      }
    }
    if (pieces.length > mostPieces) return;
    for (const piece of pieces) {
      if (asked.has(piece.key)) continue;
      const put = piece.put;
      this.#wanted.push({ ...piece, put: (weights) => {
        put(weights);
        numbers.filled += weights.length;
        numbers.version += 1;
        // The colours settle with the first columns.
        if (numbers.extent === 0 || (numbers.version & (numbers.version - 1)) === 0) numbers.extent = extentOf(numbers.data.filter(Number.isFinite));
        asked.add(piece.key);
      } });
    }
  }

  async #ask(piece: Piece): Promise<void> {
    this.#running += 1;
    try {
      const id = current.meta?.id;
      if (id === undefined) return;
      const { terms } = await api.derivation(id, piece.element, undefined, 1 << 20);
      const weights = new Float32Array(terms.length);
      // Terms are sorted by size; their names end with the index: "channel 17".
      for (const { label, right } of terms) weights[Number(/\d+$/.exec(label)?.[0])] = right ?? NaN;
      piece.put(weights);
    } catch (error) {
      this.failure = error instanceof Error ? error.message : String(error);
      this.#wanted = [];
    } finally {
      this.#running -= 1;
      this.#arrived();
      this.end();
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
