import type { Component } from 'svelte';

export interface Mode {
  id: string;
  title: string;
  /** One line under the title and in the navigation's tooltip. */
  purpose: string;
  /** Whether the mode uses the prompt and shows the prompt box. */
  prompt: boolean;
  /** The served models that the mode can show: decoders have traces of one text, translators pairs of two. */
  shows: 'decoders' | 'any model';
  load: () => Promise<{ default: Component }>;
}

/** The modes in the order of the navigation; each is a chunk, loaded when first shown. */
export const modes: Mode[] = [
  { id: 'learn', title: 'Learn', purpose: 'How a transformer works, in nine short steps', prompt: false, shows: 'decoders', load: () => import('./learn/Learn.svelte') },
  { id: 'follow', title: 'Follow', purpose: 'One token, from its embedding to the prediction of the next', prompt: true, shows: 'decoders', load: () => import('./follow/Follow.svelte') },
  { id: 'whole-model', title: 'Whole model', purpose: 'The whole model in one picture, from all blocks down to one number', prompt: true, shows: 'decoders', load: () => import('./whole/Whole.svelte') },
  { id: 'compare', title: 'Compare', purpose: 'All heads and blocks side by side', prompt: true, shows: 'decoders', load: () => import('./compare/Compare.svelte') },
  { id: 'change', title: 'Change', purpose: 'Switch parts of the model off and compare its predictions', prompt: true, shows: 'decoders', load: () => import('./change/Change.svelte') },
  { id: 'generate', title: 'Generate', purpose: 'Generate text token by token', prompt: true, shows: 'decoders', load: () => import('./generate/Generate.svelte') },
  { id: 'translate', title: 'Translate', purpose: 'Two texts: an encoder reads one, a decoder writes the other and attends to both', prompt: false, shows: 'any model', load: () => import('./translate/Translate.svelte') },
  { id: 'watch-it-learn', title: 'Watch it learn', purpose: 'Training runs: loss, samples and attention at every checkpoint', prompt: false, shows: 'decoders', load: () => import('./watch/Watch.svelte') },
  { id: 'count', title: 'Count', purpose: 'Parameters, memory and compute of a model, up to GPT-3', prompt: false, shows: 'decoders', load: () => import('./count/Count.svelte') },
];

/** The modes that the served model can be shown in; all while it is not known. */
export function offeredModes(isTranslator: boolean): Mode[] {
  return isTranslator ? modes.filter(({ shows }) => shows === 'any model') : modes;
}

/** The mode of a link, or the first one that the served model can be shown in. */
export function modeOf(id: string, isTranslator = false): Mode {
  const offered = offeredModes(isTranslator);
  return offered.find((mode) => mode.id === id) ?? offered[0];
}

/** The tabs of the navigation: in a lesson, only the tour and the mode that is shown. */
export function tabsOf(shown: string, { isTranslator, isLesson }: { isTranslator: boolean; isLesson: boolean }): Mode[] {
  return offeredModes(isTranslator).filter(({ id }) => !isLesson || id === 'learn' || id === shown);
}
