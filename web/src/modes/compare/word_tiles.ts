// Tiles of a pattern by words, which is loaded whole: the server has tiles by token only.

import type { NumberArray } from '../../lib/types';
import { tileSize } from './tiles';

/** A text of more words is shown by token: its whole pattern by words would be larger than 16 MiB. */
export const mostWords = 2048;

/** Tile (row, column) of a level, where a cell pools 2^level × 2^level weights of the pattern (count, count); the mean is over those that are not masked. */
export function tileOf({ shape: [count], data }: NumberArray, level: number, row: number, column: number, pooling: 'max' | 'mean'): NumberArray {
  const pool = 2 ** level;
  const cells = Math.ceil(count / pool);
  const [firstRow, firstColumn] = [row * tileSize, column * tileSize];
  const [rows, columns] = [Math.min(tileSize, cells - firstRow), Math.min(tileSize, cells - firstColumn)];
  const tile = new Float32Array(rows * columns);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) tile[r * columns + c] = pooled(data, count, (firstRow + r) * pool, (firstColumn + c) * pool, pool, pooling);
  }
  return { shape: [rows, columns], data: tile };
}

function pooled(data: Float32Array, count: number, firstQuery: number, firstKey: number, pool: number, pooling: 'max' | 'mean'): number {
  let [most, sum, seen] = [0, 0, 0];
  for (let query = firstQuery; query < Math.min(count, firstQuery + pool); query++) {
    for (let key = firstKey; key < Math.min(query + 1, firstKey + pool); key++) {
      const weight = data[query * count + key];
      most = Math.max(most, weight);
      sum += weight;
      seen++;
    }
  }
  return pooling === 'max' ? most : seen > 0 ? sum / seen : 0;
}
