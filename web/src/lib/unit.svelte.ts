// Whether attention is shown by words or by tokens, as the link says: unit=words. Where tokens are parts of characters, words
// are the default, and the link says unit=tokens.

import { api } from './api';
import { current, page } from './state.svelte';
import { hasLongWord, lastToken, wordIndexAt } from './text_words';
import { splitsCharacters } from './unread';
import type { Word } from './types';

export const unit = {
  /** Whether some word of the text has several tokens. */
  get differs(): boolean {
    return hasLongWord(current.meta?.words ?? []);
  },
  /** The words, where attention is shown by words. */
  get words(): Word[] | null {
    return (page.view.extra.unit || unit.byDefault) === 'words' && unit.differs ? current.meta!.words : null;
  },
  get byDefault(): 'words' | 'tokens' {
    return splitsCharacters(current.meta?.tokens ?? []) ? 'words' : 'tokens';
  },
  choose(to: 'words' | 'tokens'): void {
    page.view.extra.unit = to === unit.byDefault ? '' : to;
  },
  /** By words, the chosen token is the last of its word, which has read all of it. */
  keepToWords(): void {
    if (!unit.words) return;
    const last = lastToken(unit.words[wordIndexAt(unit.words, current.position)]);
    if (last !== current.position) page.view.position = last;
  },
};

export interface WordRow {
  id: string;
  layer: number;
  head: number;
  position: number;
  weights: Float32Array;
}

/** The attention of a token to every word. */
export function wordRow(layer: number, head: number, position: number): Promise<WordRow> {
  return current.keep(`words ${layer} ${head} ${position}`, async (id) => ({ id, layer, head, position, weights: (await api.attentionRow(id, layer, head, position, 'words')).data }));
}
