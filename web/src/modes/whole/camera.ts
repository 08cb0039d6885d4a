// The camera over the scene: which point is in the middle of the canvas, and how many pixels a unit has.

import type { Box } from './parts';
import type { Point } from './scene';

export interface Camera extends Point {
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

/** Shows `box` whole, with `margin` (a share of the canvas) around it. */
export function fit(box: Box, canvas: Size, margin = 0.06): Camera {
  const room = 1 - 2 * margin;
  const scale = Math.min((room * canvas.width) / box.width, (room * canvas.height) / box.height);
  return { x: box.x + box.width / 2, y: box.y + box.height / 2, scale };
}

export function toScreen(camera: Camera, canvas: Size, { x, y }: Point): Point {
  return { x: (x - camera.x) * camera.scale + canvas.width / 2, y: (y - camera.y) * camera.scale + canvas.height / 2 };
}

export function toScene(camera: Camera, canvas: Size, { x, y }: Point): Point {
  return { x: (x - canvas.width / 2) / camera.scale + camera.x, y: (y - canvas.height / 2) / camera.scale + camera.y };
}

/** Zooms by `factor` so that what is at the canvas point `at` stays there. */
export function zoomAt(camera: Camera, canvas: Size, at: Point, factor: number, least: number, most: number): Camera {
  const scale = Math.min(most, Math.max(least, camera.scale * factor));
  const fixed = toScene(camera, canvas, at);
  return { x: fixed.x - (at.x - canvas.width / 2) / scale, y: fixed.y - (at.y - canvas.height / 2) / scale, scale };
}

export function panBy(camera: Camera, right: number, down: number): Camera {
  return { ...camera, x: camera.x + right / camera.scale, y: camera.y + down / camera.scale };
}

/** Keeps the middle of the canvas over `box`. */
export function keptOver(camera: Camera, { x, y, width, height }: Box): Camera {
  return { ...camera, x: Math.min(x + width, Math.max(x, camera.x)), y: Math.min(y + height, Math.max(y, camera.y)) };
}

/**
 * A flight from one camera to another, t from 0 to 1: zooms out and in again on long ways (van Wijk and Nuij,
 * "Smooth and efficient zooming and panning", 2003). `length` grows with the way.
 */
export function flight(from: Camera, to: Camera, canvas: Size): { at: (t: number) => Camera; length: number } {
  const rho = 1.3;
  const [w0, w1] = [canvas.width / from.scale, canvas.width / to.scale];
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const way = Math.hypot(dx, dy);
  const done = (t: number): Camera | null => (t <= 0 ? from : t >= 1 ? to : null);
  if (way < 1e-6 * Math.min(w0, w1)) {
    const length = Math.log(w1 / w0) / rho;
    return { length: Math.abs(length), at: (t) => done(t) ?? { x: from.x + t * dx, y: from.y + t * dy, scale: canvas.width / (w0 * Math.exp(rho * t * length)) } };
  }
  const b = (w: number, sign: number) => (w1 * w1 - w0 * w0 + sign * rho ** 4 * way * way) / (2 * w * rho * rho * way);
  // −log(√(b² + 1) + b), without cancellation
  const r0 = -Math.asinh(b(w0, 1));
  const r1 = -Math.asinh(b(w1, -1));
  const length = (r1 - r0) / rho;
  return {
    length: Math.abs(length),
    at: (t) => {
      const s = rho * t * length + r0;
      const u = (w0 / (rho * rho * way)) * (Math.cosh(r0) * Math.tanh(s) - Math.sinh(r0));
      return done(t) ?? { x: from.x + u * dx, y: from.y + u * dy, scale: (canvas.width / w0) * (Math.cosh(s) / Math.cosh(r0)) };
    },
  };
}

export function eased(t: number): number {
  return t < 0.5 ? 4 * t * t * t : 1 - (2 - 2 * t) ** 3 / 2;
}
