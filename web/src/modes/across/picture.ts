// The patterns of all heads on one canvas, a row for each block: the PNG of the overview.

import { weightColour, type Rgb } from '../../lib/colour';
import type { NumberArray } from '../../lib/types';
import { darkestOf, thumbnailOf } from './thumbnails';

/** A causal pattern (rows, columns) as pixels; masked cells are transparent. */
export function patternImage(pattern: Float32Array, rows: number, columns: number, colour: (weight: number) => Rgb, visible = (row: number, column: number) => column <= row): ImageData {
  const image = new ImageData(columns, rows);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns && visible(row, column); column++) {
      const index = row * columns + column;
      image.data.set([...colour(pattern[index]), 255], 4 * index);
    }
  }
  return image;
}

export function wholePicture(thumbnails: NumberArray, isDark: boolean): HTMLCanvasElement {
  const [layers, heads, size] = thumbnails.shape;
  const scale = Math.max(1, Math.round(96 / size));
  const step = size * scale + 8;
  const canvas = Object.assign(document.createElement('canvas'), { width: heads * step + 8, height: layers * step + 8 });
  const context = canvas.getContext('2d')!;
  context.fillStyle = isDark ? '#12151d' : '#fbfaf6';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingEnabled = false;
  const one = new OffscreenCanvas(size, size);
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      const pattern = thumbnailOf(thumbnails, layer, head);
      const most = darkestOf(pattern);
      one.getContext('2d')!.putImageData(patternImage(pattern, size, size, (weight) => weightColour(weight, most, isDark)), 0, 0);
      context.drawImage(one, 8 + head * step, 8 + layer * step, size * scale, size * scale);
    }
  }
  return canvas;
}
