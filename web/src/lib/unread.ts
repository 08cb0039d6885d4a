// The words of a text that the model has not read, and the sentence of its examples that is nearest to a text.

import type { Token, Unread } from './types';

/** The sentence about such words; null where the model has read every word, or where that is not known. */
export const noteOf = (unread: Unread | null | undefined): string | null => unread?.note ?? null;

/** Whether the model has not read a word of the tokens [begin, end). */
export function holdsUnread(unread: Unread | null | undefined, begin: number, end: number): boolean {
  return unread?.words.some(({ tokens: [first, after] }) => first < end && begin < after) ?? false;
}

/** A part of a text; `unread` where the model has not read it. */
export interface Part {
  text: string;
  unread: boolean;
}

/** The text in parts that, one after the other, are the text. The server counts bytes of UTF-8. */
export function partsOf(text: string, unread: Unread | null | undefined): Part[] {
  const bytes = new TextEncoder().encode(text);
  const decode = (begin: number, end: number) => new TextDecoder().decode(bytes.subarray(begin, end));
  const parts: Part[] = [];
  let at = 0;
  for (const { text: word, bytes: [begin, end] } of unread?.words ?? []) {
    // What a tokenizer changes in a text may move its words.
    if (begin < at || decode(begin, end) !== word) continue;
    if (begin > at) parts.push({ text: decode(at, begin), unread: false });
    parts.push({ text: word, unread: true });
    at = end;
  }
  if (at < bytes.length) parts.push({ text: decode(at, bytes.length), unread: false });
  return parts;
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/\p{L}[\p{L}\p{M}'’]*/gu) ?? [];

/**
 * Of the other sentences, the one that shares the largest part of its words and the text's, rare ones (in few of the sentences) counting more; of equal
 * ones, that whose length is nearest. Null without sentences.
 */
export function nearestOf<T extends { text: string }>(all: T[], text: string): T | null {
  const sentences = all.filter((sentence) => sentence.text !== text);
  const wanted = new Set(wordsOf(text));
  const bags = sentences.map((sentence) => new Set(wordsOf(sentence.text)));
  const rarity = (word: string) => Math.log(1 + sentences.length / Math.max(1, bags.filter((bag) => bag.has(word)).length));
  const weightOf = (words: string[]) => words.reduce((sum, word) => sum + rarity(word), 0);
  let nearest: { sentence: T; score: number; apart: number } | null = null;
  for (const [index, sentence] of sentences.entries()) {
    const shared = [...wanted].filter((word) => bags[index].has(word));
    const score = weightOf(shared) / (weightOf([...new Set([...wanted, ...bags[index]])]) || 1);
    const apart = Math.abs(bags[index].size - wanted.size);
    if (!nearest || score > nearest.score || (score === nearest.score && apart < nearest.apart)) nearest = { sentence, score, apart };
  }
  return nearest?.sentence ?? null;
}

/** Tokens [begin, end) of which none, or not each, is a whole character: together they are one. */
export interface SplitCharacter {
  text: string;
  begin: number;
  end: number;
}

/** The numbers of a token's bytes as the server's "‹E6 B0›" has them. */
export const bytesText = (bytes: number[]): string => bytes.map((byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join(' ');

/** The characters of a text, as people see them (an emoji of several parts is one); bytes that are no text have an empty one. */
function charactersOf(bytes: number[]): { text: string; size: number }[] {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const encoder = new TextEncoder();
  const decode = (begin: number, size: number): string | null => {
    try {
      return begin + size <= bytes.length ? decoder.decode(Uint8Array.from(bytes.slice(begin, begin + size))) : null;
    } catch {
      return null;
    }
  };
  const characters: { text: string; size: number }[] = [];
  let run = '';
  const finish = () => {
    for (const { segment } of new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(run)) characters.push({ text: segment, size: encoder.encode(segment).length });
    run = '';
  };
  for (let at = 0; at < bytes.length; ) {
    const size = [1, 2, 3, 4].find((one) => decode(at, one));
    if (size) run += decode(at, size);
    else {
      finish();
      characters.push({ text: '', size: 1 });
    }
    at += size ?? 1;
  }
  finish();
  return characters;
}

/** Characters that several tokens make up, some of them a part of one. Those that share a token are taken together. */
export function splitCharacters(tokens: Token[]): SplitCharacter[] {
  if (!splitsCharacters(tokens)) return [];
  const encoder = new TextEncoder();
  const all: number[] = [];
  const ends = tokens.map(({ text, bytes }) => all.push(...(bytes ?? encoder.encode(text))));
  const found: SplitCharacter[] = [];
  let [at, first] = [0, 0];
  for (const { text, size } of charactersOf(all)) {
    const end = at + size;
    while (ends[first] <= at) ++first;
    let last = first;
    while (ends[last] < end) ++last;
    at = end;
    if (text === '' || last === first || !splitsCharacters(tokens.slice(first, last + 1))) continue;
    const before = found.at(-1);
    if (before && before.end > first) Object.assign(before, { text: before.text + text, end: last + 1 });
    else found.push({ text: text.trim(), begin: first, end: last + 1 });
  }
  return found;
}

/** Whether words, or characters, are what people can read of these tokens. */
export const splitsCharacters = (tokens: Token[]): boolean => tokens.some(({ bytes }) => bytes);
