import { expect, it } from 'vitest';
import type { Training, TrainingPreset } from '../../lib/types';
import { duration, errorsOf, formOf, newForm, rangeText, requestOf, requestOfRun, type Form } from './train_form';

const preset = (name: string, steps: number): TrainingPreset => ({ name, title: name, note: '', layers: 2, heads: 4, width: 64, context: 64, steps, batch_size: 8, learning_rate: 0.002, seconds: 40 });
const presets = [preset('small', 500), preset('large', 2000)];
const limits: Training['limits'] = { layers: [1, 8], heads: [1, 8], width: [16, 256], context: [16, 512], steps: [10, 20000], batch_size: [1, 64], learning_rate: [1e-6, 0.1], text_bytes: 40 };
const form = (changes: Partial<Form> = {}): Form => ({ ...newForm(presets), ...changes });

it('starts with the first preset, and sends only what was changed', () => {
  expect(requestOf(form(), presets)).toEqual({ preset: 'small' });
  expect(errorsOf(form(), presets, limits)).toEqual({});
  const changed = form({ preset: 'large', settings: { steps: ' 30 ', layers: '2', seed: '7', learning_rate: '1e-3', heads: '' } });
  expect(errorsOf(changed, presets, limits)).toEqual({});
  expect(requestOf(changed, presets)).toEqual({ preset: 'large', settings: { steps: 30, seed: 7, learning_rate: 0.001 } });
});

it('sends a text with its tokenizer', () => {
  expect(requestOf(form({ source: 'text', text: 'a b', tokenizer: 'bpe' }), presets)).toEqual({ preset: 'small', text: 'a b', tokenizer: 'bpe' });
  expect(requestOf(form({ text: 'typed, then not chosen' }), presets).text).toBeUndefined();
});

it('says what is wrong with a field', () => {
  const errors = errorsOf(form({ settings: { layers: '9', width: '64.5', steps: 'many', learning_rate: '0', seed: '-1' } }), presets, limits);
  expect(errors).toEqual({
    layers: 'It must be from 1 to 8.', width: '“64.5” is not a whole number.', steps: '“many” is not a whole number.',
    learning_rate: 'It must be from 0.000001 to 0.1.', seed: 'A seed is a whole number from 0.',
  });
  expect(errorsOf(form({ settings: { heads: '3' } }), presets, limits).width).toContain('64 is not one of 3');
  expect(rangeText('steps', limits)).toBe('10 to 20,000');
});

it('refuses a missing text and one that is too long, counted in bytes', () => {
  expect(errorsOf(form({ source: 'text', text: ' \n' }), presets, limits).text).toContain('Type or paste');
  expect(errorsOf(form({ source: 'text', text: 'é'.repeat(20) }), presets, limits)).toEqual({});
  expect(errorsOf(form({ source: 'text', text: 'é'.repeat(21) }), presets, limits).text).toBe('The text has 42 B; at most 40 B are possible.');
});

it('restores the form from a request and from a run', () => {
  for (const one of [{ preset: 'large', settings: { steps: 30, seed: 7 } }, { preset: 'small', text: 'a', tokenizer: 'bpe' as const }]) expect(requestOf(formOf(one, presets), presets)).toEqual(one);
  const settings = { layers: 1, channels: 32, steps: 20, tokenizer: 'char', seed: 3 };
  expect(requestOfRun({ name: 'large-2', settings }, presets)).toEqual({ preset: 'large', settings: { layers: 1, width: 32, steps: 20, seed: 3 } });
  expect(requestOfRun({ name: 'given', settings }, presets)).toBeNull();
});

it('tells a duration', () => {
  expect([0.2, 40, 100].map(duration)).toEqual(['about 1 second', 'about 40 seconds', 'about 2 minutes']);
});
