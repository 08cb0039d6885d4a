// The nearest words of a vector: those whose token embeddings have the largest cosine with it.

/** (V, C) in row-major order, and the length of each row. */
export interface EmbeddingTable {
  channels: number;
  rows: Float32Array;
  lengths: Float32Array;
}

export interface Nearest {
  words: { token: number; cosine: number }[];
  /** Over the whole vocabulary: what a word has by chance. */
  mean: number;
  deviation: number;
}

export function tableOf(rows: Float32Array, channels: number): EmbeddingTable {
  const lengths = Float32Array.from({ length: rows.length / channels }, (_, token) => Math.hypot(...rows.subarray(token * channels, (token + 1) * channels)));
  return { channels, rows, lengths };
}

/** Without `except`, which is nearest to itself. */
export function nearest(vector: ArrayLike<number>, { channels, rows, lengths }: EmbeddingTable, most: number, except = -1): Nearest {
  let size = 0;
  for (let channel = 0; channel < channels; ++channel) size += vector[channel] ** 2;
  const cosines = Float32Array.from(lengths, (length, token) => {
    let dot = 0;
    for (let channel = 0; channel < channels; ++channel) dot += vector[channel] * rows[token * channels + channel];
    return size > 0 && length > 0 ? dot / (Math.sqrt(size) * length) : 0;
  });
  const mean = cosines.reduce((sum, cosine) => sum + cosine, 0) / cosines.length;
  const deviation = Math.sqrt(cosines.reduce((sum, cosine) => sum + (cosine - mean) ** 2, 0) / cosines.length);
  const order = Array.from(cosines.keys()).filter((token) => token !== except).sort((a, b) => cosines[b] - cosines[a]);
  return { words: order.slice(0, most).map((token) => ({ token, cosine: cosines[token] })), mean, deviation };
}
