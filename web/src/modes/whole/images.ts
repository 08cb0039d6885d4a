// Matrices as small images with a pixel for each cell.

import { valueColour, weightColour } from '../../lib/colour';
import type { Numbers } from './store';

const kept = new WeakMap<Numbers, { image: HTMLCanvasElement; version: number; extent: number; dark: boolean }>();

export function imageOf(numbers: Numbers, dark: boolean): HTMLCanvasElement {
  let held = kept.get(numbers);
  if (held && held.version === numbers.version && held.extent === numbers.extent && held.dark === dark) return held.image;
  const image = held?.image ?? document.createElement('canvas');
  image.width = numbers.columns;
  image.height = numbers.rows;
  const context = image.getContext('2d')!;
  const picture = context.createImageData(numbers.columns, numbers.rows);
  for (let index = 0; index < numbers.data.length; ++index) {
    const number = numbers.data[index];
    if (Number.isNaN(number)) continue;
    const [red, green, blue] = numbers.kind === 'weight' ? weightColour(number, numbers.extent, dark) : valueColour(number, numbers.extent, dark);
    picture.data.set([red, green, blue, 255], 4 * index);
  }
  context.putImageData(picture, 0, 0);
  held = { image, version: numbers.version, extent: numbers.extent, dark };
  kept.set(numbers, held);
  return image;
}

/** A vector as one line of pixels. */
export function stripOf(vector: Float32Array, extent: number, dark: boolean): HTMLCanvasElement {
  const image = document.createElement('canvas');
  image.width = vector.length;
  image.height = 1;
  const context = image.getContext('2d')!;
  const picture = context.createImageData(vector.length, 1);
  vector.forEach((number, index) => picture.data.set([...valueColour(number, extent, dark), 255], 4 * index));
  context.putImageData(picture, 0, 0);
  return image;
}

/** The patterns of all heads in one image, a tile for each; `layers` down and `heads` across. */
export function sheetOf(shape: number[], data: Float32Array, dark: boolean): { image: HTMLCanvasElement; side: number } {
  const [layers, heads, side] = shape;
  const image = document.createElement('canvas');
  image.width = heads * side;
  image.height = layers * side;
  const context = image.getContext('2d')!;
  for (let layer = 0; layer < layers; ++layer) {
    for (let head = 0; head < heads; ++head) {
      const picture = context.createImageData(side, side);
      const from = (layer * heads + head) * side * side;
      for (let index = 0; index < side * side; ++index) picture.data.set([...weightColour(data[from + index], 1, dark), 255], 4 * index);
      context.putImageData(picture, head * side, layer * side);
    }
  }
  return { image, side };
}
