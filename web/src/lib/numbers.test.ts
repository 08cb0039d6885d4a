import { describe, expect, it } from 'vitest';
import { bytes, count, percent, tokenText, tokenWord, value } from './numbers';

describe('numbers as text', () => {
  it('keeps the same number of digits and a true minus sign', () => {
    expect(value(0.12345)).toBe('0.123');
    expect(value(-1.5)).toBe('−1.500');
    expect(value(123.456)).toBe('123.5');
    expect(value(0)).toBe('0.000');
  });

  it('formats very small and masked values', () => {
    expect(value(0.000012)).toBe('1.2·10⁻⁵');
    expect(value(-Infinity)).toBe('−∞');
    expect(value(null)).toBe('−∞');
  });

  it('never rounds a positive share to 0 % nor one below 1 to 100 %', () => {
    expect(percent(0)).toBe('0\u00a0%');
    expect(percent(1e-9)).toBe('<\u00a00.1\u00a0%');
    expect(percent(0.4251)).toBe('42.5\u00a0%');
    expect(percent(1)).toBe('100\u00a0%');
  });

  it('writes large counts in words', () => {
    expect(count(174_604_259_328)).toBe('175 billion');
    expect(count(2_418_816)).toBe('2.42 million');
    expect(count(1536)).toBe('1,536');
    expect(bytes(2 ** 31)).toBe('2.00 GiB');
  });

  it('shows spaces and names them', () => {
    expect(tokenText(' fox\n')).toBe('␣fox↵');
    expect(tokenText('\u0001\u007f')).toBe('␁␡');
    expect(tokenWord(' fox')).toBe('fox');
    expect(tokenWord(' ')).toBe('space');
  });
});
