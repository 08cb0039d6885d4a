// Changes of a pair, as the link writes them and as the server's interventions: a head that is switched off (cross.L1H2),
// and cut edges from a word to a word (cross:3>2, cross.L1:3>2, cross.L1H2:3>2).

import { tokenWord } from '../../lib/numbers';
import type { Site, PairMeta } from '../../lib/pair_types';
import type { Intervention } from '../../lib/types';
import { isLater, keyWords, queryWords } from './words';
import { siteOf, stackName } from './heads';

export interface HeadOff {
  kind: 'off';
  of: Site;
  layer: number;
  head: number;
}

/** All edges from one word to another, in one head, in all of a block, or in all. */
export interface WordCut {
  kind: 'cut';
  of: Site;
  layer: number | null;
  head: number | null;
  /** Indices of words: the query's and the key's. */
  from: number;
  to: number;
}

export type Edit = HeadOff | WordCut;

/** cross, cross.L1, cross.L1H2. */
export function pointOf({ of, layer, head }: Pick<WordCut, 'of' | 'layer' | 'head'>): string {
  return `${of}${layer === null ? '' : `.L${layer}${head === null ? '' : `H${head}`}`}`;
}

export const formatEdit = (edit: Edit): string => (edit.kind === 'off' ? pointOf(edit) : `${pointOf(edit)}:${edit.from}>${edit.to}`);
export const formatEdits = (edits: Edit[]): string => edits.map(formatEdit).join(';');

const pattern = /^(encoder|decoder|cross)(?:\.L(\d+)(?:H(\d+))?)?(?::(\d+)>(\d+))?$/;

/** Parses what formatEdits wrote; invalid parts are left out. */
export function parseEdits(text: string): Edit[] {
  return text.split(';').flatMap((part): Edit[] => {
    const found = pattern.exec(part);
    if (!found) return [];
    const [of, layer, head, from, to] = [found[1] as Site, ...found.slice(2).map((number) => (number === undefined ? null : Number(number)))] as [Site, ...(number | null)[]];
    if (from !== null && to !== null) return [{ kind: 'cut', of, layer, head, from, to }];
    return layer !== null && head !== null ? [{ kind: 'off', of, layer, head }] : [];
  });
}

export const hasEdit = (edits: Edit[], edit: Edit): boolean => edits.some((other) => formatEdit(other) === formatEdit(edit));

/** Adds the edit, or removes it where it is there. */
export function toggled(edits: Edit[], edit: Edit): Edit[] {
  return hasEdit(edits, edit) ? edits.filter((other) => formatEdit(other) !== formatEdit(edit)) : [...edits, edit];
}

/** Whether the model has the head, the texts have the words, and there is an edge to cut. */
export function fits(edit: Edit, meta: PairMeta): boolean {
  const { layers, heads } = siteOf(meta, edit.of);
  if ((edit.layer ?? 0) >= layers || (edit.head ?? 0) >= heads) return false;
  if (edit.kind === 'off') return true;
  const [query, key] = [queryWords(meta, edit.of)[edit.from], keyWords(meta, edit.of)[edit.to]];
  if (!query || !key) return false;
  return edit.of !== 'decoder' || !isLater(query, key, 'written');
}

/** Whether a cut takes the edge from one word to another out of a head. */
export function isCut(edits: Edit[], of: Site, layer: number, head: number | null, from: number, to: number): boolean {
  return edits.some((edit) => edit.kind === 'cut' && edit.of === of && edit.from === from && edit.to === to
    && (edit.layer === null || (edit.layer === layer && (edit.head === null || edit.head === head))));
}

/** Hides from each source token those that come later. */
export const causalEncoder: Intervention = { kind: 'mask', point: 'encoder', mask: 'causal' };
/** Whether a pair's encoder is changed so. */
export const hasCausalEncoder = ({ interventions }: Pick<PairMeta, 'interventions'>): boolean => interventions.some(({ kind, point, mask }) => kind === 'mask' && point === 'encoder' && mask === 'causal');

export function toInterventions(edits: Edit[], { masked, renormalise }: { masked: boolean; renormalise: boolean }): Intervention[] {
  return [
    ...(masked ? [causalEncoder] : []),
    ...edits.map((edit): Intervention => edit.kind === 'off'
      ? { kind: 'ablate', point: pointOf(edit) }
      : { kind: 'cut_words', point: pointOf(edit), target: edit.from, source: edit.to, ...(renormalise ? { renormalise } : {}) }),
  ];
}

/** "all heads of cross-attention", "head 2 of block 1 of the encoder". */
function whereInWords({ of, layer, head }: Pick<WordCut, 'of' | 'layer' | 'head'>): string {
  const stack = of === 'cross' ? stackName.cross : `the ${stackName[of]}`;
  if (layer === null) return `all heads of ${stack}`;
  return head === null ? `all heads of block ${layer} of ${stack}` : `head ${head} of block ${layer} of ${stack}`;
}

export function describeEdit(edit: Edit, meta: PairMeta): string {
  if (edit.kind === 'off') return `${whereInWords(edit)}: off`;
  const [query, key] = [queryWords(meta, edit.of)[edit.from], keyWords(meta, edit.of)[edit.to]];
  const name = (word: { text: string } | undefined, index: number) => (word ? `“${tokenWord(word.text)}”` : `word ${index}`);
  return `${name(query, edit.from)} no longer attends to ${name(key, edit.to)} in ${whereInWords(edit)}`;
}
