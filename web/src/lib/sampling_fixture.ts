// Rows of the server's table of sampling options, for tests.
import type { SamplingOption } from './types';

const row = (name: string, stage: string, unmodified: number, more: Partial<SamplingOption>): SamplingOption =>
  ({ name, stage, label: name.replace('_', '-'), help: '', default: unmodified, unmodified, min: 0, max: 1, step: 0.01, at_zero: '', ...more });

export const samplingOptions: SamplingOption[] = [
  row('temperature', 'temperature', 1, { default: 0.8, max: 2, step: 0.05, at_zero: 'greedy' }),
  row('top_k', 'top-k', 0, { default: 40, max: 100, step: 1, at_zero: 'all' }),
  row('top_p', 'top-p', 1, { min: 0.05, default: 0.95 }),
  row('min_p', 'min-p', 0, { default: 0.05, max: 0.5, step: 0.005 }),
  row('repeat_penalty', 'penalties', 1, { min: 1, max: 2 }),
];
