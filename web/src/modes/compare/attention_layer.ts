// A head's attention as a Leaflet layer over the server's tiles. Row r of the pattern is latitude −r,
// column c longitude c, so that a position is one unit of CRS.Simple.

import { GridLayer, type Coords, type DoneCallback } from 'leaflet';
import type { Rgb } from '../../lib/colour';
import { drawDots } from '../../lib/dots';
import type { NumberArray } from '../../lib/types';
import { patternImage } from './picture';
import { isVisible, tilePart, tileSize, type TilePart } from './tiles';

export interface TileSource {
  positions: number;
  load: (level: number, row: number, column: number) => Promise<NumberArray>;
  colour: (weight: number) => Rgb;
  /** Draws weights as dots, the largest that of `most`; cells smaller than a dot can show keep their colour. */
  dots: { most: number; dark: boolean } | null;
  grid: string; // colour of the grid lines, drawn between large cells
}

const gridFrom = 14; // pixels a cell
const dotsFrom = 4; // pixels a cell

function drawGrid(context: CanvasRenderingContext2D, width: number, height: number, { cellPixels }: TilePart, firstRow: number, firstColumn: number, colour: string): void {
  if (cellPixels < gridFrom) return;
  context.fillStyle = colour;
  for (let row = 0; row < height; row++) {
    const seen = Math.min(width, firstRow + row - firstColumn + 1);
    if (seen > 0) context.fillRect(0, (row + 1) * cellPixels - 1, seen * cellPixels, 1);
    for (let column = 0; column < seen; column++) context.fillRect((column + 1) * cellPixels - 1, row * cellPixels, 1, cellPixels);
  }
}

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
  const visible = (row: number, column: number) => firstColumn + column <= firstRow + row;
  if (source.dots && part.cellPixels >= dotsFrom) {
    const sharpness = Math.min(2, Math.max(1, devicePixelRatio));
    canvas.width = canvas.height = tileSize * sharpness;
    const context = canvas.getContext('2d')!;
    context.scale(sharpness, sharpness);
    drawDots(context, { data: values, rows: height, columns: width, most: source.dots.most, cellWidth: part.cellPixels, visible }, source.dots.dark);
    drawGrid(context, width, height, part, firstRow, firstColumn, source.grid);
    return;
  }
  const image = patternImage(values, height, width, source.colour, visible);
  const small = new OffscreenCanvas(width, height);
  small.getContext('2d')!.putImageData(image, 0, 0);
  const context = canvas.getContext('2d')!;
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, width * part.cellPixels, height * part.cellPixels);
  drawGrid(context, width, height, part, firstRow, firstColumn, source.grid);
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
