// What one drawing of the picture shows.

import type { Token } from '../../lib/types';
import type { Camera, Size } from './camera';
import type { Cell } from './find';
import type { Ink } from './ink';
import type { Scene } from './scene';
import type { Store } from './store';

export interface Guess {
  token: Token;
  probability: number;
}

export interface View {
  scene: Scene;
  camera: Camera;
  canvas: Size;
  ink: Ink;
  layers: number;
  /** Null where only a shape is shown. */
  store: Store | null;
  candidates: Guess[];
  /** The logit lens after each block, for the chosen token. */
  guesses: (Guess | null)[];
  /** Where the token's data is, in stations; null where it does not move. */
  time: number | null;
  /** The token's vector there. */
  carried: Float32Array | null;
  pointed: { path: string[]; cell: Cell | null } | null;
  /** The cell that the keyboard is at, in the part shown. */
  cursor: { path: string[]; cell: Cell } | null;
  expanded: Set<number>;
  /** Whether the camera or the layout moves. */
  moving: boolean;
}
