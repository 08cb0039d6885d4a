// The popover with a number's computation; there is one, for the number that is hovered or focused.

import { api } from './api';
import { current, messageOf } from './state.svelte';
import type { Derivation, PointElement } from './types';

const restMilliseconds = 120;

class Tip {
  anchor: DOMRect | null = $state.raw(null);
  /** The number's current position: pages scroll. */
  #locate: () => DOMRect = () => new DOMRect();
  title = $state('');
  derivation: Derivation | null = $state.raw(null);
  failure: string | null = $state(null);
  /** Whether the computation comes from the server. */
  asked = $state(false);
  #abort: AbortController | null = null;
  #timer = 0;
  /** Counts what is shown and hidden: a later call takes the place of a former one. */
  #turn = 0;

  show(locate: () => DOMRect, title: string, element: PointElement): void {
    this.hide();
    this.#locate = locate;
    this.#timer = window.setTimeout(() => void this.#open(locate, title, element), restMilliseconds);
  }

  async #open(locate: () => DOMRect, title: string, element: PointElement): Promise<void> {
    const abort = (this.#abort = new AbortController());
    this.#turn += 1;
    this.#locate = locate;
    Object.assign(this, { anchor: locate(), title, derivation: null, failure: null, asked: true });
    try {
      const derivation = await current.keep(`derivation ${JSON.stringify(element)}`, (id) => api.derivation(id, element));
      if (!abort.signal.aborted) this.derivation = derivation;
    } catch (error) {
      if (!abort.signal.aborted) this.failure = messageOf(error);
    }
  }

  /** Shows a computation made by the page from numbers it has, or the title alone. */
  tell(locate: () => DOMRect, title: string, derivation: Derivation | null): void {
    this.hide();
    this.#turn += 1;
    this.#locate = locate;
    Object.assign(this, { anchor: locate(), title, derivation, failure: null, asked: false });
  }

  /** Keeps the popover at its number while the page scrolls. */
  follow(): void {
    if (!this.anchor) return;
    const place = this.#locate();
    // A number that has left the page has no place.
    if (place.width === 0 && place.height === 0) this.hide();
    else this.anchor = place;
  }

  /**
   * With `owner`, hides the popover only if it is still that number's. A focused number that is removed from the page
   * loses the focus while Svelte changes the page, when no state may be written: it is written afterwards.
   */
  hide(owner?: () => DOMRect): void {
    if (owner && owner !== this.#locate) return;
    clearTimeout(this.#timer);
    this.#abort?.abort();
    const turn = ++this.#turn;
    queueMicrotask(() => {
      if (turn === this.#turn) this.anchor = null;
    });
  }
}

export const tip = new Tip();

/** A number to explain: by the server (`element`) or by the page itself (`derive`). */
export interface Explained {
  title: string;
  element?: PointElement;
  derive?: () => Derivation;
}

/** Svelte action: hover or focus shows the number's computation; Escape closes it. */
export function explain(element: HTMLElement | SVGElement, given: Explained | null) {
  let source = given;
  const locate = () => element.getBoundingClientRect();
  const show = () => {
    if (source?.derive) tip.tell(locate, source.title, source.derive());
    else if (source?.element) tip.show(locate, source.title, source.element);
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
