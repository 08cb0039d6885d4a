import { describe, expect, it } from 'vitest';
import { movedWeight, slopeLines, spread } from './slope';

describe('spread', () => {
  it('keeps labels that do not overlap', () => expect(spread([10, 50, 90], 15, 0, 100)).toEqual([10, 50, 90]));
  it('moves labels apart and keeps their order', () => {
    const places = spread([50, 48, 49], 15, 0, 100);
    expect(places[1]).toBeLessThan(places[2]);
    expect(places[2]).toBeLessThan(places[0]);
    const sorted = [...places].sort((a, b) => a - b);
    expect(sorted[1] - sorted[0]).toBeGreaterThanOrEqual(15);
    expect(sorted[2] - sorted[1]).toBeGreaterThanOrEqual(15);
  });
  it('stays inside at the bottom', () => expect(spread([99, 100, 100], 10, 0, 100)).toEqual([80, 90, 100]));
});

it('puts larger shares higher, on one scale for both sides', () => {
  const side = (probability: number) => ({ probability, logit: 0, rank: 1 });
  const [a, b] = slopeLines([
    { token: 1, text: 'a', before: side(0.8), after: side(0.1) },
    { token: 2, text: 'b', before: side(0.1), after: side(0.8) },
  ], 200, 20);
  expect(a.beforeY).toBe(b.afterY);
  expect(a.afterY).toBe(b.beforeY);
  expect(a.beforeY).toBeLessThan(a.afterY);
});

it('measures how much weight moved', () => expect(movedWeight([0.5, 0.5, 0], [0.25, 0.5, 0.25])).toBe(0.25));
