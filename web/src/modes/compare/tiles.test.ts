import { describe, expect, it } from 'vitest';
import { fittingZoom, isVisible, mostZoom, TileCache, tilePart, zoomStep } from './tiles';

describe('tilePart', () => {
  it('is a whole tile of a coarser level below zoom 0', () =>
    expect(tilePart(-2, 3, 5)).toMatchObject({ level: 2, row: 5, column: 3, cells: 256, cellPixels: 1 }));

  it('is a part of a tile of level 0 above it', () => {
    // At zoom 4 a map tile shows 16 cells: number 18 begins at position 288, cell 32 of tile 1.
    expect(tilePart(4, 18, 17)).toEqual({ level: 0, row: 1, column: 1, firstRow: 16, firstColumn: 32, cells: 16, cellPixels: 16 });
  });

  it('covers every position once', () => {
    const starts = Array.from({ length: 40 }, (_, x) => tilePart(3, x, 0)).map((part) => part.column * 256 + part.firstColumn);
    expect(starts).toEqual(Array.from({ length: 40 }, (_, x) => 32 * x));
  });
});

describe('isVisible', () => {
  it('excludes the masked triangle and tiles outside the text', () => {
    expect(isVisible(0, 0, 0, 1000)).toBe(true);
    expect(isVisible(0, 1, 0, 1000)).toBe(false);
    expect(isVisible(0, 0, 3, 1000)).toBe(true);
    expect(isVisible(0, 0, 4, 1000)).toBe(false);
    expect(isVisible(0, -1, 0, 1000)).toBe(false);
  });
});

it('fits a text into the available pixels', () => {
  expect(2 ** fittingZoom(1000, 600) * 1000).toBeLessThanOrEqual(600);
  expect(2 ** (fittingZoom(1000, 600) + zoomStep) * 1000).toBeGreaterThan(600);
  expect(2 ** fittingZoom(9, 735) * 9).toBeGreaterThan(0.95 * 735);
  expect(fittingZoom(1, 600)).toBe(mostZoom - 0.5);
});

describe('TileCache', () => {
  it('loads once and evicts the least recently used', async () => {
    const cache = new TileCache<string>(2);
    const loads: string[] = [];
    const get = (key: string) => cache.get(key, async () => (loads.push(key), key));
    await Promise.all([get('a'), get('a'), get('b')]);
    await get('a');
    await get('c'); // drops b
    await get('a');
    await get('b');
    expect(loads).toEqual(['a', 'b', 'c', 'b']);
  });

  it('retries after a failure', async () => {
    const cache = new TileCache<number>();
    await expect(cache.get('a', () => Promise.reject(new Error('gone')))).rejects.toThrow('gone');
    await Promise.resolve();
    await expect(cache.get('a', async () => 7)).resolves.toBe(7);
  });
});
