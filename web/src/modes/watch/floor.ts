// The loss against the entropy of the text: what no model can do better than on average.

import type { Curves } from './curves';

export interface AboveFloor {
  step: number;
  loss: number;
  /** Which loss it is. */
  what: 'validation' | 'training';
  /** (loss − entropy) / entropy; negative where the measured loss is lower. */
  share: number;
}

/** The last known validation loss up to a step, or the smoothed training loss where there is none, against the entropy. */
export function aboveFloor(curves: Curves, entropy: number, until: number | null = null): AboveFloor | null {
  for (const [what, values] of [['validation', curves.validation], ['training', curves.smooth]] as const) {
    const at = curves.steps.reduce((last, step, index) => (values[index] !== null && (until === null || step <= until) ? index : last), -1);
    if (at >= 0) return { step: curves.steps[at], loss: values[at]!, what, share: (values[at]! - entropy) / entropy };
  }
  return null;
}
