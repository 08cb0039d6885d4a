// The nearest words of a vector: those whose token embeddings have the largest cosine with it, as far as chance does not give as large ones.

/** (V, C) in row-major order, less their mean: what all embeddings share would make all of them near. */
export interface EmbeddingTable {
  channels: number;
  mean: Float32Array;
  rows: Float32Array;
  lengths: Float32Array;
}

export interface Nearest {
  /** Those that beat chance. */
  words: { token: number; cosine: number }[];
  /** The nearest of all, where it does not. */
  best: { token: number; cosine: number };
  /** The largest cosine of any word with the vector’s numbers in any of some random orders. */
  chance: number;
}

export function tableOf(given: Float32Array, channels: number): EmbeddingTable {
  const count = given.length / channels;
  const mean = new Float32Array(channels);
  for (let at = 0; at < given.length; ++at) mean[at % channels] += given[at] / count;
  const rows = given.map((number, at) => number - mean[at % channels]);
  const lengths = Float32Array.from({ length: count }, (_, token) => Math.hypot(...rows.subarray(token * channels, (token + 1) * channels)));
  return { channels, mean, rows, lengths };
}

function cosinesOf(centred: Float32Array, { channels, rows, lengths }: EmbeddingTable): Float32Array {
  let size = 0;
  for (const number of centred) size += number ** 2;
  size = Math.sqrt(size);
  const cosines = new Float32Array(lengths.length);
  for (let token = 0, at = 0; token < lengths.length; ++token) {
    let dot = 0;
    for (let channel = 0; channel < channels; ++channel, ++at) dot += centred[channel] * rows[at];
    cosines[token] = size > 0 && lengths[token] > 0 ? dot / (size * lengths[token]) : 0;
  }
  return cosines;
}

/** A generator of numbers in [0, 1) that is the same at every visit (mulberry32). */
function random(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const breath = () => new Promise((done) => setTimeout(done));

/** How often the numbers are shuffled: less often where that takes long. A word is called near by chance at one vector in so many and one. */
export const shufflesFor = ({ rows }: EmbeddingTable): number => (rows.length <= 2 ** 22 ? 39 : 19);

/** Without `except`, which is nearest to itself. Pauses after each shuffle, so that the page can draw. */
export async function nearest(vector: ArrayLike<number>, table: EmbeddingTable, most: number, except = -1): Promise<Nearest> {
  const centred = Float32Array.from(table.mean, (mean, channel) => vector[channel] - mean);
  const cosines = cosinesOf(centred, table);
  const order = Array.from(cosines.keys()).filter((token) => token !== except).sort((a, b) => cosines[b] - cosines[a]).slice(0, most).map((token) => ({ token, cosine: cosines[token] }));
  const shuffled = centred.slice();
  const next = random(1);
  let chance = 0;
  for (let shuffle = 0; shuffle < shufflesFor(table); ++shuffle) {
    for (let last = shuffled.length - 1; last > 0; --last) {
      const other = Math.floor(next() * (last + 1));
      [shuffled[last], shuffled[other]] = [shuffled[other], shuffled[last]];
    }
    for (const cosine of cosinesOf(shuffled, table)) chance = Math.max(chance, cosine);
    if (table.rows.length > 2 ** 18) await breath();
  }
  return { words: order.filter(({ cosine }) => cosine > chance), best: order[0], chance };
}

/** Names of depths, those of blocks that follow each other as one: "after blocks 1 to 5". */
export function joinedDepths(names: string[]): string {
  const parts: { first: number; last: number; text: string }[] = [];
  for (const name of names) {
    const block = Number(/^after block (\d+)$/.exec(name)?.[1] ?? NaN);
    const before = parts.at(-1);
    if (before && before.last + 1 === block) {
      before.last = block;
      before.text = `after blocks ${before.first} to ${block}`;
    } else parts.push({ first: block, last: block, text: name });
  }
  const texts = parts.map(({ text }) => text);
  return texts.length < 2 ? (texts[0] ?? '') : `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`;
}
