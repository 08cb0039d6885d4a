// Every view is a link: what is shown stands behind the # of the address, and only what differs from the default.

import type { Sampling } from './types';

export interface View {
  mode: string;
  text: string;
  layer: number;
  head: number;
  /** −1: the last token. */
  position: number;
  sampling: Sampling;
  /** What only one mode knows, such as Count's shape; names must not clash with those below. */
  extra: Record<string, string>;
}

export const defaultSampling: Sampling = { temperature: 1, top_k: 40, top_p: 0.95, min_p: 0, repeat_penalty: 1 };

export function defaultView(): View {
  return { mode: 'follow', text: '', layer: 0, head: 0, position: -1, sampling: { ...defaultSampling }, extra: {} };
}

const samplingNames: [keyof Sampling, string][] = [
  ['temperature', 'temperature'],
  ['top_k', 'top-k'],
  ['top_p', 'top-p'],
  ['min_p', 'min-p'],
  ['repeat_penalty', 'repeat-penalty'],
];
const known = new Set(['text', 'layer', 'head', 'position', ...samplingNames.map(([, name]) => name)]);

export function formatLink(view: View): string {
  const query = new URLSearchParams();
  const normal = defaultView();
  if (view.text !== normal.text) query.set('text', view.text);
  for (const name of ['layer', 'head', 'position'] as const) {
    if (view[name] !== normal[name]) query.set(name, String(view[name]));
  }
  for (const [field, name] of samplingNames) {
    if (view.sampling[field] !== normal.sampling[field]) query.set(name, String(view.sampling[field]));
  }
  for (const [name, value] of Object.entries(view.extra)) if (value !== '') query.set(name, value);
  const text = query.toString();
  return `#/${view.mode}${text ? `?${text}` : ''}`;
}

/** Reads what formatLink wrote; what is missing or unreadable keeps its default. */
export function parseLink(hash: string): View {
  const view = defaultView();
  const [path, query = ''] = splitOnce(hash.replace(/^#\/?/, ''), '?');
  if (path) view.mode = path;
  const given = new URLSearchParams(query);
  view.text = given.get('text') ?? view.text;
  for (const name of ['layer', 'head', 'position'] as const) {
    const number = Number(given.get(name) ?? NaN);
    if (Number.isInteger(number) && number >= -1) view[name] = number;
  }
  for (const [field, name] of samplingNames) {
    const number = Number(given.get(name) ?? NaN);
    if (Number.isFinite(number) && number >= 0) view.sampling[field] = number;
  }
  for (const [name, value] of given) if (!known.has(name)) view.extra[name] = value;
  return view;
}

/** Modes that run the model with the changes made to it. */
const changing = ['change', 'generate'];

/** What a link from `view` to another mode carries of its extras: the changes, where both know them. */
export function withChanges(mode: string, view: View): Record<string, string> {
  const { changes = '', cuts = '' } = view.extra;
  return changes !== '' && changing.includes(mode) && changing.includes(view.mode) ? { changes, cuts } : {};
}

function splitOnce(text: string, separator: string): [string, string?] {
  const place = text.indexOf(separator);
  return place < 0 ? [text] : [text.slice(0, place), text.slice(place + 1)];
}
