// What is pictured: the loaded model with its numbers, or only the shape of another one.

import { api } from '../../lib/api';
import { loaded } from '../../lib/load.svelte';
import { tokenWord } from '../../lib/numbers';
import { current, page } from '../../lib/state.svelte';
import type { Preset } from '../../lib/types';
import { shapeOf, type Shape } from '../count/shape';
import { hasBiases, windowOf, type Subject } from './parts';

/** Candidates of the next token in the picture. */
const listed = 10;
const shapeTokens = 12;

/** Make it during component initialisation. */
export class Pictured {
  readonly listed = listed;
  readonly presets = loaded(() => api.presets());
  readonly name: string = $derived(page.view.extra.picture ?? '');
  readonly preset: Preset | undefined = $derived(this.presets.value?.find(({ name }) => name === this.name));
  readonly #dimensions = $derived(current.meta?.dimensions ?? page.model!.dimensions);
  readonly shape: Shape = $derived(shapeOf(this.preset?.config ?? { ...this.#dimensions, tied: page.model!.tied }));
  readonly shapeKey: string = $derived(JSON.stringify(this.shape) + this.name);
  /** The tokens in sight. */
  readonly sight: { first: number; count: number } = $derived(windowOf(current.meta?.tokens.length ?? 1, current.position));
  readonly subject: Subject = $derived({
    shape: this.shape, biases: hasBiases(this.shape, this.preset?.parameters ?? this.#dimensions.parameters), candidates: listed,
    tokens: this.preset ? shapeTokens : this.sight.count, chosen: this.preset ? shapeTokens - 1 : current.position - this.sight.first,
  });
  readonly subjectKey: string = $derived(JSON.stringify(this.subject));
  /** The chosen token's word. */
  readonly word: string = $derived(tokenWord(current.meta?.tokens[current.position]?.text ?? ''));
}
