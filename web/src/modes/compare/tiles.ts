// The server's attention tiles on a zooming map. At zoom z a position takes 2^z pixels, and
// a tile of the map is 256 × 256 pixels. Below zoom 0 level −z of the server's pyramid fits exactly;
// above it a map tile is a part of a tile of level 0.

export const tileSize = 256;

/** The part of one server tile that a map tile shows, in cells of that tile. */
export interface TilePart {
  level: number;
  row: number;
  column: number;
  firstRow: number;
  firstColumn: number;
  cells: number; // along each side
  cellPixels: number;
}

export function tilePart(zoom: number, x: number, y: number): TilePart {
  if (zoom <= 0) {
    return { level: -zoom, row: y, column: x, firstRow: 0, firstColumn: 0, cells: tileSize, cellPixels: 1 };
  }
  const cellPixels = 2 ** zoom;
  const cells = tileSize / cellPixels;
  const row = Math.floor(y / cellPixels);
  const column = Math.floor(x / cellPixels);
  return { level: 0, row, column, firstRow: y * cells - row * tileSize, firstColumn: x * cells - column * tileSize, cells, cellPixels };
}

/** Whether any key of a map tile is at or before any of its queries; other tiles are masked. */
export function isVisible(zoom: number, x: number, y: number, positions: number): boolean {
  const span = tileSize / 2 ** zoom;
  if (x < 0 || y < 0 || x * span >= positions || y * span >= positions) return false;
  return x * span < Math.min(positions, (y + 1) * span);
}

/** Small steps, so that a whole text nearly fills the map. */
export const zoomStep = 1 / 16;

/** A cell is never larger than a tile: 256 pixels. */
export const mostZoom = Math.log2(tileSize);

/** The zoom at which `positions` fit into `pixels`, at most `most`, in steps of `zoomStep`. */
export function fittingZoom(positions: number, pixels: number, most = mostZoom - 0.5): number {
  const zoom = Math.log2(Math.max(1, pixels) / Math.max(1, positions));
  return Math.min(most, Math.floor(zoom / zoomStep) * zoomStep);
}

/** A least-recently-used cache; concurrent requests for a tile are sent once. */
export class TileCache<Tile> {
  #tiles = new Map<string, Promise<Tile>>();

  constructor(private readonly most = 64) {}

  get(key: string, load: () => Promise<Tile>): Promise<Tile> {
    let tile = this.#tiles.get(key);
    if (tile) {
      this.#tiles.delete(key);
    } else {
      tile = load();
      tile.catch(() => this.#tiles.delete(key));
    }
    this.#tiles.set(key, tile);
    if (this.#tiles.size > this.most) this.#tiles.delete(this.#tiles.keys().next().value!);
    return tile;
  }

  clear(): void {
    this.#tiles.clear();
  }
}
