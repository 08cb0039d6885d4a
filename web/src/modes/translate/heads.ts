// The kinds of attention of two texts, and the head of each that is shown.

import { choicesOfBlock, type HeadChoice } from '../../lib/head_choice';
import { headInWords } from '../../lib/statistics';
import type { Site, SiteMeta, PairMeta } from '../../lib/pair_types';

export const kinds: { kind: Site; title: string; says: string }[] = [
  { kind: 'cross', title: 'Between the texts', says: 'cross-attention: rows are words of the target, columns words of the source' },
  { kind: 'encoder', title: 'In the encoder', says: 'the source among itself, in both directions' },
  { kind: 'decoder', title: 'In the decoder', says: 'the target and its own past; later words are masked' },
];

/** The first choice of the last block where the text names none that the model has. */
export function parseHead(text: string | undefined, { layers, heads }: Pick<SiteMeta, 'layers' | 'heads'>): HeadChoice {
  const found = /^L(\d+)(?:H(\d+))?$/.exec(text ?? '');
  const first = choicesOfBlock(heads)[0];
  const choice = found && { layer: Number(found[1]), head: found[2] === undefined ? first : Number(found[2]) };
  const exists = choice && choice.layer < layers && (choice.head ?? 0) < heads;
  return exists ? choice : { layer: layers - 1, head: first };
}

export const siteOf = (meta: PairMeta, kind: Site): SiteMeta => meta.sites.find((one) => one.site === kind)!;

/** "block 1, head 2", "the mean of the 4 heads of block 1". */
export function choiceInWords({ layer, head }: HeadChoice, heads: number): string {
  if (heads === 1) return `the only head of block ${layer}`;
  return head !== null ? headInWords(layer, head) : `the mean of the ${heads} heads of block ${layer}`;
}

export const stackName: Record<Site, string> = { encoder: 'encoder', decoder: 'decoder', cross: 'cross-attention' };
