// The translator at hand, if any, and its description as data.

import { api, ApiError } from './api';
import type { TranslatorCard, TranslatorExample } from './pair_types';
import { platform } from './platform';
import { modelOf, type DescribedStack, type StackedModel } from './stacks';

/** With what both stacks are made of. */
export type DescribedTranslator = TranslatorCard & { architecture?: Record<'encoder' | 'decoder', DescribedStack['architecture']> };

/** What a translator without examples is shown with. */
export const opening: TranslatorExample = { id: 'opening', title: 'A sentence', source: 'The dog sleeps.' };

/** What is said where there is none, without an end. */
export const noTranslator = platform.isServer ? 'This server holds no translator' : 'This page has no translator open';

/** The model that is shown, where it is one, or the one that a server holds beside it; null: there is none. */
export function heldTranslator(): Promise<DescribedTranslator | null> {
  return api.translator().catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });
}

/** Its parts; null where the server's description does not give its number of parameters. */
export function stackedModel({ name, encoder, decoder, parameters, architecture }: DescribedTranslator): StackedModel | null {
  return architecture ? modelOf(name, { ...encoder, architecture: architecture.encoder }, { ...decoder, architecture: architecture.decoder }, parameters) : null;
}
