// Keeps track of how the view's head was picked (the link's `pick`), and finds a head by its effect: that of the edge of
// attention on which the next word rests.

import { api } from './api';
import { namedHead, pickAfter, type Shown } from './head_pick';
import { byEffect } from './link';
import { Loaded } from './load.svelte';
import { current, page } from './state.svelte';
import type { EdgeToShow, ShownEdge } from './types';
import { unit } from './unit.svelte';

/** Milliseconds: moving over the words asks nothing. */
const settle = 150;

class HeadPick {
  #before: Shown | null = null;
  readonly #answer = new Loaded<EdgeToShow & { id: string }>();

  get isByEffect(): boolean {
    return page.view.extra.pick === byEffect;
  }

  /** Whether the trace is that of the view's text. */
  get isReady(): boolean {
    return current.meta !== null && current.text === page.view.text;
  }

  /** The head that an example names for the chosen word. */
  get named() {
    return this.isReady ? namedHead(page.model?.examples ?? [], { text: page.view.text, position: current.position }, current.meta!.tokens.length - 1) : null;
  }

  /** What was found for the chosen word; its edge is null where no word stands before it. */
  get found(): EdgeToShow | undefined {
    const { value } = this.#answer;
    return value && value.id === current.meta?.id && value.position === current.position && value.unit === this.#unit ? value : undefined;
  }

  /** The edge of the head that is shown. */
  get edge(): ShownEdge | null {
    const edge = this.isByEffect ? this.found?.edge : null;
    return edge && edge.layer === page.view.layer && edge.head === page.view.head ? edge : null;
  }

  get failure(): string | null {
    return this.#answer.failure;
  }

  get #unit(): 'words' | 'tokens' {
    return unit.words ? 'words' : 'tokens';
  }

  get #shown(): Shown {
    const { text, layer, head, extra } = page.view;
    const { named } = this;
    return { text, position: current.position, layer, head, pick: extra.pick ?? '', named: named?.layer === layer && named.head === head };
  }

  /** Call in an effect: another head than the one picked was chosen by hand. */
  watch(): void {
    if (!this.isReady) return;
    const now = this.#shown;
    const pick = pickAfter(this.#before, now);
    this.#before = { ...now, pick };
    if (pick !== now.pick) page.view.extra.pick = pick;
  }

  /** Call in an effect of a view that shows one head; returns how to stop. */
  find(): (() => void) | undefined {
    if (!this.isByEffect || !this.isReady) return;
    const { id } = current.meta!;
    const { position } = current;
    const asked = this.#unit;
    const named = this.named;
    if (named) return void this.#show(named.layer, named.head, '');
    const abort = new AbortController();
    const timer = setTimeout(() => {
      this.#answer.forgetFailure();
      const told = current.keep(`edge ${asked} ${position}`, (trace) => api.edgeToShow(trace, position, asked, abort.signal));
      void this.#answer.from(told.then((reply) => {
        if (!abort.signal.aborted && reply.edge) this.#show(reply.edge.layer, reply.edge.head, byEffect);
        return { ...reply, id };
      }));
    }, settle);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }

  /** Shows a head that was not chosen by hand. */
  #show(layer: number, head: number, pick: string): void {
    Object.assign(page.view, { layer, head });
    page.view.extra.pick = pick;
    this.#before = this.#shown;
  }

  askAgain(): void {
    page.view.extra.pick = byEffect;
  }
}

export const headPick = new HeadPick();
