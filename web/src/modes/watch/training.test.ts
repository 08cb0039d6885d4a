import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ApiError } from '../../lib/api';
import type { Training, TrainingState } from '../../lib/types';
import { live } from './training.svelte';

vi.mock('../../lib/state.svelte', () => ({ messageOf: (error: Error) => error.message }));
const api = vi.hoisted(() => ({ training: vi.fn(), train: vi.fn(), controlTraining: vi.fn(), scaleLearningRate: vi.fn() }));
vi.mock('../../lib/api', async (original) => ({ ...(await original<object>()), api }));

const said = (state: TrainingState, run: string | null = null, step = 0) => ({ state, run, step }) as Training;
const listeners: Record<string, () => void> = {};

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('document', { visibilityState: 'visible', addEventListener: (name: string, listener: () => void) => (listeners[name] = listener), removeEventListener: () => {} });
  vi.resetAllMocks();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it('asks often while a training is prepared, sometimes while nothing is trained, and never after the page left', async () => {
  api.training.mockResolvedValue(said('none'));
  const stop = live.follow();
  await vi.advanceTimersByTimeAsync(2400);
  expect(api.training).toHaveBeenCalledTimes(1);
  api.train.mockResolvedValue(said('preparing'));
  api.training.mockResolvedValue(said('preparing'));
  await live.start({ preset: 'small' });
  await vi.advanceTimersByTimeAsync(1000);
  expect(api.training).toHaveBeenCalledTimes(6);
  stop();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(api.training).toHaveBeenCalledTimes(6);
});

it('remembers what was started once its run has a name, to start it again', async () => {
  api.train.mockResolvedValue(said('preparing'));
  await live.start({ preset: 'small', settings: { steps: 20 } });
  expect([live.toShow, live.started?.run]).toEqual([true, null]);
  api.training.mockResolvedValue(said('running', 'first', 1));
  await live.refresh();
  expect(live.started).toEqual({ run: 'first', request: { preset: 'small', settings: { steps: 20 } } });
  api.training.mockResolvedValue(said('running', 'of another page', 1));
  await live.refresh();
  expect(live.started?.run).toBe('first');
});

it('does not take an answer that is older than the one it shows', async () => {
  let late: (training: Training) => void = () => {};
  api.training.mockReturnValueOnce(new Promise((resolve) => (late = resolve)));
  const asked = live.refresh();
  api.controlTraining.mockResolvedValueOnce(said('paused', 'first', 9));
  expect(await live.control('pause')).toBe(true);
  late(said('running', 'first', 8));
  await asked;
  expect(live.now?.state).toBe('paused');
});

it('says why an action was refused until the next one, and asks for the state', async () => {
  api.train.mockRejectedValue(new ApiError(409, '"first" is being trained'));
  api.training.mockResolvedValue(said('running', 'first', 10));
  expect(await live.start({})).toBe(false);
  await vi.advanceTimersByTimeAsync(0);
  expect([live.failure, live.now?.state, live.busy]).toEqual(['"first" is being trained', 'running', false]);
  await live.refresh();
  expect(live.failure).not.toBeNull();
  api.controlTraining.mockResolvedValue(said('stopping', 'first', 10));
  await live.control('stop');
  expect(live.failure).toBeNull();
});

it('shows how a start is prepared while the server has not answered it', async () => {
  let answer: (training: Training) => void = () => {};
  api.train.mockReturnValueOnce(new Promise((resolve) => (answer = resolve)));
  api.training.mockResolvedValue(said('preparing'));
  const stop = live.follow();
  const started = live.start({});
  await vi.advanceTimersByTimeAsync(300);
  expect([live.busy, live.now?.state]).toEqual([true, 'preparing']);
  answer(said('running', 'second', 0));
  expect(await started).toBe(true);
  expect([live.now?.state, live.started?.run]).toEqual(['running', 'second']);
  stop();
});
