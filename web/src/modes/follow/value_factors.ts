// The numbers of a head's value matrix as two factors, against one matrix of the full size.

export interface ModelShape {
  channels: number;
  head_size: number;
  heads: number;
  layers: number;
  /** Where heads share values. */
  key_value_heads?: number;
}

export interface ValueCounts {
  /** One matrix, C × C. */
  whole: number;
  /** Each of the factors, C × D and D × C. */
  factor: number;
  both: number;
  /** How many times the factors' numbers the one matrix has. */
  times: number;
  wholeOfAll: number;
  bothOfAll: number;
}

export function valueCounts({ channels, head_size, heads, layers, key_value_heads = heads }: ModelShape): ValueCounts {
  const whole = channels * channels;
  const factor = channels * head_size;
  return { whole, factor, both: 2 * factor, times: whole / (2 * factor), wholeOfAll: whole * heads * layers, bothOfAll: factor * (key_value_heads + heads) * layers };
}
