import { describe, expect, it } from 'vitest';
import { barChart, escaped, lineChart, shadedText, ticks } from './drawing';

const palette = { paper: '#fff', ink: '#111', soft: '#555', line: '#ddd', accent: '#33a', key: '#950', query: '#829', pale: '#888' };
const numbersOf = (text: string, name: string) => [...text.matchAll(new RegExp(` ${name}="([\\d.]+)"`, 'g'))].map(([, found]) => Number(found));

it('escapes special characters of XML', () => expect(escaped('<a & "b">')).toBe('&#60;a &#38; &#34;b&#34;&#62;'));

describe('ticks', () => {
  it('are round', () => expect(ticks(0.13, 7.2, 5)).toEqual([2, 4, 6]));
  it('reach both ends', () => expect(ticks(0, 1, 5).map((tick) => Number(tick.toFixed(6)))).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]));
  it('are one tick for a constant', () => expect(ticks(3, 3, 5)).toEqual([3]));
});

it('draws bars in proportion, and none for null', () => {
  const { text } = barChart('Next <token>', ['model', 'drawn'], [{ label: 'a', values: [0.5, 1], note: '50 %' }, { label: 'b', values: [0.25, null], note: '25 %' }], palette);
  const bars = numbersOf(text, 'width').slice(4); // after the picture, its ground and the two keys
  expect(bars).toHaveLength(3);
  expect(bars[0] / bars[1]).toBeCloseTo(0.5, 2);
  expect(bars[2] / bars[1]).toBeCloseTo(0.25, 2);
  expect(text).toContain('Next &#60;token&#62;');
});

it('wraps a text', () => {
  const tokens = Array.from({ length: 60 }, (_, index) => ({ text: '␣word', weight: index === 3 ? 1 : 0.01 }));
  const { text, width } = shadedText('A text', tokens, palette);
  const rects = [...text.matchAll(/<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"/g)].map(([, ...found]) => found.map(Number));
  expect(rects).toHaveLength(60);
  for (const [x, , wide] of rects) expect(x + wide).toBeLessThanOrEqual(width - 16 + 1e-6);
  expect(new Set(rects.map(([, y]) => y)).size).toBeGreaterThan(3);
  const shades = numbersOf(text, 'fill-opacity');
  expect(Math.max(...shades)).toBe(shades[3]);
});

it('draws a curve over its steps, lowest at the bottom, skipping missing values', () => {
  const { text } = lineChart('Loss', [0, 10, 20], [{ name: 'training', values: [4, null, 2], colour: 'red', width: 2 }], palette, String);
  const points = /points="([^"]+)"/.exec(text)![1].split(' ').map((point) => point.split(',').map(Number));
  expect(points).toHaveLength(2);
  expect(points[0][0]).toBeLessThan(points[1][0]);
  expect(points[0][1]).toBeLessThan(points[1][1]);
});
