// Draws lines, text and boxes at their places on the screen.

import { isVisible, least } from './detail';
import type { Found } from './find';
import type { Box } from './parts';
import type { Point } from './scene';
import type { View } from './view';

export class Pen {
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

  inSight(found: Found): boolean {
    const { x, y, width, height } = this.onScreen(found);
    return width >= least && isVisible(x, y, width, height, this.view.canvas);
  }

  font(size: number, weight = 400, mono = false): void {
    const { ink } = this.view;
    this.context.font = `${weight} ${Math.round(2 * size) / 2}px ${mono ? ink.mono : ink.sans}`;
  }

  text(text: string, x: number, y: number, colour: string, align: CanvasTextAlign = 'left'): void {
    this.context.fillStyle = colour;
    this.context.textAlign = align;
    this.context.fillText(text, x, y);
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
