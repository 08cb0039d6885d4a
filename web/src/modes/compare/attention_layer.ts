// A head's attention as a Leaflet layer over the server's tiles. Row r of the pattern is latitude −r,
// column c longitude c, so that a position is one unit of CRS.Simple.

import { GridLayer, type Coords, type DoneCallback } from 'leaflet';
import type { Rgb } from '../../lib/colour';
import type { NumberArray } from '../../lib/types';
import { patternImage } from './picture';
import { isVisible, tilePart, tileSize, type TilePart } from './tiles';

export interface TileSource {
  positions: number;
  load: (level: number, row: number, column: number) => Promise<NumberArray>;
  colour: (weight: number) => Rgb;
  grid: string; // colour of the grid lines, drawn between large cells
}

const gridFrom = 14; // pixels a cell

function drawPart(canvas: HTMLCanvasElement, part: TilePart, tile: NumberArray, source: TileSource): void {
  const [rows, columns] = tile.shape;
  const width = Math.min(part.cells, columns - part.firstColumn);
  const height = Math.min(part.cells, rows - part.firstRow);
  if (width <= 0 || height <= 0) return;
  const values = new Float32Array(width * height);
  for (let row = 0; row < height; row++) {
    const begin = (part.firstRow + row) * columns + part.firstColumn;
    values.set(tile.data.subarray(begin, begin + width), row * width);
  }
  const firstRow = part.row * tileSize + part.firstRow;
  const firstColumn = part.column * tileSize + part.firstColumn;
  const image = patternImage(values, height, width, source.colour, (row, column) => firstColumn + column <= firstRow + row);
  const small = new OffscreenCanvas(width, height);
  small.getContext('2d')!.putImageData(image, 0, 0);
  const context = canvas.getContext('2d')!;
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, width * part.cellPixels, height * part.cellPixels);
  if (part.cellPixels < gridFrom) return;
  context.fillStyle = source.grid;
  for (let row = 0; row < height; row++) {
    const seen = Math.min(width, firstRow + row - firstColumn + 1);
    if (seen > 0) context.fillRect(0, (row + 1) * part.cellPixels - 1, seen * part.cellPixels, 1);
    for (let column = 0; column < seen; column++) context.fillRect((column + 1) * part.cellPixels - 1, row * part.cellPixels, 1, part.cellPixels);
  }
}

export class AttentionLayer extends GridLayer {
  constructor(private readonly source: TileSource) {
    super({ tileSize, minZoom: -20, maxZoom: 20, noWrap: true, updateWhenZooming: false, keepBuffer: 1, className: 'attention-tile' });
  }

  protected override createTile({ x, y, z }: Coords, done: DoneCallback): HTMLElement {
    const canvas = Object.assign(document.createElement('canvas'), { width: tileSize, height: tileSize });
    const source = this.source;
    if (!isVisible(z, x, y, source.positions)) {
      queueMicrotask(() => done(undefined, canvas));
      return canvas;
    }
    const part = tilePart(z, x, y);
    source.load(part.level, part.row, part.column).then(
      (tile) => {
        drawPart(canvas, part, tile, source);
        done(undefined, canvas);
      },
      (error) => done(error as Error, canvas),
    );
    return canvas;
  }
}
