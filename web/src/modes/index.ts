import type { Component } from 'svelte';

export interface Mode {
  id: string;
  title: string;
  /** One line under the title and in the navigation's tooltip. */
  purpose: string;
  /** Whether the mode uses the prompt and shows the prompt box. */
  prompt: boolean;
  load: () => Promise<{ default: Component }>;
}

/** The modes in the order of the navigation; each is a chunk, loaded when first shown. */
export const modes: Mode[] = [
  { id: 'follow', title: 'Follow', purpose: 'One token, from its embedding to the prediction of the next', prompt: true, load: () => import('./follow/Follow.svelte') },
  { id: 'whole', title: 'Whole model', purpose: 'The whole model in one picture, from all blocks down to one number', prompt: true, load: () => import('./whole/Whole.svelte') },
  { id: 'across', title: 'Compare', purpose: 'All heads and layers side by side', prompt: true, load: () => import('./across/Across.svelte') },
  { id: 'change', title: 'Change', purpose: 'Switch parts of the model off and compare its predictions', prompt: true, load: () => import('./change/Change.svelte') },
  { id: 'generate', title: 'Generate', purpose: 'Generate text token by token', prompt: true, load: () => import('./generate/Generate.svelte') },
  { id: 'watch', title: 'Watch it learn', purpose: 'Training runs: loss, samples and attention at every checkpoint', prompt: false, load: () => import('./watch/Watch.svelte') },
  { id: 'count', title: 'Count', purpose: 'Parameters, memory and compute of a model, up to GPT-3', prompt: false, load: () => import('./count/Count.svelte') },
  { id: 'learn', title: 'Learn', purpose: 'A guided tour in eight short chapters', prompt: false, load: () => import('./learn/Learn.svelte') },
];

export function modeOf(id: string): Mode {
  return modes.find((mode) => mode.id === id) ?? modes[0];
}
