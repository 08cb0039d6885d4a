// The one popover that says where a number comes from; it belongs to whichever number is pointed at.

import { api } from './api';
import { current, messageOf } from './state.svelte';
import type { Derivation, NumberPlace } from './types';

const restMilliseconds = 120;

class Tip {
  anchor: DOMRect | null = $state.raw(null);
  /** Where the number is now: pages scroll. */
  #locate: () => DOMRect = () => new DOMRect();
  title = $state('');
  derivation: Derivation | null = $state.raw(null);
  failure: string | null = $state(null);
  /** Whether an answer of the server is awaited or shown. */
  asked = $state(false);
  #abort: AbortController | null = null;
  #timer = 0;

  show(locate: () => DOMRect, title: string, place: NumberPlace): void {
    this.hide();
    this.#locate = locate;
    this.#timer = window.setTimeout(() => void this.#open(locate, title, place), restMilliseconds);
  }

  async #open(locate: () => DOMRect, title: string, place: NumberPlace): Promise<void> {
    const abort = (this.#abort = new AbortController());
    this.#locate = locate;
    Object.assign(this, { anchor: locate(), title, derivation: null, failure: null, asked: true });
    try {
      const derivation = await current.keep(`derivation ${JSON.stringify(place)}`, (id) => api.derivation(id, place));
      if (!abort.signal.aborted) this.derivation = derivation;
    } catch (error) {
      if (!abort.signal.aborted) this.failure = messageOf(error);
    }
  }

  /** What the page itself can tell: the sum from vectors that are on it, or nothing but the number. */
  tell(locate: () => DOMRect, title: string, derivation: Derivation | null): void {
    this.hide();
    this.#locate = locate;
    Object.assign(this, { anchor: locate(), title, derivation, failure: null, asked: false });
  }

  /** Stays at its number while the page scrolls. */
  follow(): void {
    if (this.anchor) this.anchor = this.#locate();
  }

  /** With `owner`, only if the popover is still that number's: scrolling moves the pointer off others. */
  hide(owner?: () => DOMRect): void {
    if (owner && owner !== this.#locate) return;
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.anchor = null;
  }
}

export const tip = new Tip();

/** A number to explain: by the server (`place`) or by the page itself (`derive`). */
export interface Explained {
  title: string;
  place?: NumberPlace;
  derive?: () => Derivation;
}

/** Svelte action: hover or focus on the element explains the number; Escape closes. */
export function explain(element: HTMLElement | SVGElement, given: Explained | null) {
  let source = given;
  const locate = () => element.getBoundingClientRect();
  const show = () => {
    if (source?.derive) tip.tell(locate, source.title, source.derive());
    else if (source?.place) tip.show(locate, source.title, source.place);
  };
  const hide = () => tip.hide(locate);
  const onKey = (event: Event) => (event as KeyboardEvent).key === 'Escape' && hide();
  const listeners: [string, (event: Event) => void][] = [['pointerenter', show], ['pointerleave', hide], ['focus', show], ['blur', hide], ['keydown', onKey], ['click', show]];
  for (const [name, listener] of listeners) element.addEventListener(name, listener);
  element.setAttribute('aria-describedby', 'number-tip');
  return {
    update(next: typeof given) {
      source = next;
    },
    destroy() {
      for (const [name, listener] of listeners) element.removeEventListener(name, listener);
      hide();
    },
  };
}
