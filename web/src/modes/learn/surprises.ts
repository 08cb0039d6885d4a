// The surprises of the shown text, as the server's numbers give them.

import { api } from '../../lib/api';
import { current } from '../../lib/state.svelte';
import { mostWords } from './matrices';
import { surprise, type Surprised } from './surprise';

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
