// What is chosen for a new training, and the request that starts it.

import { bytes } from '../../lib/numbers';
import type { Run, Training, TrainingNumber, TrainingPreset, TrainingRequest } from '../../lib/types';

export type Field = TrainingNumber | 'seed';

export interface Form {
  source: 'stories' | 'text';
  preset: string;
  text: string;
  tokenizer: 'char' | 'bpe';
  /** As typed; a field that is empty has the preset's number. */
  settings: Partial<Record<Field, string>>;
}

export const fields: { id: Field; title: string; note: string }[] = [
  { id: 'layers', title: 'Blocks', note: 'layers of attention and feed-forward' },
  { id: 'heads', title: 'Heads', note: 'in each block' },
  { id: 'width', title: 'Width', note: 'channels of the residual stream' },
  { id: 'context', title: 'Context', note: 'tokens that it sees at once' },
  { id: 'steps', title: 'Steps', note: 'updates of the parameters' },
  { id: 'batch_size', title: 'Batch size', note: 'texts in a step' },
  { id: 'learning_rate', title: 'Learning rate', note: 'the highest of the schedule' },
  { id: 'seed', title: 'Seed', note: 'of the first weights and the order of the text' },
];

export function newForm(presets: TrainingPreset[]): Form {
  return { source: 'stories', preset: presets[0]?.name ?? '', text: '', tokenizer: 'char', settings: {} };
}

type Limits = Training['limits'];

const presetOf = (form: Form, presets: TrainingPreset[]) => presets.find(({ name }) => name === form.preset) ?? presets[0];

function wrongNumber(field: Field, typed: string, limits: Limits): string | null {
  const number = Number(typed);
  const isWhole = field !== 'learning_rate';
  if (!Number.isFinite(number) || (isWhole && !Number.isInteger(number))) return isWhole ? `“${typed}” is not a whole number.` : `“${typed}” is not a number.`;
  if (field === 'seed') return number >= 0 && number <= Number.MAX_SAFE_INTEGER ? null : 'A seed is a whole number from 0.';
  const [least, most] = limits[field];
  return number >= least && number <= most ? null : `It must be from ${rangeText(field, limits)}.`;
}

/** The numbers that a field takes, in words. */
export function rangeText(field: TrainingNumber, limits: Limits): string {
  const [least, most] = limits[field].map((end) => end.toLocaleString('en-US', { maximumSignificantDigits: 6 }));
  return `${least} to ${most}`;
}

/** What is wrong with each field; empty where the form can be sent. */
export function errorsOf(form: Form, presets: TrainingPreset[], limits: Limits): Partial<Record<Field | 'text', string>> {
  const errors: Partial<Record<Field | 'text', string>> = {};
  for (const { id } of fields) {
    const typed = form.settings[id]?.trim() ?? '';
    const wrong = typed === '' ? null : wrongNumber(id, typed, limits);
    if (wrong) errors[id] = wrong;
  }
  const [heads, width] = [numberOf(form, presets, 'heads'), numberOf(form, presets, 'width')];
  if (!errors.heads && !errors.width && width % heads !== 0) errors.width = `The width must be a multiple of the number of heads: ${width} is not one of ${heads}.`;
  if (form.source === 'text') {
    const size = new TextEncoder().encode(form.text).length;
    if (form.text.trim() === '') errors.text = 'Type or paste a text to train on.';
    else if (size > limits.text_bytes) errors.text = `The text has ${bytes(size)}; at most ${bytes(limits.text_bytes)} are possible.`;
  }
  return errors;
}

/** What a field has: the typed number or the preset's. */
export function numberOf(form: Form, presets: TrainingPreset[], field: TrainingNumber): number {
  const typed = form.settings[field]?.trim() ?? '';
  return typed === '' ? (presetOf(form, presets)?.[field] ?? NaN) : Number(typed);
}

/** A request holds what differs from the preset. */
export function requestOf(form: Form, presets: TrainingPreset[]): TrainingRequest {
  const preset = presetOf(form, presets);
  const settings: TrainingRequest['settings'] = {};
  for (const { id } of fields) {
    const typed = form.settings[id]?.trim() ?? '';
    if (typed !== '' && (id === 'seed' || Number(typed) !== preset?.[id])) settings[id] = Number(typed);
  }
  return {
    ...(preset ? { preset: preset.name } : {}),
    ...(form.source === 'text' ? { text: form.text, tokenizer: form.tokenizer } : {}),
    ...(Object.keys(settings).length > 0 ? { settings } : {}),
  };
}

/** The form that gives a request. */
export function formOf(request: TrainingRequest, presets: TrainingPreset[]): Form {
  const form = newForm(presets);
  return {
    ...form,
    preset: request.preset ?? form.preset,
    ...(request.text === undefined ? {} : { source: 'text', text: request.text, tokenizer: request.tokenizer ?? form.tokenizer }),
    settings: Object.fromEntries(Object.entries(request.settings ?? {}).map(([field, number]) => [field, String(number)])),
  };
}

/**
 * The request that trains a run on stories again; null where its stories are not known. They are those of a preset: of
 * the only one, or the one by which the run is named ("creatures-2"). What run.json calls the channels is the width.
 */
export function requestOfRun(run: Pick<Run, 'name' | 'settings'>, presets: TrainingPreset[]): TrainingRequest | null {
  const preset = presets.find(({ name }) => run.name.replace(/-\d+$/, '') === name) ?? (presets.length === 1 ? presets[0] : undefined);
  if (!preset) return null;
  const settings: TrainingRequest['settings'] = {};
  for (const { id } of fields) {
    const number = run.settings[id === 'width' ? 'channels' : id];
    if (typeof number === 'number') settings[id] = number;
  }
  return { preset: preset.name, settings };
}

/** About how long it takes, in words. */
export function duration(seconds: number): string {
  const whole = Math.max(1, Math.round(seconds));
  if (whole < 90) return `about ${whole} second${whole === 1 ? '' : 's'}`;
  return `about ${Math.round(seconds / 60)} minutes`;
}
