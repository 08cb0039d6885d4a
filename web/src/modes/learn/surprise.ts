// The surprise at a token in nats: the negative logarithm of its probability.

import { api } from '../../lib/api';
import { current } from '../../lib/state.svelte';
import { mostWords } from './matrices';

/** From the token's logit and any candidate of the same distribution, which gives the log of the softmax denominator. */
export function surprise(logit: number, known: { logit: number; probability: number }): number {
  const normaliser = known.logit - Math.log(known.probability);
  return normaliser - logit;
}

export interface Surprised {
  position: number;
  before: string;
  next: string;
  nats: number;
}

/** At the true next tokens of the shown text, the first ones of a long text. */
export function surprisesOf(): Promise<Surprised[]> {
  const { tokens } = current.meta!;
  const positions = Array.from({ length: Math.min(tokens.length - 1, mostWords) }, (_, position) => position);
  return current.keep('surprises', (id) =>
    Promise.all(
      positions.map(async (position) => {
        const next = tokens[position + 1];
        const [likeliest, { value: logit }] = await Promise.all([
          api.next(id, { position, temperature: 1, limit: 1 }),
          api.derivation(id, { point: 'logits', position, index: next.id }),
        ]);
        return { position, before: tokens[position].text, next: next.text, nats: surprise(logit, likeliest.candidates[0]) };
      }),
    ),
  );
}

/** The loss: the average surprise. */
export function averageOf(surprises: Surprised[]): number {
  return surprises.reduce((sum, { nats }) => sum + nats, 0) / Math.max(1, surprises.length);
}
