import { expect, test, vi } from 'vitest';

vi.mock('./state.svelte', () => ({ page: { view: { extra: {} } } }));
const { dotRadius, drawDots, drawn } = await import('./dots');
const { page } = await import('./state.svelte');

test('the area of a dot is in proportion to its weight, up to the largest', () => {
  const area = (weight: number) => dotRadius(weight, 0.5, 20) ** 2;
  expect(area(0.4) / area(0.1)).toBeCloseTo(4, 10);
  expect(area(0.05) / area(0.5)).toBeCloseTo(0.1, 10);
  expect(dotRadius(0.9, 0.5, 20)).toBe(dotRadius(0.5, 0.5, 20));
  expect(2 * dotRadius(0.5, 0.5, 20)).toBeLessThan(20);
  expect(dotRadius(0, 0.5, 20)).toBe(0);
});

test('masked cells have no dot', () => {
  const [dots, paper]: [[number, number, number][], number[][]] = [[], []];
  const context = { beginPath() {}, fill() {}, moveTo() {}, fillRect: (...box: number[]) => paper.push(box), arc: (x: number, y: number, radius: number) => dots.push([x, y, radius]) };
  drawDots(context as unknown as CanvasRenderingContext2D, { data: [1, 0, 0.25, 0.75], rows: 2, columns: 2, most: 1, cellWidth: 10, visible: (row, column) => column <= row }, false);
  expect(dots.map(([x, y]) => [x, y])).toEqual([[5, 5], [5, 15], [15, 15]]);
  expect(paper).toHaveLength(3);
});

test('numbers of either sign have a dot of their size, and a colour for the sign', () => {
  const dots: Record<string, number[]> = {};
  const context = { fillStyle: '', beginPath() {}, fill() {}, moveTo() {}, fillRect() {}, arc: (_x: number, _y: number, radius: number) => (dots[context.fillStyle] ??= []).push(radius) };
  drawDots(context as unknown as CanvasRenderingContext2D, { data: [2, -2, 0.5, -Infinity], rows: 2, columns: 2, most: 2, cellWidth: 10, signed: true }, false);
  const [positive, negative] = Object.values(dots);
  expect(positive[0] / positive[1]).toBeCloseTo(2, 10);
  expect(negative).toEqual([positive[0]]);
});

test('the link says dots', () => {
  expect(drawn.dots).toBe(false);
  drawn.choose('dots');
  expect(page.view.extra.draw).toBe('dots');
  expect(drawn.dots).toBe(true);
  drawn.choose('colours');
  expect(page.view.extra.draw).toBe('');
});
