// The token labels that fit on an axis.

export interface AxisLabel {
  position: number;
  offset: number; // pixels from the beginning of the visible part to the middle of the label
}

const steps = [1, 2, 5];

/** The smallest of 1, 2, 5, 10, 20, 50, … positions that lie at least `room` pixels apart. */
export function labelStep(pixelsPerPosition: number, room: number): number {
  for (let power = 1; ; power *= 10) {
    for (const step of steps) {
      if (step * power * pixelsPerPosition >= room) return step * power;
    }
  }
}

/** Labels of the visible positions. `begin` is the (fractional) position at the visible edge. */
export function axisLabels(begin: number, pixels: number, pixelsPerPosition: number, positions: number, room: number): AxisLabel[] {
  const step = labelStep(pixelsPerPosition, room);
  const end = Math.min(positions, begin + pixels / pixelsPerPosition);
  const labels: AxisLabel[] = [];
  for (let position = Math.max(0, Math.ceil((begin - 0.5) / step) * step); position < end; position += step) {
    const offset = (position + 0.5 - begin) * pixelsPerPosition;
    if (offset >= 0 && offset <= pixels) labels.push({ position, offset });
  }
  return labels;
}
