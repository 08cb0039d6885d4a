import type { ModelCard } from './types';

/** Whether this is the model of the microworld, under whatever name. */
export function isStarter({ embedded }: Pick<ModelCard, 'embedded'>): boolean {
  return embedded === 'starter';
}
