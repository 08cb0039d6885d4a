import { describe, expect, it } from 'vitest';
import type { ParameterCount } from '../../lib/types';
import { families } from '../../lib/families';
import { describedBy, partsOf, shapeOf, type Shape } from '../count/shape';
import { fit, flight, toScene, toScreen, zoomAt } from './camera';
import { insideShown, isOpen, shownPart, visibleCells } from './detail';
import { cellAt, cellBox, childOf, find, hit, placeIn, rootOf, smallestCell, towards, type Found } from './find';
import { attentionTime, lastStation, movePath, partial, pulseAt, stations, waysOf } from './journey';
import { countedIn, gridOf, headOfSource, headUnits, parametersOf, windowOf, type Box, type Subject } from './parts';
import { emptyNumbers, fill } from './numbers';
import { arrangementFor, layOut, type Scene } from './scene';
import { fitting } from './text_width';
import { tilesIn, tilesOf } from './weight_tiles';

const gpt3 = shapeOf({ n_layer: 96, n_head: 96, n_embd: 12288, n_inner: 49152, vocab_size: 50257, n_positions: 2048, tie_word_embeddings: true });
const small: Shape = shapeOf({ layers: 4, heads: 6, head_size: 32, channels: 192, feed_forward: 768, vocabulary: 1536, context: 256, tied: false });
const withHeads = (heads: number, layers: number): Shape => shapeOf({ ...small, layers, heads, channels: 32 * heads });
const subjectOf = (shape: Shape): Subject => ({ shape, architecture: describedBy(shape), tokens: 9, candidates: 10, chosen: 8 });
const canvas = { width: 1000, height: 560 };

function sceneOf(shape: Shape, expanded: number[] = [], aspect = 1.8): Scene {
  return layOut(subjectOf(shape), arrangementFor(shape.layers, aspect), Array.from({ length: shape.layers }, (_, layer) => (expanded.includes(layer) ? 1 : 0)));
}

/** Rounding errors aside. */
const slack = 1e-6;
const overlap = (a: Box, b: Box) => Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x) > slack && Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y) > slack;
const within = (inner: Box, outer: Box) => inner.x > outer.x - slack && inner.y > outer.y - slack && inner.x + inner.width < outer.x + outer.width + slack && inner.y + inner.height < outer.y + outer.height + slack;

/** All parts; of the blocks and heads, which are alike inside, only the first and last with what is in them. */
function* walk(found: Found): Generator<Found> {
  yield found;
  const { children } = found.part;
  for (const [index, part] of children.entries()) {
    const child = childOf(found, part);
    const alike = (part.kind === 'block' || part.kind === 'head') && index > 1 && index < children.length - 2;
    if (alike) yield child;
    else yield* walk(child);
  }
}

describe('the layout', () => {
  for (const layers of [1, 4, 12, 96]) {
    for (const [heads, expanded] of [[1, []], [6, [0]], [12, [0, layers - 1]], [96, Array.from({ length: layers }, (_, layer) => layer)]] as [number, number[]][]) {
      for (const aspect of [0.8, 2]) {
        it(`of ${layers} blocks with ${heads} heads, ${expanded.length} expanded, at ${aspect}, has no overlaps and nothing outside`, () => {
          const scene = sceneOf(withHeads(heads, layers), expanded, aspect);
          const wrong: string[] = [];
          for (const found of walk(rootOf(scene))) {
            const boxes = found.part.children.map((part) => part.box);
            const own = { x: 0, y: 0, ...found.part.inner };
            boxes.forEach((box, index) => {
              if (!within(box, own) || boxes.slice(index + 1).some((other) => overlap(box, other))) wrong.push([...found.path, found.part.children[index].key].join('/'));
            });
          }
          expect(wrong).toEqual([]);
        });
      }
    }
  }

  it('reaches every part by its path and by pointing at it', () => {
    const scene = sceneOf({ ...small, layers: 12 }, [3]);
    let count = 0;
    for (const found of walk(rootOf(scene))) {
      expect(find(scene, found.path).part).toBe(found.part);
      // Somewhere in a part, nothing that is in it covers it: try its border.
      const { x, y, width, height } = found.box;
      expect(hit(scene, { x: x + 0.001 * width, y: y + 0.001 * height }).path.slice(0, found.path.length)).toEqual(found.path);
      count += 1;
    }
    expect(count).toBeGreaterThan(100);
  });

  it('joins the residual stream: every leg begins where a block ends', () => {
    for (const layers of [1, 4, 12, 96]) {
      const scene = sceneOf({ ...small, layers }, [0]);
      expect(scene.legs.length).toBe(layers + 1);
      for (let layer = 0; layer < layers; ++layer) {
        const { box } = find(scene, [`b${layer}`]);
        const before = scene.legs[layer].at(-1)!;
        const after = scene.legs[layer + 1][0];
        expect(before.x).toBeCloseTo(box.x);
        expect(after.x).toBeCloseTo(box.x + box.width);
        expect(before.y).toBeCloseTo(after.y);
      }
    }
  });

  it('keeps the other blocks’ sizes and order while one is expanded', () => {
    const before = sceneOf({ ...small, layers: 12 });
    const after = sceneOf({ ...small, layers: 12 }, [5]);
    expect(after.columns).toBe(before.columns);
    expect(find(after, ['b5']).box.width).toBeGreaterThan(2 * find(before, ['b5']).box.width);
    expect(find(after, ['b4']).box.width).toBeCloseTo(find(before, ['b4']).box.width);
  });

  it('suits the canvas: more blocks in a line where it is wide', () => {
    expect(arrangementFor(1, 2).columns).toBe(1);
    expect(arrangementFor(96, 2).columns).toBeGreaterThan(arrangementFor(96, 0.6).columns);
    expect(arrangementFor(4, 0.7).stacked).toBe(true);
    expect(arrangementFor(4, 2).stacked).toBe(false);
    for (const aspect of [0.7, 1.8]) {
      const { box } = rootOf(sceneOf(gpt3, [], aspect));
      expect(Math.abs(Math.log(box.width / box.height / aspect))).toBeLessThan(0.5);
    }
  });

  it('places heads in a grid with their shape', () => {
    for (const count of [1, 6, 12, 25, 96]) {
      const grid = gridOf(count, { x: 0, y: 0, width: 464, height: 402 }, headUnits);
      expect(grid.length).toBe(count);
      for (const { width, height } of grid) expect(width / height).toBeCloseTo(headUnits.width / headUnits.height);
    }
  });
});

describe('the parameters', () => {
  const count = {
    total: 174604259328, embedding: 617558016, position: 25165824,
    per_head: { query: 1572864, key: 1572864, value_down: 1572864, value_up: 1572864, total: 6291456 },
    attention_total: 57982058496, feed_forward_total: 115964116992, biases: 10616832, norms: 4743168, unembedding: 0, flops_per_token: 353959305216,
  } as ParameterCount;

  it('of each part of GPT-3 equal those of Count', () => {
    const { root } = sceneOf(gpt3);
    const counted = countedIn(root);
    const stored = partsOf(count, gpt3).filter(({ parameters }) => parameters > 0);
    for (const { id, parameters } of stored) expect(counted[id as keyof typeof counted], id).toBe(parameters);
    expect(Object.keys(counted).length).toBe(stored.length);
    expect(parametersOf(root)).toBe(count.total);
    const head = find(sceneOf(gpt3), ['b7', 'attention', 'h95']).part;
    expect(parametersOf(head)).toBe(count.per_head.total + 3 * gpt3.head_size);
  });

  it('count an unembedding of its own only where it is not tied', () => {
    expect(countedIn(sceneOf(small).root).unembedding).toBe(small.vocabulary * 192);
    expect(countedIn(sceneOf({ ...small, tied: true }).root).unembedding).toBeUndefined();
  });

  it('of a model that shares keys, has gates and no biases are counted once', () => {
    const shape = shapeOf({ layers: 2, heads: 4, head_size: 12, channels: 32, feed_forward: 44, vocabulary: 48, context: 64, tied: true }, families.qwen3);
    const { root } = layOut({ ...subjectOf(shape), architecture: families.qwen3 }, { columns: 2, stacked: false }, []);
    // Two key/value heads for four query heads; three matrices of neurons; gains of five norms of 32, and of queries and keys of 12 in each block.
    expect(countedIn(root)).toEqual({
      embedding: 48 * 32, query: 2 * 4 * 32 * 12, key: 2 * 2 * 32 * 12, value: 2 * 2 * 32 * 12, output: 2 * 4 * 12 * 32, gate: 2 * 32 * 44, up: 2 * 32 * 44, down: 2 * 32 * 44, norms: 5 * 32 + 2 * 2 * 12,
    });
  });

  it('leave out biases where there are none', () => {
    expect(countedIn(sceneOf({ ...small, bias: false }).root).biases).toBeUndefined();
    // Query, key, value and output, and both layers of feed-forward.
    expect(countedIn(sceneOf(small).root).biases).toBe(4 * (4 * 192 + 768 + 192));
  });
});

describe('every family', () => {
  const pictured = Object.entries(families).map(([name, architecture]) => {
    const shape = shapeOf({ layers: 3, heads: 4, head_size: 8, channels: 32, feed_forward: 56, vocabulary: 48, context: 64, tied: false }, architecture);
    const scene = layOut({ ...subjectOf(shape), architecture }, { columns: 2, stacked: false }, [1, 0, 0]);
    return { name, architecture, shape, scene };
  });

  it('has no overlaps and nothing outside', () => {
    for (const { name, scene } of pictured) {
      const wrong: string[] = [];
      for (const found of walk(rootOf(scene))) {
        const boxes = found.part.children.map((part) => part.box);
        const own = { x: 0, y: 0, ...found.part.inner };
        boxes.forEach((box, index) => {
          if (!within(box, own) || boxes.slice(index + 1).some((other) => overlap(box, other))) wrong.push([...found.path, found.part.children[index].key].join('/'));
        });
      }
      expect(wrong, name).toEqual([]);
    }
  });

  it('shows the points that the model has, and no others', () => {
    for (const { name, architecture, scene } of pictured) {
      const points = new Set([...walk(rootOf(scene))].flatMap(({ part: { source } }) => (source?.from === 'activation' ? [source.point] : [])));
      expect(points.has('hook_pos_embed'), name).toBe(architecture.positions === 'learned');
      expect(points.has('attn.hook_rot_q'), name).toBe(name !== 'gpt2');
      expect(points.has('mlp.hook_pre_linear'), name).toBe(architecture.gated);
      expect(points.has('hook_resid_mid'), name).toBe(architecture.residual === 'sequential');
      expect(find(scene, ['b0', 'norm1']).part.term, name).toBe(architecture.norm === 'rms' ? 'RMS norm 1' : 'layer norm 1');
    }
  });

  it('finds shared keys and values under the head that has them', () => {
    const { scene, shape } = pictured.find(({ name }) => name === 'llama')!;
    const at = (key: string, head: number) => headOfSource(find(scene, ['b0', 'attention', `h${head}`, key]).part.source!, shape, head);
    for (const key of ['wk', 'wv', 'k', 'v', 'rot_k']) expect([0, 1, 2, 3].map((head) => at(key, head)), key).toEqual([0, 0, 1, 1]);
    for (const key of ['wq', 'wo', 'q', 'rot_q', 'z', 'pattern', 'result']) expect(at(key, 3), key).toBe(3);
  });

  it('sends the data through both halves of a parallel block at once, and reads the stream before it', () => {
    const { scene, architecture } = pictured.find(({ name }) => name === 'neox')!;
    expect([scene.parallel, architecture.residual]).toEqual([true, 'parallel']);
    const way = stations(3, true);
    expect(way.length).toBe(lastStation(3, true) + 1);
    for (const { path, point } of way) {
      expect(find(scene, path).path).toEqual(path);
      expect(point ?? '').not.toContain('resid_mid');
    }
    const together = new Set<number>();
    for (let time = 0; time <= lastStation(3, true); time += 0.01) {
      const { branches } = pulseAt(scene, 3, time);
      if (branches.length === 2) together.add(branches[0].layer);
    }
    expect([...together]).toEqual([0, 1, 2]);
    for (const half of ['attention', 'mlp'] as const) expect(waysOf(scene, half).fork).toBeLessThan(waysOf(scene, 'attention').join);
    for (let move = 1; move < lastStation(3, true); ++move) {
      const [end, start] = [movePath(scene, 3, move - 1).at(-1)!, movePath(scene, 3, move)[0]];
      expect(Math.hypot(end.x - start.x, end.y - start.y)).toBeLessThan(slack);
    }
  });
});

describe('cells', () => {
  const scene = sceneOf(small);
  const matrix = find(scene, ['b3', 'attention', 'h1', 'q']);

  it('are found where they are', () => {
    for (const cell of [{ row: 0, column: 0 }, { row: 5, column: 17 }, { row: 8, column: 31 }]) {
      const { x, y, width, height } = cellBox(matrix, cell);
      expect(cellAt(matrix, { x: x + width / 2, y: y + height / 2 })).toEqual(cell);
      expect(within({ x, y, width, height }, matrix.box)).toBe(true);
    }
    expect(cellAt(matrix, { x: matrix.box.x, y: matrix.box.y })).toBeNull();
  });

  it('have a place in the model', () => {
    expect(placeIn(matrix.path)).toEqual({ layer: 3, head: 1 });
    expect(placeIn(['entry', 'token'])).toEqual({ layer: -1, head: -1 });
    expect(smallestCell(scene)).toBeLessThan(cellBox(matrix, { row: 0, column: 0 }).width);
  });

  it('are drawn only where they are in sight', () => {
    expect(visibleCells({ x: -100, y: 0, width: 1000, height: 100 }, 10, 100, { width: 200, height: 50 })).toEqual({ left: 10, right: 30, top: 0, bottom: 5 });
    const away = visibleCells({ x: 300, y: 0, width: 100, height: 100 }, 10, 10, { width: 200, height: 50 });
    expect(away.right).toBe(away.left);
  });
});

describe('the camera', () => {
  const box = { x: 100, y: 50, width: 30, height: 20 };

  it('shows a box in the middle, whole', () => {
    const camera = fit(box, canvas, 0.1);
    const corner = toScreen(camera, canvas, box);
    expect(corner.y).toBeCloseTo(56);
    expect(toScreen(camera, canvas, { x: 115, y: 60 })).toEqual({ x: 500, y: 280 });
    const back = toScene(camera, canvas, corner);
    expect(back.x).toBeCloseTo(100);
    expect(back.y).toBeCloseTo(50);
  });

  it('zooms about a point, within limits', () => {
    const camera = fit(box, canvas);
    const at = { x: 700, y: 100 };
    const fixed = toScene(camera, canvas, at);
    const zoomed = zoomAt(camera, canvas, at, 3, 0.01, 1e6);
    expect(zoomed.scale).toBeCloseTo(3 * camera.scale);
    expect(toScreen(zoomed, canvas, fixed).x).toBeCloseTo(700);
    expect(zoomAt(camera, canvas, at, 1e9, 0.01, 80).scale).toBe(80);
    expect(zoomAt(camera, canvas, at, 1e-9, 2, 80).scale).toBe(2);
  });

  it('flies from one view to another, far or near or on the spot', () => {
    const from = { x: 0, y: 0, scale: 1 };
    for (const to of [{ x: 1000, y: 300, scale: 500 }, { x: 5000, y: 0, scale: 1 }, { x: 0, y: 0, scale: 40 }, { x: 1e-9, y: 0, scale: 0.1 }]) {
      const { at, length } = flight(from, to, canvas);
      expect(at(0)).toEqual(from);
      expect(at(1)).toEqual(to);
      expect(length).toBeGreaterThan(0);
      for (const [t, near] of [[1e-6, from], [1 - 1e-6, to]] as const) {
        const camera = at(t);
        expect(Math.abs(camera.x - near.x) * near.scale).toBeLessThan(1);
        expect(camera.scale / near.scale).toBeCloseTo(1, 2);
      }
      for (let t = 0; t <= 1; t += 0.05) for (const number of Object.values(at(t))) expect(Number.isFinite(number)).toBe(true);
    }
  });
});

describe('the detail', () => {
  it('grows with the size on the screen', () => {
    const head = find(sceneOf(small), ['b0', 'attention', 'h0']).part;
    expect(isOpen(head, 60)).toBe(false);
    expect(isOpen(head, 600)).toBe(true);
    expect(insideShown(head, 60)).toBe(0);
    expect(insideShown(head, 600)).toBe(1);
    expect(isOpen(find(sceneOf(small), ['b0', 'in']).part, 1e6)).toBe(false);
  });

  it('says which part is shown', () => {
    const scene = sceneOf(small, [1]);
    const children = (found: Found) => found.part.children.map((part) => childOf(found, part));
    expect(shownPart(rootOf(scene), children, fit(scene.root.box, canvas), canvas).path).toEqual([]);
    for (const path of [['b1'], ['b2', 'attention'], ['b1', 'attention', 'h3'], ['b1', 'attention', 'h3', 'q']]) {
      expect(shownPart(rootOf(scene), children, fit(find(scene, path).box, canvas, 0.05), canvas).path).toEqual(path);
    }
  });

  it('opens one level with each click, or goes to the side', () => {
    const deep = ['b1', 'attention', 'h3', 'q'];
    expect(towards([], deep)).toEqual(['b1']);
    expect(towards(['b1'], deep)).toEqual(['b1', 'attention']);
    expect(towards(['b1', 'attention', 'h2'], deep)).toEqual(['b1', 'attention', 'h3']);
    expect(towards(deep, deep)).toEqual(deep);
    expect(towards(['b1'], [])).toEqual([]);
  });

  it('keeps the chosen token in a window of a long text', () => {
    expect(windowOf(12, 3)).toEqual({ first: 0, count: 12 });
    for (const chosen of [0, 500, 1023]) {
      const { first, count } = windowOf(1024, chosen);
      expect(first).toBeGreaterThanOrEqual(0);
      expect(first + count).toBeLessThanOrEqual(1024);
      expect(chosen >= first && chosen < first + count).toBe(true);
    }
  });
});

describe('the journey', () => {
  for (const layers of [1, 4, 96]) {
    it(`through ${layers} blocks is one way without gaps`, () => {
      const scene = sceneOf({ ...small, layers });
      const way = stations(layers);
      expect(way.length).toBe(lastStation(layers) + 1);
      for (const { path } of way) expect(find(scene, path).path).toEqual(path);
      for (let move = 1; move < lastStation(layers); ++move) {
        const [end, start] = [movePath(scene, layers, move - 1).at(-1)!, movePath(scene, layers, move)[0]];
        expect(Math.hypot(end.x - start.x, end.y - start.y)).toBeLessThan(slack);
      }
    });
  }

  it('passes through both branches of each block', () => {
    const scene = sceneOf(small);
    const seen = new Set<string>();
    for (let time = 0; time <= lastStation(4); time += 0.01) {
      const { branches } = pulseAt(scene, 4, time);
      expect(branches.length).toBeLessThan(2);
      for (const { layer, half } of branches) seen.add(`${layer} ${half}`);
    }
    expect(seen.size).toBe(8);
  });

  it('is half through the attention of each block when Play enters it', () => {
    const scene = sceneOf(small);
    const times = [0, 1, 2, 3].map((layer) => attentionTime(scene, 4, layer));
    times.forEach((time, layer) => {
      const [branch] = pulseAt(scene, 4, time).branches;
      expect(branch).toMatchObject({ layer, half: 'attention' });
      expect(Math.abs(branch.progress - 0.5)).toBeLessThan(0.1);
    });
    expect([...times].sort((a, b) => a - b)).toEqual(times);
  });

  it('shows the part of a line that is passed', () => {
    const line = [{ x: 0, y: 0 }, { x: 10, y: 0 }, { x: 10, y: 10 }];
    expect(partial(line, 0.75)).toEqual([{ x: 0, y: 0 }, { x: 10, y: 0 }, { x: 10, y: 5 }]);
  });
});

describe('weights', () => {
  const all = (rows: number, columns: number) => ({ top: 0, left: 0, bottom: rows, right: columns });

  it('of a small matrix come as a whole, whatever is in sight', () => {
    expect(tilesOf(192, 768, { top: 100, bottom: 101, left: 7, right: 9 })).toEqual([all(192, 768)]);
    expect(tilesIn(512, 512, all(512, 512))).toBe(1);
  });

  it('of a large one come in tiles in sight, each once, the middle first', () => {
    for (const [rows, columns] of [[768, 3072], [3072, 768], [768, 768], [64, 8192]]) {
      const tiles = tilesOf(rows, columns, all(rows, columns));
      expect(tiles.length).toBe(tilesIn(rows, columns, all(rows, columns)));
      expect(tiles.length).toBeGreaterThan(1);
      expect(tiles.reduce((sum, { top, bottom, left, right }) => sum + (bottom - top) * (right - left), 0)).toBe(rows * columns);
      for (const { top, bottom, left, right } of tiles) expect((bottom - top) * (right - left)).toBeLessThanOrEqual(256 * 1024);
      expect(new Set(tiles.map(({ top, left }) => `${top} ${left}`)).size).toBe(tiles.length);
    }
    const visible = { top: 300, bottom: 340, left: 1000, right: 1100 };
    const [tile, ...others] = tilesOf(768, 3072, visible);
    expect(tile.top <= 300 && tile.bottom >= 340 && tile.left <= 1000 && tile.right > 1000).toBe(true);
    expect(others.length).toBeLessThanOrEqual(1);
    expect(tilesOf(12288, 49152, all(12288, 49152))).toEqual([]);
  });

  it('go to their places, and what is missing stays missing', () => {
    const numbers = emptyNumbers(3, 4);
    fill(numbers, { top: 1, bottom: 3, left: 1, right: 3 }, Float32Array.of(1, 2, 3, 4));
    expect([...numbers.data]).toEqual([NaN, NaN, NaN, NaN, NaN, 1, 2, NaN, NaN, 3, 4, NaN]);
    expect([numbers.filled, numbers.extent > 0]).toEqual([4, true]);
  });
});

describe('texts', () => {
  it('are the first that fit; the last one is cut', () => {
    const widthOf = (text: string) => 10 * text.length;
    expect(fitting(['long name', 'short'], 60, widthOf)).toBe('short');
    expect(fitting(['a long name'], 60, widthOf)).toBe('a lon…');
    expect(fitting(['a long name'], 20, widthOf)).toBe('');
  });
});
