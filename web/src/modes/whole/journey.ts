// The way of one token's data through the model, as stations and moves between them.

import { childOf, find, rootOf } from './find';
import { blockUnits, parallelUnits } from './parts';
import type { Point, Scene } from './scene';

export interface Station {
  name: string;
  /** The point that holds the token's vector here. */
  point: string | null;
  /** The row of the logit lens that reads the vector here. */
  lens: string | null;
  /** Where the picture shows it. */
  path: string[];
}

/** The row of the logit lens after a block, which is named as the input of the next one. */
export function rowAfter(layer: number, layers: number): string {
  return layer === layers - 1 ? 'final_post' : `${layer + 1}_pre`;
}

/** Words, embedding, after each half of each block, or after each block where its halves are parallel, prediction. */
export function stations(layers: number, parallel = false): Station[] {
  const blocks = Array.from({ length: layers }, (_, layer): Station[] => [
    ...(parallel ? [] : [{ name: `Block ${layer}, after attention`, point: `blocks.${layer}.hook_resid_mid`, lens: null, path: [`b${layer}`, 'mid'] }]),
    { name: parallel ? `After block ${layer}` : `Block ${layer}, after feed-forward`, point: `blocks.${layer}.hook_resid_post`, lens: rowAfter(layer, layers), path: [`b${layer}`] },
  ]);
  return [
    { name: 'The words', point: null, lens: null, path: ['entry', 'tokens'] },
    { name: 'As vectors', point: 'blocks.0.hook_resid_pre', lens: '0_pre', path: ['entry'] },
    ...blocks.flat(),
    { name: 'The prediction', point: 'unembed.hook_in', lens: 'final_post', path: ['exit'] },
  ];
}

/** Moves through a block. */
const movesOf = (parallel: boolean) => (parallel ? 1 : 2);

export function lastStation(layers: number, parallel = false): number {
  return movesOf(parallel) * layers + 2;
}

export interface Branch {
  layer: number;
  half: Half;
  /** How far the data is through the branch, from 0 to 1. */
  progress: number;
  points: Point[];
}

export interface Pulse {
  /** Where the token's data is on the residual stream. */
  at: Point;
  /** The halves of a block that it is in. */
  branches: Branch[];
  /** The block that it is in; −1 before the first and `layers` after the last. */
  layer: number;
}

function lengthOf(points: Point[]): number {
  let sum = 0;
  for (let index = 1; index < points.length; ++index) sum += Math.hypot(points[index].x - points[index - 1].x, points[index].y - points[index - 1].y);
  return sum;
}

/** The point at a share of the length of a line. */
export function along(points: Point[], share: number): Point {
  let left = Math.min(1, Math.max(0, share)) * lengthOf(points);
  for (let index = 1; index < points.length; ++index) {
    const [from, to] = [points[index - 1], points[index]];
    const length = Math.hypot(to.x - from.x, to.y - from.y);
    if (left <= length && length > 0) return { x: from.x + ((to.x - from.x) * left) / length, y: from.y + ((to.y - from.y) * left) / length };
    left -= length;
  }
  return points[points.length - 1];
}

/** The beginning of a line, up to a share of its length. */
export function partial(points: Point[], share: number): Point[] {
  let left = Math.min(1, Math.max(0, share)) * lengthOf(points);
  const passed = [points[0]];
  for (let index = 1; index < points.length; ++index) {
    const [from, to] = [points[index - 1], points[index]];
    const length = Math.hypot(to.x - from.x, to.y - from.y);
    if (left <= length) {
      const ratio = length > 0 ? left / length : 0;
      passed.push({ x: from.x + (to.x - from.x) * ratio, y: from.y + (to.y - from.y) * ratio });
      return passed;
    }
    passed.push(to);
    left -= length;
  }
  return passed;
}

/** A point of a block's inside in the scene. */
export function inBlock(scene: Scene, layer: number, x: number, y: number): Point {
  // The entry is the first child.
  const { box, scale } = childOf(rootOf(scene), scene.root.children[layer + 1]);
  return { x: box.x + x * scale, y: box.y + y * scale };
}

const halves = ['attention', 'mlp'] as const;
type Half = (typeof halves)[number];

/** Where a half leaves the residual stream and where it is added to it, in the units of the block. */
export function waysOf({ parallel }: Scene, half: Half): { fork: number; join: number } {
  const { fork, join } = half === 'attention' ? blockUnits.attention : blockUnits.feedForward;
  return { fork: parallel && half === 'mlp' ? parallelUnits.fork : fork, join };
}

/** From the residual stream through a half of a block and back to the residual stream. */
export function branchPoints(scene: Scene, layer: number, half: Half): Point[] {
  const { fork, join } = waysOf(scene, half);
  const inside = blockUnits.title + 230;
  const { below } = parallelUnits;
  // Feed-forward of a parallel block passes below attention to its own side.
  const up = half === 'mlp' && scene.parallel ? [[fork, below], [blockUnits.feedForward.fork, below], [blockUnits.feedForward.fork, inside]] : [[fork, inside]];
  return [[fork, blockUnits.residual], ...up, [join, inside], [join, blockUnits.residual]].map(([x, y]) => inBlock(scene, layer, x, y));
}

/** The residual stream of each move, from station to station. */
export function movePath(scene: Scene, layers: number, move: number): Point[] {
  const residual = (layer: number, from: number, to: number) => [inBlock(scene, layer, from, blockUnits.residual), inBlock(scene, layer, to, blockUnits.residual)];
  if (move === 0) {
    const { box } = find(scene, ['entry', 'token']);
    const { start } = scene;
    const turn = (start.x + box.x) / 2;
    const end = scene.legs[0][0];
    return [start, { x: turn, y: start.y }, { x: turn, y: end.y }, end];
  }
  if (move === lastStation(layers, scene.parallel) - 1) {
    const { box } = find(scene, ['exit', 'words']);
    const leg = scene.legs[layers];
    return [...leg, { x: box.x, y: leg[leg.length - 1].y }];
  }
  const layer = Math.floor((move - 1) / movesOf(scene.parallel));
  if (scene.parallel) return [...scene.legs[layer], ...residual(layer, 0, blockUnits.width)];
  if (move % 2 === 1) return [...scene.legs[layer], ...residual(layer, 0, blockUnits.attention.join + 45).slice(0, 2)];
  return residual(layer, blockUnits.attention.join + 45, blockUnits.width);
}

/** Where the data is at `time`, counted in stations. */
export function pulseAt(scene: Scene, layers: number, time: number): Pulse {
  const last = lastStation(layers, scene.parallel);
  const move = Math.min(last - 1, Math.max(0, Math.floor(time)));
  const at = along(movePath(scene, layers, move), time - move);
  const layer = move === 0 ? -1 : move === last - 1 ? layers : Math.floor((move - 1) / movesOf(scene.parallel));
  if (layer < 0 || layer >= layers) return { at, branches: [], layer };
  const entered = scene.parallel ? halves : [halves[(move + 1) % 2]];
  const branches = entered.flatMap((half): Branch[] => {
    const { fork, join } = waysOf(scene, half);
    const from = inBlock(scene, layer, fork, blockUnits.residual);
    const to = inBlock(scene, layer, join, blockUnits.residual);
    const progress = (at.x - from.x) / (to.x - from.x);
    // On a leg between two lines the data may be anywhere beside the block.
    const onPath = Math.abs(at.y - from.y) < 1e-6 * (1 + Math.abs(from.y));
    return onPath && progress > 0 && progress <= 1 ? [{ layer, half, progress, points: branchPoints(scene, layer, half) }] : [];
  });
  return { at, branches, layer };
}

/** When the data is half through the attention of a block. */
export function attentionTime(scene: Scene, layers: number, layer: number): number {
  const first = 1 + movesOf(scene.parallel) * layer;
  const parts = 100; // of the move
  const distances = Array.from({ length: parts }, (_, part) => {
    const branch = pulseAt(scene, layers, first + part / parts).branches.find((one) => one.half === 'attention' && one.layer === layer);
    return branch ? Math.abs(branch.progress - 0.5) : Infinity;
  });
  return first + distances.indexOf(Math.min(...distances)) / parts;
}

/** The residual stream that the data has passed at `time`. */
export function travelledPath(scene: Scene, layers: number, time: number): Point[] {
  const last = lastStation(layers, scene.parallel);
  const move = Math.min(last - 1, Math.max(0, Math.floor(time)));
  const passed: Point[] = [];
  for (let before = 0; before < move; ++before) passed.push(...movePath(scene, layers, before));
  passed.push(...partial(movePath(scene, layers, move), time - move));
  return passed;
}
