// Occurrences of a word in a text, and names of the points of the residual stream.

import type { Token } from '../../lib/types';

/**
 * Positions of the last token of each occurrence of `word`: only there has the model seen the whole word.
 * Ignores case and spaces.
 */
export function endsOfWord(tokens: Token[], word: string): number[] {
  const wanted = word.trim().toLowerCase();
  if (!wanted) return [];
  const ends: number[] = [];
  let begin = 0;
  let text = '';
  const close = (end: number) => {
    if (letters(text) === wanted && end >= begin) ends.push(end);
  };
  tokens.forEach((token, position) => {
    const startsWord = /^[^\p{L}\p{N}]/u.test(token.text);
    if (startsWord) {
      close(position - 1);
      text = '';
      begin = position;
    }
    text += token.text;
  });
  close(tokens.length - 1);
  return ends;
}

const letters = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');

/** The whole word that the token at `position` belongs to. */
export function wordAt(tokens: Token[], position: number): string {
  const starts = (at: number) => /^[^\p{L}\p{N}]/u.test(tokens[at].text);
  if (!tokens[position]) return '';
  let begin = position;
  while (begin > 0 && !starts(begin)) begin--;
  let end = position + 1;
  while (end < tokens.length && !starts(end)) end++;
  return letters(tokens.slice(begin, end).map((token) => token.text).join(''));
}

/** The words that occur in both texts, the longest first. */
export function sharedWords(first: Token[], second: Token[]): string[] {
  const words = (tokens: Token[]) => new Set((tokens.map((token) => token.text).join('').toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []));
  const others = words(second);
  return [...words(first)].filter((word) => others.has(word)).sort((a, b) => b.length - a.length || a.localeCompare(b));
}

/** The longest word that occurs more than once. */
export function repeatedWord(tokens: Token[]): string {
  const words: string[] = tokens.map((token) => token.text).join('').toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const repeated = words.filter((word, index) => words.indexOf(word) < index);
  return repeated.reduce((longest, word) => (word.length > longest.length ? word : longest), '');
}

/** A short name for an axis. */
export function shortPointName(point: string): string {
  if (point === 'hook_embed') return 'token';
  const found = /^blocks\.(\d+)\.hook_resid_(pre|mid|post)$/.exec(point);
  if (!found) return point;
  if (found[2] === 'pre') return found[1] === '0' ? '+ pos' : `${Number(found[1]) - 1}`;
  return found[2] === 'mid' ? `${found[1]} att` : `${found[1]} out`;
}

/**
 * The occurrences to compare, at most `most`: the first of every text before the second of any.
 * `ends` are the positions, by text.
 */
export function placesToCompare(ends: number[][], most: number): { text: number; position: number }[] {
  const all = ends.flatMap((places, text) => places.map((position, turn) => ({ text, position, turn })));
  const kept = all.sort((a, b) => a.turn - b.turn || a.text - b.text).slice(0, most);
  return kept.sort((a, b) => a.text - b.text || a.turn - b.turn).map(({ text, position }) => ({ text, position }));
}

/** Whether `word` occurs in the text, ignoring case. */
export const holdsWord = (text: string, word: string): boolean => word !== '' && (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).some((one) => one === word.toLowerCase());

/** A point of the residual stream in words. */
export function pointName(point: string): string {
  if (point === 'hook_embed') return 'token embedding';
  if (point === 'hook_pos_embed') return 'position embedding';
  const found = /^blocks\.(\d+)\.hook_resid_(pre|mid|post)$/.exec(point);
  if (!found) return point;
  const layer = Number(found[1]);
  if (found[2] === 'pre') return layer === 0 ? 'embedding + position' : `after block ${layer - 1}`;
  return found[2] === 'mid' ? `block ${layer}, after attention` : `after block ${layer}`;
}

/** A row of the logit lens in words: 0_pre, 2_mid, final_post. */
export function lensRowName(row: string): string {
  const found = /^(\d+)_(pre|mid)$/.exec(row);
  if (!found) return row === 'final_post' ? 'output' : row;
  return pointName(`blocks.${found[1]}.hook_resid_${found[2]}`);
}
