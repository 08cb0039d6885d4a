// What the view shows, as the link says it: in `page.view.extra`.

import { asPairText } from '../../lib/api';
import { page } from '../../lib/state.svelte';
import type { Site, PairRequest, PairRow, TranslatorExample } from '../../lib/pair_types';
import { formatEdits, type Edit } from './edits';
import { formatHead, type HeadChoice } from '../../lib/head_choice';
import { translator } from './translator.svelte';
import { formatWord, type ChosenWord } from './words';

const names = ['source', 'target', 'word', 'row', 'by', 'kind', 'cross', 'encoder', 'decoder', 'edits', 'rest', 'mask', 'show', 'side', 'other', 'beams', 'penalty'] as const;
export type Name = (typeof names)[number];

const read = (name: Name): string => page.view.extra[name] ?? '';

export const shown = {
  get source(): string { return read('source'); },
  /** Empty: the model's own translation. */
  get target(): string { return read('target'); },
  get word(): string { return read('word'); },
  /** Whether a word of the target stands for the positions that write it, or for the one that has read it. */
  get row(): PairRow { return read('row') === 'read' ? 'read' : 'written'; },
  /** Of the heat map. */
  get unit(): 'words' | 'tokens' { return read('by') === 'tokens' ? 'tokens' : 'words'; },
  get kind(): Site { return (['encoder', 'decoder'] as const).find((kind) => kind === read('kind')) ?? 'cross'; },
  head(kind: Site): string { return read(kind); },
  get edits(): string { return read('edits'); },
  get renormalise(): boolean { return read('rest') === 'renormalise'; },
  get masked(): boolean { return read('mask') === 'on'; },
  /** Whether attention is shown without the changes. */
  get before(): boolean { return read('show') === 'before'; },
  /** The text in which the mask's view replaces a word, and the token. */
  get side(): string { return read('side'); },
  get other(): string { return read('other'); },
};

export function show(name: Name, value: string): void {
  page.view.extra[name] = value;
}
export const showWord = (word: ChosenWord | null): void => show('word', formatWord(word));
export const showHead = (kind: Site, choice: HeadChoice): void => show(kind, formatHead(choice));
export const showEdits = (edits: Edit[]): void => show('edits', formatEdits(edits));

/** Other texts: what was said of the words of the former ones does not hold. */
export function showTexts(source: string, target: string): void {
  Object.assign(page.view.extra, { source, target, word: '', edits: '', side: '', other: '' });
}

function extrasOf({ source, target, layer, head, target_word }: TranslatorExample): Partial<Record<Name, string>> {
  const word = typeof target_word === 'number' ? `t${target_word}` : target_word ? `t:${target_word}` : '';
  const cross = typeof layer === 'number' ? formatHead({ layer, head: head ?? null }) : '';
  return { source, target: target ?? '', word, cross };
}

export function showExample(example: TranslatorExample): void {
  showTexts('', '');
  Object.assign(page.view.extra, extrasOf(example));
}

/** The view that is left for another mode, and the translator that it is of. */
let left: { of?: string; view: Partial<Record<Name, string>> } = { view: {} };

/** Call in an effect. */
export function remember(): void {
  if (page.view.mode === 'translate' && shown.source !== '') left = { of: translator.card?.name, view: Object.fromEntries(names.map((name) => [name, read(name)])) };
}

/** What a link without a text shows: what was shown before another mode, or the example. */
export function fill(example: TranslatorExample): void {
  if (shown.source !== '') return;
  for (const [name, value] of Object.entries(left.view.source && left.of === translator.card?.name ? left.view : extrasOf(example))) page.view.extra[name] ||= value;
}

export function requestOf(source: string, target: string): PairRequest {
  return { ...asPairText('source', source), ...(target.trim() ? asPairText('target', target) : {}) };
}
