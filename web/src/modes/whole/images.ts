// Matrices as small images with a pixel for each cell: bitmaps, which a canvas copies without looking for changes.

import { extentOf, valueColour, weightColour } from '../../lib/colour';
import type { NumberArray } from '../../lib/types';
import type { CellRange } from './detail';
import type { Numbers } from './numbers';

const shades = 512;
const tables = new Map<string, Uint32Array>();

/** The colours of a scale as pixels, dense enough that no step is seen. */
function tableOf(kind: Numbers['kind'], dark: boolean): Uint32Array {
  const key = `${kind} ${dark}`;
  let table = tables.get(key);
  if (!table) {
    const bytes = new Uint8ClampedArray(4 * (shades + 1));
    for (let shade = 0; shade <= shades; ++shade) bytes.set([...(kind === 'weight' ? weightColour(shade / shades, 1, dark) : valueColour((2 * shade) / shades - 1, 1, dark)), 255], 4 * shade);
    tables.set(key, (table = new Uint32Array(bytes.buffer)));
  }
  return table;
}

function bitmapOf(picture: ImageData): ImageBitmap {
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  canvas.getContext('2d')!.putImageData(picture, 0, 0);
  return canvas.transferToImageBitmap();
}

interface Held {
  image: ImageBitmap;
  picture: ImageData;
  version: number;
  extent: number;
  dark: boolean;
}

const kept = new WeakMap<Numbers, Held>();

/** The image of a matrix as it was last drawn, and whether it has all its numbers. */
export function lastImageOf(numbers: Numbers, dark: boolean): { image: ImageBitmap; complete: boolean } | null {
  const held = kept.get(numbers);
  if (!held) return null;
  return { image: held.image, complete: held.version === numbers.version && held.extent === numbers.extent && held.dark === dark };
}

/** Colours an area of a picture; numbers that are not loaded stay clear. */
function colour(picture: ImageData, data: Float32Array, { top, bottom, left, right }: CellRange, kind: Numbers['kind'], extent: number, dark: boolean): void {
  const pixels = new Uint32Array(picture.data.buffer);
  const table = tableOf(kind, dark);
  const [middle, scale] = kind === 'weight' ? [0, shades / extent] : [shades / 2, shades / 2 / extent];
  for (let row = top; row < bottom; ++row) {
    for (let index = row * picture.width + left; index < row * picture.width + right; ++index) {
      const number = data[index];
      if (!Number.isNaN(number)) pixels[index] = table[Math.round(Math.min(shades, Math.max(0, middle + scale * number)))];
    }
  }
}

function pictureOf(data: Float32Array, columns: number, kind: Numbers['kind'], extent: number, dark: boolean): ImageData {
  const rows = data.length / columns;
  const picture = new ImageData(columns, rows);
  colour(picture, data, { top: 0, bottom: rows, left: 0, right: columns }, kind, extent, dark);
  return picture;
}

/** Draws the image of a matrix. Where only some numbers are new, only these are coloured again. */
export function drawImageOf(numbers: Numbers, dark: boolean): ImageBitmap {
  const held = kept.get(numbers);
  const isSame = held !== undefined && held.extent === numbers.extent && held.dark === dark;
  const { rows, columns, data, kind, extent } = numbers;
  const picture = held?.picture ?? new ImageData(columns, rows);
  const areas = isSame ? numbers.fresh : [{ top: 0, bottom: rows, left: 0, right: columns }];
  for (const area of areas) colour(picture, data, area, kind, extent, dark);
  numbers.fresh = [];
  held?.image.close();
  const image = bitmapOf(picture);
  kept.set(numbers, { image, picture, version: numbers.version, extent, dark });
  return image;
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
export const stripOf = remembered((vector: Float32Array, dark) => bitmapOf(pictureOf(vector, vector.length, 'value', extentOf(vector), dark)));

export interface Sheet {
  image: ImageBitmap;
  side: number;
}

/** The patterns of all heads in one image, a tile for each; `layers` down and `heads` across. */
export const sheetOf = remembered(({ shape, data }: NumberArray, dark): Sheet => {
  const [layers, heads, side] = shape;
  const canvas = new OffscreenCanvas(heads * side, layers * side);
  const context = canvas.getContext('2d')!;
  for (let index = 0; index < layers * heads; ++index) {
    const tile = data.subarray(index * side * side, (index + 1) * side * side);
    context.putImageData(pictureOf(tile, side, 'weight', 1, dark), (index % heads) * side, Math.floor(index / heads) * side);
  }
  return { image: canvas.transferToImageBitmap(), side };
});
