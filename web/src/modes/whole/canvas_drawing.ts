// Draws lines, text and boxes at their places on the screen.

import { isVisible, least } from './detail';
import type { Found } from './find';
import { drawImageOf, lastImageOf } from './images';
import type { Numbers } from './numbers';
import type { Box } from './parts';
import type { Point } from './scene';
import { fitting, relativeWidth } from './text_width';
import type { View } from './view';

/** No new image is begun in a frame that has taken this long. */
const movingMilliseconds = 8;
const restingMilliseconds = 14;

export class CanvasDrawing {
  /** Whether some images wait for the next frame. */
  unfinished = false;
  readonly #began = performance.now();
  #font = { size: 0, weight: 0, family: '' };

  constructor(readonly context: CanvasRenderingContext2D, readonly view: View) {}

  /** A part's box in pixels. */
  onScreen({ box }: { box: Box }): Box {
    const { camera, canvas } = this.view;
    const { scale } = camera;
    return { x: (box.x - camera.x) * scale + canvas.width / 2, y: (box.y - camera.y) * scale + canvas.height / 2, width: box.width * scale, height: box.height * scale };
  }

  toScreen({ x, y }: Point): Point {
    const { camera, canvas } = this.view;
    return { x: (x - camera.x) * camera.scale + canvas.width / 2, y: (y - camera.y) * camera.scale + canvas.height / 2 };
  }

  scrollToSelected(found: Found): boolean {
    const { x, y, width, height } = this.onScreen(found);
    return width >= least && isVisible(x, y, width, height, this.view.canvas);
  }

  font(size: number, weight = 400, mono = false): void {
    const { ink, moving } = this.view;
    // Letters of a new size are drawn anew: while they grow, whole sizes are enough.
    const steps = moving ? 1 : 2;
    const [rounded, family] = [Math.round(steps * size) / steps, mono ? ink.mono : ink.sans];
    if (rounded === this.#font.size && weight === this.#font.weight && family === this.#font.family) return;
    this.#font = { size: rounded, weight, family };
    this.context.font = `${weight} ${rounded}px ${family}`;
  }

  widthOf(text: string): number {
    return this.#font.size * relativeWidth(text, this.#font.weight, this.#font.family);
  }

  /** The first of the texts that fits in `room` pixels, or what fits of the last one. */
  fitting(texts: string[], room: number): string {
    return fitting(texts, room, (text) => this.widthOf(text));
  }

  text(text: string, x: number, y: number, colour: string, align: CanvasTextAlign = 'left'): void {
    if (text === '' || y < -20 || y > this.view.canvas.height + 20) return;
    this.context.fillStyle = colour;
    this.context.textAlign = align;
    this.context.fillText(text, x, y);
  }

  /** The image of a matrix; the last one, or none, where this frame has no time left for a new one. */
  imageOf(numbers: Numbers): ImageBitmap | null {
    const last = lastImageOf(numbers, this.view.ink.dark);
    if (last?.complete) return last.image;
    const spent = performance.now() - this.#began;
    if (spent < (this.view.moving ? movingMilliseconds : restingMilliseconds)) return drawImageOf(numbers, this.view.ink.dark);
    this.unfinished = true;
    return last?.image ?? null;
  }

  rounded({ x, y, width, height }: Box, radius: number): void {
    const context = this.context;
    context.beginPath();
    // Far beyond the canvas, corners are out of sight and large numbers lose precision.
    const { canvas } = this.view;
    const far = 200;
    const [left, top] = [Math.max(x, -far), Math.max(y, -far)];
    const [right, bottom] = [Math.min(x + width, canvas.width + far), Math.min(y + height, canvas.height + far)];
    context.roundRect(left, top, right - left, bottom - top, Math.min(radius, width / 2, height / 2));
  }

  card(found: Found): void {
    const { ink, pointed } = this.view;
    const area = this.onScreen(found);
    const context = this.context;
    this.rounded(area, Math.min(14, area.width * 0.06));
    context.fillStyle = found.part.kind === 'attention' || found.part.kind === 'feed-forward' ? ink.sunken : ink.card;
    context.fill();
    const isPointed = pointed !== null && pointed.path.join('/') === found.path.join('/');
    context.lineWidth = isPointed ? 2 : 1;
    context.strokeStyle = isPointed ? ink.accent : ink.line;
    context.stroke();
  }

  line(points: Point[], width: number, colour: string, alpha: number): void {
    const context = this.context;
    context.beginPath();
    points.forEach((point, index) => {
      const { x, y } = this.toScreen(point);
      if (index === 0) context.moveTo(x, y);
      else if (index === points.length - 1) context.lineTo(x, y);
      else {
        const next = this.toScreen(points[index + 1]);
        const before = this.toScreen(points[index - 1]);
        const radius = Math.min(14, Math.hypot(next.x - x, next.y - y) / 2, Math.hypot(before.x - x, before.y - y) / 2);
        context.arcTo(x, y, next.x, next.y, radius);
      }
    });
    context.lineWidth = width;
    context.lineCap = 'butt';
    context.strokeStyle = colour;
    context.globalAlpha = alpha;
    context.stroke();
    context.globalAlpha = 1;
  }
}
