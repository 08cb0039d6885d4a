// How the next token is sampled. Defaults are the server's; a view holds only what differs from them.

import type { Sampling } from './types';

/** The model's own distribution: nothing is removed and no logit is changed. */
export const unmodified: Sampling = { temperature: 1, top_k: 0, top_p: 1, min_p: 0, repeat_penalty: 1 };

export const samplingFields = Object.keys(unmodified) as (keyof Sampling)[];

/** The settings of `given` that differ from the defaults. */
export function differing(given: Partial<Sampling>, defaults: Sampling): Partial<Sampling> {
  return Object.fromEntries(samplingFields.filter((field) => given[field] !== undefined && given[field] !== defaults[field]).map((field) => [field, given[field]]));
}
