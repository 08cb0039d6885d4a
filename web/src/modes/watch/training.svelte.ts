// The server's own training: what it says of it, and what the user does to it. Every page that is open shows the same.

import { api } from '../../lib/api';
import { messageOf } from '../../lib/state.svelte';
import type { Training, TrainingRequest } from '../../lib/types';
import { isActive } from './state';

/** How long to wait before the server is asked again. */
const waits = { preparing: 200, active: 700, idle: 2500 };
const storageKey = 'heed-training';

/** What was requested last in this tab, so that it can be started again after a reload. */
export interface Started {
  run: string | null;
  request: TrainingRequest;
}

class LiveTraining {
  now: Training | null = $state.raw(null);
  /** Why the last action was refused. */
  failure: string | null = $state(null);
  /** Why the state is not known. */
  unknown: string | null = $state(null);
  busy = $state(false);
  /** Set by a start on this page until its run is shown. */
  toShow = $state(false);
  started: Started | null = $state.raw(null);
  #sent = 0;
  #taken = 0;
  /** Asks again soon: set while the state is followed. */
  #wake = () => {};

  constructor() {
    try {
      this.started = JSON.parse(sessionStorage.getItem(storageKey) ?? 'null');
    } catch {
      // Without storage, a reload forgets the request.
    }
  }

  get active(): boolean {
    return isActive(this.now?.state);
  }

  /** Asks again and again while the page is visible; returns what ends it. */
  follow(): () => void {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const wait = () => {
      clearTimeout(timer);
      if (!abort.signal.aborted) timer = setTimeout(ask, this.busy || this.now?.state === 'preparing' ? waits.preparing : this.active ? waits.active : waits.idle);
    };
    const ask = async () => {
      if (document.visibilityState === 'visible') await this.refresh(abort.signal);
      wait();
    };
    this.#wake = wait;
    document.addEventListener('visibilitychange', ask);
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
      this.#wake = () => {};
      document.removeEventListener('visibilitychange', ask);
    };
  }

  async refresh(signal?: AbortSignal): Promise<void> {
    try {
      const turn = ++this.#sent;
      this.#take(turn, await api.training(signal));
      this.unknown = null;
    } catch (error) {
      if (!signal?.aborted) this.unknown = messageOf(error);
    }
  }

  async start(request: TrainingRequest): Promise<boolean> {
    const isStarted = await this.#act(() => api.train(request));
    if (isStarted) {
      this.toShow = true;
      this.#remember({ run: this.now?.run ?? null, request });
    }
    return isStarted;
  }

  control(action: 'pause' | 'resume' | 'stop'): Promise<boolean> {
    return this.#act(() => api.controlTraining(action));
  }

  scaleLearningRate(factor: number): Promise<boolean> {
    return this.#act(() => api.scaleLearningRate(factor));
  }

  /** Whether it was done; otherwise `failure` says why not. */
  async #act(ask: () => Promise<Training>): Promise<boolean> {
    if (this.busy) return false;
    this.busy = true;
    this.failure = null;
    // A start is answered when the run has its name; meanwhile its preparation is shown.
    this.#wake();
    try {
      const answer = await ask();
      this.#take(++this.#sent, answer);
      return true;
    } catch (error) {
      this.failure = messageOf(error);
      void this.refresh();
      return false;
    } finally {
      this.busy = false;
      this.#wake();
    }
  }

  /** Takes an answer unless a later one was taken already: what was asked before an action was answered is old. */
  #take(turn: number, training: Training): void {
    if (turn < this.#taken) return;
    this.#taken = turn;
    this.now = training;
    if (this.started?.run === null && training.run !== null && isActive(training.state)) this.#remember({ ...this.started, run: training.run });
  }

  #remember(started: Started): void {
    this.started = started;
    try {
      sessionStorage.setItem(storageKey, JSON.stringify(started));
    } catch {
      // A long text may not fit; a reload then forgets the request.
    }
  }
}

export const live = new LiveTraining();
