import type { ModelCard } from './types';

/** Whether this is the built-in model, under whatever name: only its examples say which head they are about. */
export function isStarter({ examples }: Pick<ModelCard, 'examples'>): boolean {
  return examples.some(({ layer }) => layer !== undefined);
}
