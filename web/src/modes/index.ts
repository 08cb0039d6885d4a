import type { Component } from 'svelte';

export interface Mode {
  id: string;
  title: string;
  /** One line under the title and in the navigation's tooltip. */
  purpose: string;
  /** Whether the mode reads the prompt (and so shows the prompt box). */
  prompt: boolean;
  load: () => Promise<{ default: Component }>;
}

/** The modes in the order of the navigation; each is its own file, fetched when first shown. */
export const modes: Mode[] = [
  { id: 'follow', title: 'Follow', purpose: 'One word, from its letters to the next word', prompt: true, load: () => import('./follow/Follow.svelte') },
  { id: 'across', title: 'Look across', purpose: 'All heads and layers side by side', prompt: true, load: () => import('./across/Across.svelte') },
  { id: 'change', title: 'Change', purpose: 'Switch parts off and see what becomes of the answer', prompt: true, load: () => import('./change/Change.svelte') },
  { id: 'generate', title: 'Generate', purpose: 'Let it write, step by step', prompt: true, load: () => import('./generate/Generate.svelte') },
  { id: 'watch', title: 'Watch it learn', purpose: 'A training run, from noise to sense', prompt: false, load: () => import('./watch/Watch.svelte') },
  { id: 'count', title: 'Count', purpose: 'Where the parameters are, up to GPT-3', prompt: false, load: () => import('./count/Count.svelte') },
  { id: 'learn', title: 'Learn', purpose: 'A guided tour in eight short chapters', prompt: false, load: () => import('./learn/Learn.svelte') },
];

export function modeOf(id: string): Mode {
  return modes.find((mode) => mode.id === id) ?? modes[0];
}
