// What is pictured: the loaded model with its numbers, or only the shape of another one.

import { api } from '../../lib/api';
import { loaded } from '../../lib/load.svelte';
import { tokenWord } from '../../lib/numbers';
import { current, page } from '../../lib/state.svelte';
import type { Architecture, Preset } from '../../lib/types';
import { describedBy, shapeOf, type Shape } from '../count/shape';
import { windowOf, type Subject } from './parts';

/** Candidates of the next token in the picture. */
const listed = 10;
const shapeTokens = 12;

/** Make it during component initialisation. */
export class Pictured {
  readonly listed = listed;
  readonly presets = loaded(() => api.presets());
  readonly name: string = $derived(page.view.extra.picture ?? '');
  readonly preset: Preset | undefined = $derived(this.presets.value?.find(({ name }) => name === this.name));
  /** A preset gives its sizes; the rest of its description comes with its count. */
  readonly #described = loaded(() => {
    const name = this.preset?.name;
    return name ? api.parameters({ config: name }).then(({ architecture }) => ({ name, architecture })) : null;
  });
  readonly #presetArchitecture: Architecture | undefined = $derived(this.#described.value?.name === this.preset?.name ? this.#described.value?.architecture : undefined);
  readonly #dimensions = $derived(current.meta?.dimensions ?? page.model!.dimensions);
  readonly shape: Shape = $derived(this.preset ? shapeOf(this.preset.config, this.#presetArchitecture) : shapeOf({ ...this.#dimensions, tied: page.model!.tied }, page.architecture));
  readonly architecture: Architecture = $derived(this.preset ? (this.#presetArchitecture ?? describedBy(this.shape)) : page.architecture);
  readonly shapeKey: string = $derived(JSON.stringify(this.shape) + this.name);
  /** The tokens in sight. */
  readonly shown: { first: number; count: number } = $derived(windowOf(current.meta?.tokens.length ?? 1, current.position));
  readonly subject: Subject = $derived({
    shape: this.shape, architecture: this.architecture, candidates: listed,
    tokens: this.preset ? shapeTokens : this.shown.count, chosen: this.preset ? shapeTokens - 1 : current.position - this.shown.first,
  });
  readonly subjectKey: string = $derived(JSON.stringify(this.subject));
  /** The chosen token's word. */
  readonly word: string = $derived(tokenWord(current.meta?.tokens[current.position]?.text ?? ''));
}
