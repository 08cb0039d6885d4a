// The definition of the term that was tapped; there is one at a time.

import type { Term } from './glossary';

class TermTip {
  term: Term | null = $state.raw(null);
  button: HTMLElement | null = $state.raw(null);

  toggle(term: Term, button: HTMLElement): void {
    const isOpen = this.button === button;
    this.term = isOpen ? null : term;
    this.button = isOpen ? null : button;
  }

  hide(): void {
    this.term = null;
    this.button = null;
  }
}

export const termTip = new TermTip();
