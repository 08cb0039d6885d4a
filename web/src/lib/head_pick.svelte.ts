// Keeps track of how the view's head was picked (the link's `pick`), and sets a head that was found by its effect.

import { namedHead, pickAfter, type Shown } from './head_pick';
import { byEffect } from './link';
import { current, page } from './state.svelte';

class HeadPick {
  #before: Shown | null = null;

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

  /** Shows a head that was not chosen by hand. */
  show(layer: number, head: number, pick: string): void {
    Object.assign(page.view, { layer, head });
    page.view.extra.pick = pick;
    this.#before = this.#shown;
  }

  askAgain(): void {
    page.view.extra.pick = byEffect;
  }
}

export const headPick = new HeadPick();
