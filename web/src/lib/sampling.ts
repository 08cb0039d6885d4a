// How the next token is sampled: the server lists the options. A view holds only what differs from their defaults.

import type { Sampling, SamplingOption } from './types';

/** The settings of all options, each a value of its row. */
function valuesOf(options: SamplingOption[], value: (option: SamplingOption) => number): Sampling {
  return Object.fromEntries(options.map((option) => [option.name, value(option)]));
}

export const defaultsOf = (options: SamplingOption[]): Sampling => valuesOf(options, (option) => option.default);

/** The model's own distribution: nothing is removed and no logit is changed. */
export const unmodifiedOf = (options: SamplingOption[]): Sampling => valuesOf(options, ({ unmodified }) => unmodified);

/** The settings of `given` that differ from the defaults. */
export function differing(given: Sampling, options: SamplingOption[]): Sampling {
  return Object.fromEntries(options.filter(({ name, default: normal }) => given[name] !== undefined && given[name] !== normal).map(({ name }) => [name, given[name]]));
}

/** The name of an option in a link: "top-k". */
export const linkName = (name: string): string => name.replaceAll('_', '-');

/** A value as the option's control shows it. */
export function settingText({ step, at_zero }: SamplingOption, value: number): string {
  const decimals = step >= 1 ? 0 : String(step).split('.')[1].length;
  return value === 0 && at_zero ? at_zero : value.toFixed(decimals);
}
