// Matrices as small images with a pixel for each cell.

import { extentOf, valueColour, weightColour } from '../../lib/colour';
import type { NumberArray } from '../../lib/types';
import type { Numbers } from './store';

const shades = 512;
const tables = new Map<string, Uint8ClampedArray>();

/** The colours of a scale, dense enough that no step is seen. */
function tableOf(kind: Numbers['kind'], dark: boolean): Uint8ClampedArray {
  const key = `${kind} ${dark}`;
  let table = tables.get(key);
  if (!table) {
    table = new Uint8ClampedArray(3 * (shades + 1));
    for (let shade = 0; shade <= shades; ++shade) table.set(kind === 'weight' ? weightColour(shade / shades, 1, dark) : valueColour((2 * shade) / shades - 1, 1, dark), 3 * shade);
    tables.set(key, table);
  }
  return table;
}

interface Held {
  image: HTMLCanvasElement;
  picture: ImageData;
  version: number;
  extent: number;
  dark: boolean;
}

const kept = new WeakMap<Numbers, Held>();

/** The image of a matrix. Where only some numbers are new, only these are coloured again. */
export function imageOf(numbers: Numbers, dark: boolean): HTMLCanvasElement {
  let held = kept.get(numbers);
  if (held && held.version === numbers.version && held.extent === numbers.extent && held.dark === dark) return held.image;
  const isSame = held !== undefined && held.extent === numbers.extent && held.dark === dark;
  if (!held) {
    const image = document.createElement('canvas');
    image.width = numbers.columns;
    image.height = numbers.rows;
    held = { image, picture: image.getContext('2d')!.createImageData(numbers.columns, numbers.rows), version: -1, extent: 0, dark };
    kept.set(numbers, held);
  }
  const { data } = held.picture;
  const table = tableOf(numbers.kind, dark);
  const { kind, extent } = numbers;
  const colour = (index: number) => {
    const number = numbers.data[index];
    if (Number.isNaN(number)) return;
    const share = kind === 'weight' ? number / extent : 0.5 + (0.5 * number) / extent;
    const shade = 3 * Math.round(shades * Math.min(1, Math.max(0, share)));
    data[4 * index] = table[shade];
    data[4 * index + 1] = table[shade + 1];
    data[4 * index + 2] = table[shade + 2];
    data[4 * index + 3] = 255;
  };
  if (isSame) for (const index of numbers.fresh) colour(index);
  else for (let index = 0; index < numbers.data.length; ++index) colour(index);
  numbers.fresh = [];
  held.image.getContext('2d')!.putImageData(held.picture, 0, 0);
  Object.assign(held, { version: numbers.version, extent, dark });
  return held.image;
}

/** Images of arrays that do not change, in light and in dark colours. */
function remembered<Key extends object, Image>(make: (numbers: Key, dark: boolean) => Image): (numbers: Key, dark: boolean) => Image {
  const made = new WeakMap<Key, { dark: boolean; image: Image }>();
  return (numbers, dark) => {
    let held = made.get(numbers);
    if (held?.dark !== dark) made.set(numbers, (held = { dark, image: make(numbers, dark) }));
    return held.image;
  };
}

/** A vector as one line of pixels. */
export const stripOf = remembered((vector: Float32Array, dark) => {
  const image = document.createElement('canvas');
  image.width = vector.length;
  image.height = 1;
  const context = image.getContext('2d')!;
  const picture = context.createImageData(vector.length, 1);
  const extent = extentOf(vector);
  vector.forEach((number, index) => picture.data.set([...valueColour(number, extent, dark), 255], 4 * index));
  context.putImageData(picture, 0, 0);
  return image;
});

export interface Sheet {
  image: HTMLCanvasElement;
  side: number;
}

/** The patterns of all heads in one image, a tile for each; `layers` down and `heads` across. */
export const sheetOf = remembered(({ shape, data }: NumberArray, dark): Sheet => {
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
});
