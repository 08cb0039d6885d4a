// The moving picture: camera, expansion of blocks, animation, pointing. Draws only when something has changed.

import { eased, fit, flight, keptOver, panBy, toScene, zoomAt, type Camera, type Size } from './camera';
import { isOpen, pointedCell, shownPart } from './detail';
import { cellAt, cellBox, childOf, find, hit, placeIn, rootOf, smallestCell, type Cell, type Found } from './find';
import { blockParts, type Box, type Part, type Subject } from './parts';
import { draw } from './painter';
import { arrangementFor, layOut, type Point, type Scene } from './scene';
import { toggleOf, toggleRadius } from './block_marks';
import type { View } from './view';

export interface Pointed {
  found: Found;
  cell: Cell | null;
  /** Whether it is over the button that expands a block. */
  onToggle: boolean;
}

/** What the engine is told and tells. */
export interface Hooks {
  /** Everything to draw but the scene and the camera. */
  view: () => Omit<View, 'scene' | 'camera' | 'canvas' | 'expanded' | 'layers' | 'moving'>;
  /** The part shown has changed. */
  shown: (path: string[]) => void;
  /** Moves the data; returns whether it goes on moving. */
  tick: (seconds: number) => boolean;
  reduced: () => boolean;
}

const largestCell = 260; // pixels
/** Without a move by hand for this long, the picture is at rest. */
const restMilliseconds = 140;
const smallestModel = 0.6; // of the size at which it fits

export class Engine {
  camera: Camera = { x: 0, y: 0, scale: 1 };
  canvas: Size = { width: 1, height: 1 };
  expanded = new Set<number>();
  scene: Scene;
  shown: string[] = [];
  #subject: Subject;
  #inside: Part[];
  #expansion: number[];
  #context: CanvasRenderingContext2D;
  #ratio = 1;
  #flight: { at: (t: number) => Camera; began: number; duration: number; path: string[] } | null = null;
  #growth: { from: number[]; to: number[]; began: number; duration: number } | null = null;
  #frame = 0;
  #last = 0;
  #closest = 1;
  /** When the camera was last moved by hand. */
  #handled = -Infinity;
  #resting = 0;
  /** Where the camera was last sent, until it is moved by hand. */
  #aim: string[] | null = null;

  constructor(private readonly element: HTMLCanvasElement, subject: Subject, private readonly hooks: Hooks) {
    this.#context = element.getContext('2d', { alpha: false })!;
    this.#subject = subject;
    this.#inside = blockParts(subject);
    this.#expansion = Array(subject.shape.layers).fill(0);
    this.scene = this.#laidOut(this.#expansion);
  }

  close(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#resting);
  }

  #laidOut(expansion: number[]): Scene {
    return layOut(this.#subject, arrangementFor(this.#subject.shape.layers, this.canvas.width / this.canvas.height), expansion, this.#inside);
  }

  /** Another number of tokens or candidates in the same model. */
  setSubject(subject: Subject): void {
    this.#subject = subject;
    this.#inside = blockParts(subject);
    this.#arranged();
  }

  #arranged(): void {
    this.scene = this.#laidOut(this.#expansion);
    this.#closest = Math.max(4, largestCell / smallestCell(this.scene));
    this.redraw();
  }

  resize(size: Size, ratio: number): void {
    if (size.width === this.canvas.width && size.height === this.canvas.height && ratio === this.#ratio) return;
    const path = this.#aim ?? this.shown;
    this.canvas = size;
    this.#ratio = ratio;
    this.element.width = Math.round(size.width * ratio);
    this.element.height = Math.round(size.height * ratio);
    this.#arranged();
    this.#flight = null;
    this.camera = this.#cameraOf(path, this.scene);
  }

  get #whole(): Camera {
    return fit(this.scene.root.box, this.canvas, 0.025);
  }

  #cameraOf(path: string[], scene: Scene): Camera {
    const found = find(scene, path);
    const last = path[path.length - 1] ?? '';
    const cell = /^(\d+)\.(\d+)$/.exec(last);
    if (cell && found.part.rows > 0) {
      const row = Math.min(found.part.rows - 1, Number(cell[1]));
      const column = Math.min(found.part.columns - 1, Number(cell[2]));
      const box = cellBox(found, { row, column });
      const camera = fit(box, this.canvas, 0.05);
      // Cells are often wide and low: some of their neighbours are shown too.
      return { ...camera, scale: Math.min(this.#closest, (0.16 * this.canvas.width) / box.width, (0.3 * this.canvas.height) / box.height) };
    }
    return fit(found.box, this.canvas, found.path.length === 0 ? 0.025 : found.part.kind === 'matrix' ? 0.09 : 0.05);
  }

  /** Shows the part with this path; `{row}.{column}` at its end is a cell. */
  fly(path: string[], animated = true): void {
    const scene = this.#growth ? this.#laidOut(this.#growth.to) : this.scene;
    const to = this.#cameraOf(path, scene);
    const way = flight(this.camera, to, this.canvas);
    const found = find(scene, path);
    this.#tell(found.path);
    this.#aim = path;
    if (!animated || this.hooks.reduced()) {
      this.#flight = null;
      this.camera = to;
    } else {
      const duration = this.#growth ? this.#growth.duration : Math.min(1300, 350 + 260 * way.length);
      this.#flight = { at: way.at, began: performance.now(), duration, path: found.path };
    }
    this.redraw();
  }

  /** Expands or collapses blocks in place; the others make room. */
  expand(layers: Set<number>, animated = true): void {
    this.expanded = layers;
    const to = this.#expansion.map((_, layer) => (layers.has(layer) ? 1 : 0));
    if (to.every((target, layer) => target === this.#expansion[layer])) return;
    if (!animated || this.hooks.reduced()) {
      this.#expansion = to;
      this.#growth = null;
      this.#arranged();
    } else {
      this.#growth = { from: [...this.#expansion], to, began: performance.now(), duration: 650 };
    }
    this.redraw();
  }

  zoom(factor: number, at: Point = { x: this.canvas.width / 2, y: this.canvas.height / 2 }): boolean {
    const before = this.camera;
    this.#flight = null;
    this.#aim = null;
    this.camera = keptOver(zoomAt(before, this.canvas, at, factor, smallestModel * this.#whole.scale, this.#closest), this.scene.root.box);
    this.#moved();
    return this.camera.scale !== before.scale;
  }

  pan(right: number, down: number): void {
    this.#flight = null;
    this.#aim = null;
    this.camera = keptOver(panBy(this.camera, right, down), this.scene.root.box);
    this.#moved();
  }

  /** Draws the picture in full once it is no longer moved by hand. */
  #rest(): void {
    clearTimeout(this.#resting);
    this.#resting = window.setTimeout(() => this.redraw(), restMilliseconds);
  }

  #moved(): void {
    this.#handled = performance.now();
    this.#tell(shownPart(rootOf(this.scene), this.childrenOf, this.camera, this.canvas).path);
    this.redraw();
  }

  #tell(path: string[]): void {
    if (path.join('/') === this.shown.join('/')) return;
    this.shown = path;
    this.hooks.shown(path);
  }

  readonly childrenOf = (found: Found): Found[] => found.part.children.map((part) => childOf(found, part));

  pointAt(screen: Point): Pointed {
    const point = toScene(this.camera, this.canvas, screen);
    const found = hit(this.scene, point, (one) => isOpen(one.part, one.box.width * this.camera.scale));
    const block = find(this.scene, found.path.slice(0, 1));
    const at = block.part.kind === 'block' ? toggleOf(this.onScreen(block.box)) : null;
    const onToggle = at !== null && Math.hypot(screen.x - at.x, screen.y - at.y) <= toggleRadius + 5;
    const cell = cellAt(found, point);
    if (!cell) return { found, cell: null, onToggle };
    const size = this.onScreen(cellBox(found, cell));
    return { found, cell: Math.min(size.width, size.height) >= pointedCell ? cell : null, onToggle };
  }

  onScreen(box: Box): Box {
    const { scale } = this.camera;
    return { x: (box.x - this.camera.x) * scale + this.canvas.width / 2, y: (box.y - this.camera.y) * scale + this.canvas.height / 2, width: box.width * scale, height: box.height * scale };
  }

  /** Moves the camera just so far that a cell is in sight and large enough to be read. */
  reveal(found: Found, cell: Cell): void {
    const box = this.onScreen(cellBox(found, cell));
    const [right, bottom] = [this.canvas.width - 30, this.canvas.height - 30];
    const across = box.x < 30 ? box.x - 30 : box.x + box.width > right ? Math.min(box.x - 30, box.x + box.width - right) : 0;
    const down = box.y < 30 ? box.y - 30 : box.y + box.height > bottom ? Math.min(box.y - 30, box.y + box.height - bottom) : 0;
    if (across !== 0 || down !== 0) {
      this.#flight = null;
      this.camera = panBy(this.camera, across, down);
    }
    this.redraw();
  }

  get moving(): boolean {
    return this.#flight !== null || this.#growth !== null;
  }

  redraw(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame((now) => this.#paint(now));
  }

  #paint(now: number): void {
    this.#frame = 0;
    const seconds = this.#last === 0 ? 0 : Math.min(0.1, (now - this.#last) / 1000);
    this.#grow(now);
    this.#follow(now);
    const playing = this.hooks.tick(seconds);
    const again = playing || this.moving;
    this.#last = again ? now : 0;
    this.#context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    const moving = this.moving || now - this.#handled < restMilliseconds;
    const unfinished = draw(this.#context, { ...this.hooks.view(), scene: this.scene, camera: this.camera, canvas: this.canvas, expanded: this.expanded, layers: this.#subject.shape.layers, moving });
    if (again || unfinished) this.redraw();
    else if (moving) this.#rest();
  }

  #grow(now: number): void {
    const growth = this.#growth;
    if (!growth) return;
    const t = Math.min(1, Math.max(0, (now - growth.began) / growth.duration));
    this.#expansion = growth.to.map((to, layer) => growth.from[layer] + (to - growth.from[layer]) * eased(t));
    this.scene = this.#laidOut(this.#expansion);
    if (t === 1) this.#growth = null;
  }

  #follow(now: number): void {
    const flown = this.#flight;
    if (!flown) return;
    const t = Math.min(1, Math.max(0, (now - flown.began) / flown.duration));
    this.camera = flown.at(eased(t));
    if (t === 1) this.#flight = null;
  }

  /** The block that a path is in; −1 outside of the blocks. */
  layerOf(path: string[]): number {
    return placeIn(path).layer;
  }
}
