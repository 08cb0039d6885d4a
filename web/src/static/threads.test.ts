import { describe, expect, it } from 'vitest';
import { threadsOf } from './threads';

describe('the threads of the engine', () => {
  it('are half of the logical processors, at most eight, and one without shared memory', () => {
    const of = (processors: number, isIsolated = true) => threadsOf({ isIsolated, processors, asked: null });
    expect([1, 2, 3, 4, 8, 16, 64].map((processors) => of(processors))).toEqual([1, 1, 1, 2, 4, 8, 8]);
    expect(of(16, false)).toBe(1);
  });

  it('are as many as the address asks for, if that is a number of threads', () => {
    const of = (asked: string) => threadsOf({ isIsolated: true, processors: 8, asked });
    expect(['1', '3', '99', '0', '-2', 'x', '2.5', ''].map(of)).toEqual([1, 3, 8, 4, 4, 4, 4, 4]);
    expect(threadsOf({ isIsolated: false, processors: 8, asked: '3' })).toBe(1);
  });
});
