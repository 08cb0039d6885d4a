// Every view is a link: the part behind the # describes it, and holds only what differs from the defaults.

import { linkName } from './sampling';
import type { Example, Sampling, SamplingOption } from './types';

export interface View {
  mode: string;
  /** The name of the model that is shown; empty: the one that the server was started with. */
  model: string;
  text: string;
  layer: number;
  head: number;
  /** −1: the last token. */
  position: number;
  /** The settings that differ from the server's defaults. */
  sampling: Sampling;
  /** Settings of a single mode, such as Count's shape, and the shared ones below; names must not clash with the fields. */
  extra: Record<string, string>;
  /** A lesson hides the other modes. */
  lesson: boolean;
}

export function defaultView(): View {
  return { mode: 'learn', model: '', text: '', layer: 0, head: 0, position: -1, sampling: {}, extra: {}, lesson: false };
}

const known = ['model', 'text', 'layer', 'head', 'position', 'lesson'];

/** The mode of a link that has settings and names no mode. */
const unnamed = 'follow';

/** The extra `pick=effect`: the head is picked by its effect. So it is, too, where a link has a text and names no head. */
export const byEffect = 'effect';

export function formatLink(view: View): string {
  const query = new URLSearchParams();
  const normal = defaultView();
  if (view.model !== normal.model) query.set('model', view.model);
  if (view.text !== normal.text) query.set('text', view.text);
  for (const name of ['layer', 'head', 'position'] as const) {
    if (view[name] !== normal[name]) query.set(name, String(view[name]));
  }
  const namesNoHead = view.text !== '' && !query.has('layer') && !query.has('head');
  if (namesNoHead && view.extra.pick !== byEffect) query.set('head', '0');
  for (const [name, value] of Object.entries(view.sampling)) query.set(linkName(name), String(value));
  for (const [name, value] of Object.entries(view.extra)) if (value !== '' && !(namesNoHead && name === 'pick')) query.set(name, value);
  if (view.lesson) query.set('lesson', '1');
  const text = query.toString();
  return `#/${view.mode}${text ? `?${text}` : ''}`;
}

/** Parses a link; a setting that is missing or invalid has its default. While the options are not known, those of sampling are extras, which the link of the view has again. */
export function parseLink(hash: string, options: SamplingOption[] = []): View {
  const view = defaultView();
  const [path, query = ''] = splitOnce(hash.replace(/^#\/?/, ''), '?');
  const given = new URLSearchParams(query);
  view.mode = path || (given.has('text') || given.has('layer') || given.has('head') ? unnamed : view.mode);
  view.lesson = given.get('lesson') === '1';
  view.model = given.get('model') ?? view.model;
  view.text = given.get('text') ?? view.text;
  for (const name of ['layer', 'head', 'position'] as const) {
    const number = Number(given.get(name) ?? NaN);
    if (Number.isInteger(number) && number >= -1) view[name] = number;
  }
  for (const { name, min } of options) {
    const number = Number(given.get(linkName(name)) || NaN);
    if (Number.isFinite(number) && number >= Math.min(min, 0)) view.sampling[name] = number;
    given.delete(linkName(name));
  }
  for (const [name, value] of given) if (!known.includes(name)) view.extra[name] = value;
  if (view.text !== '' && !given.has('layer') && !given.has('head')) view.extra.pick = byEffect;
  return view;
}

/** Modes that run the changed model. */
const changing = ['change', 'generate'];

/** The extras that a link from `view` to another mode keeps: how its head is picked, the unit of attention, how weights are drawn, and the changes where both modes run the changed model. */
export function keptExtras(mode: string, view: View): Record<string, string> {
  const { pick = '', unit = '', draw = '', changes = '', cuts = '' } = view.extra;
  const isChanged = changes !== '' && changing.includes(mode) && changing.includes(view.mode);
  return { ...(pick && { pick }), ...(unit && { unit }), ...(draw && { draw }), ...(isChanged && { changes, cuts }) };
}

/** The view of another model: the text stays, with what holds of any model. A block, a head, changes or a checkpoint were of the former one. */
export function viewOfModel(view: View, model: string, text = view.text): View {
  const { unit = '', draw = '', chapter = '' } = view.extra;
  return { ...defaultView(), mode: view.mode, model, text, sampling: view.sampling, extra: { ...(text !== '' && { pick: byEffect }), ...(unit && { unit }), ...(draw && { draw }), ...(chapter && { chapter }) } };
}

/** Fills a view that has no text from an example; a block, head or position that the link gives stays. */
export function opened(view: View, example: Example): View {
  if (view.text !== '') return view;
  const { layer, head, position } = defaultView();
  if (view.layer !== layer || view.head !== head) return { ...view, text: example.text };
  const named = view.position === position && example.layer !== undefined;
  const extra = named ? view.extra : { ...view.extra, pick: byEffect };
  return { ...view, text: example.text, layer: example.layer ?? layer, head: example.head ?? head, position: view.position === position ? (example.position ?? position) : view.position, extra };
}

function splitOnce(text: string, separator: string): [string, string?] {
  const place = text.indexOf(separator);
  return place < 0 ? [text] : [text.slice(0, place), text.slice(place + 1)];
}
