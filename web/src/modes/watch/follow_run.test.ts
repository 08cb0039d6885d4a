import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ApiError } from '../../lib/api';
import type { ServerEvent } from '../../lib/events';
import type { MetricsRow } from '../../lib/types';
import { followRun, type RunSource } from './follow_run';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const row = (step: number): ServerEvent => ({ event: 'metrics', data: JSON.stringify({ step, loss: 1 }) });
const stepsOf = (rows: MetricsRow[]) => rows.map(({ step }) => step);

it('shows rows written before, during and after the stream opens, without a gap', async () => {
  const file: MetricsRow[] = [{ step: 1, loss: 1 }];
  const source: RunSource = {
    metrics: async () => [...file],
    async *runEvents() {
      file.push({ step: 2, loss: 1 });
      yield { event: 'open', data: '' };
      yield row(3);
      yield { event: 'end', data: '{}' };
    },
  };
  const shown: number[][] = [];
  await followRun(source, 'run', new AbortController().signal, (rows) => shown.push(stepsOf(rows) as number[]));
  expect(shown.at(0)).toEqual([1, 2]);
  expect(shown.at(-1)).toEqual([1, 2, 3]);
});

it('draws a burst of rows once', async () => {
  const source: RunSource = {
    metrics: async () => [],
    async *runEvents() {
      yield { event: 'open', data: '' };
      for (let step = 1; step <= 500; ++step) yield row(step);
      await new Promise((resolve) => setTimeout(resolve, 1000));
      yield { event: 'end', data: '{}' };
    },
  };
  const show = vi.fn();
  const done = followRun(source, 'run', new AbortController().signal, show);
  await vi.advanceTimersByTimeAsync(1000);
  await done;
  expect(show).toHaveBeenCalledTimes(2);
  expect(show.mock.lastCall![0]).toHaveLength(500);
});

it('reconnects after a lost stream and stops when aborted', async () => {
  const abort = new AbortController();
  let opened = 0;
  const source: RunSource = {
    metrics: async () => [],
    async *runEvents() {
      opened += 1;
      if (opened === 1) throw new TypeError('network error');
      abort.abort();
      yield { event: 'open', data: '' };
    },
  };
  const show = vi.fn();
  const done = followRun(source, 'run', abort.signal, show);
  await vi.advanceTimersByTimeAsync(5000);
  await done;
  expect(opened).toBe(2);
  expect(show).not.toHaveBeenCalled();
});

it('waits for a run that is being started, and only for that', async () => {
  let asked = 0;
  const source: RunSource = {
    metrics: async () => [{ step: 1, loss: 1 }],
    async *runEvents() {
      asked += 1;
      if (asked < 4) throw new ApiError(404, 'there is no run');
      yield { event: 'open', data: '' };
      yield { event: 'end', data: '{}' };
    },
  };
  const show = vi.fn();
  const done = followRun(source, 'run', new AbortController().signal, show, () => true);
  await vi.advanceTimersByTimeAsync(700);
  await done;
  expect(show).toHaveBeenCalledOnce();
  asked = 0;
  await expect(followRun(source, 'run', new AbortController().signal, show)).rejects.toThrow('there is no run');
});
