// The patterns of all heads on one canvas, a row for each block: the PNG of the overview.

import { weightColour, type Rgb } from '../../lib/colour';
import { drawDots, drawn } from '../../lib/dots';
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

/** All heads in colours or as dots, a row for each layer; thumbnails are (layers, heads, rows, columns). */
export function wholePicture(thumbnails: NumberArray, isDark: boolean, isCausal = true): HTMLCanvasElement {
  const [layers, heads, rows, columns] = thumbnails.shape;
  const scale = Math.max(1, Math.round(96 / Math.max(rows, columns)));
  const [across, down] = [columns * scale + 8, rows * scale + 8];
  const canvas = Object.assign(document.createElement('canvas'), { width: heads * across + 8, height: layers * down + 8 });
  const context = canvas.getContext('2d')!;
  context.fillStyle = isDark ? '#12151d' : '#fbfaf6';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingEnabled = false;
  const one = new OffscreenCanvas(columns, rows);
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      const pattern = thumbnailOf(thumbnails, layer, head);
      const most = darkestOf(pattern);
      if (drawn.dots) {
        context.save();
        context.translate(8 + head * across, 8 + layer * down);
        drawDots(context, { data: pattern, rows, columns, most, cellWidth: scale, visible: (row, column) => !isCausal || column <= row }, isDark);
        context.restore();
        continue;
      }
      one.getContext('2d')!.putImageData(patternImage(pattern, rows, columns, (weight) => weightColour(weight, most, isDark), isCausal ? undefined : () => true), 0, 0);
      context.drawImage(one, 8 + head * across, 8 + layer * down, columns * scale, rows * scale);
    }
  }
  return canvas;
}
