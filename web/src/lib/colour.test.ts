import { describe, expect, it } from 'vitest';
import { extentOf, inkOn, valueColour, weightColour, type Rgb } from './colour';

const lightness = ([red, green, blue]: Rgb) => 0.2126 * red + 0.7152 * green + 0.0722 * blue;

describe('colour scales', () => {
  it('vary monotonically in lightness with the weight', () => {
    for (const isDark of [false, true]) {
      const steps = Array.from({ length: 21 }, (_, index) => lightness(weightColour(index / 20, 1, isDark)));
      for (let index = 1; index < steps.length; ++index) {
        expect(isDark ? steps[index] > steps[index - 1] : steps[index] < steps[index - 1]).toBe(true);
      }
    }
  });

  it('are neutral at zero and differ by sign', () => {
    expect(valueColour(0, 2, false)).toEqual(valueColour(5, 0, false));
    expect(valueColour(1, 1, false)).not.toEqual(valueColour(-1, 1, false));
    expect(valueColour(9, 1, false)).toEqual(valueColour(1, 1, false));
  });

  it('have readable ink on every step', () => {
    expect(inkOn([255, 255, 255])).toBe('#000000');
    expect(inkOn([20, 20, 60])).toBe('#ffffff');
  });

  it('are not washed out by one outlier', () => {
    const values = [...Array(199).fill(1), 1000];
    expect(extentOf(values)).toBe(1);
    expect(extentOf([])).toBe(1);
    expect(extentOf([0, 0])).toBe(1);
  });
});
