// The translator that the server holds.

import type { TranslatorCard, TranslatorExample } from '../../lib/pair_types';
import { messageOf } from '../../lib/state.svelte';
import { heldTranslator } from '../../lib/translator';

class Translator {
  card: TranslatorCard | null = $state.raw(null);
  /** The server has none. */
  missing = $state(false);
  failure: string | null = $state(null);
  #asked = false;

  async load(): Promise<void> {
    if (this.#asked) return;
    this.#asked = true;
    try {
      this.card = await heldTranslator();
      this.missing = this.card === null;
    } catch (error) {
      this.failure = messageOf(error);
    }
  }

  get examples(): TranslatorExample[] {
    return this.card?.examples ?? [];
  }
}

export const translator = new Translator();
