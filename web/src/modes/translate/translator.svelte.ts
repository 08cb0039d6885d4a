// The translator at hand: the model that is shown, or the one that the server holds beside it.

import type { TranslatorCard, TranslatorExample } from '../../lib/pair_types';
import { messageOf, page } from '../../lib/state.svelte';
import { heldTranslator } from '../../lib/translator';

class Translator {
  card: TranslatorCard | null = $state.raw(null);
  /** There is none. */
  missing = $state(false);
  failure: string | null = $state(null);
  /** The model that was shown when it was asked for. */
  #asked: object | null = null;

  async load(): Promise<void> {
    const shown = page.translator ?? page.model;
    if (this.#asked === shown) return;
    this.#asked = shown;
    this.card = this.failure = null;
    this.missing = false;
    try {
      const card = await heldTranslator();
      if (this.#asked !== shown) return;
      this.card = card;
      this.missing = card === null;
    } catch (error) {
      if (this.#asked === shown) this.failure = messageOf(error);
    }
  }

  get examples(): TranslatorExample[] {
    return this.card?.examples ?? [];
  }
}

export const translator = new Translator();
