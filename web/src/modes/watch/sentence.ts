// The sentence that a run's checkpoints are compared on.

import { ApiError } from '../../lib/api';
import type { Sample } from './curves';

/** Short enough for a small context, even at one token a character. */
const mostCharacters = 32;

/** The beginning of the latest sample, up to a whole word; '' without samples. */
export function sampleSentence(samples: Sample[]): string {
  const text = (samples.at(-1)?.text ?? '').trim().replace(/\s+/g, ' ');
  if (text.length <= mostCharacters) return text;
  const cut = text.slice(0, mostCharacters + 1);
  return cut.includes(' ') ? cut.slice(0, cut.lastIndexOf(' ')) : cut.slice(0, mostCharacters);
}

/**
 * The token after which it is told what is predicted: the last one with a letter or digit. Of a sentence that is complete, that
 * is the one before: what comes is a word, and the sentence says which. The last token where none has a letter or digit.
 */
export function tellingToken(tokens: { text: string }[]): number {
  const telling = tokens.flatMap(({ text }, index) => (/[\p{L}\p{N}]/u.test(text) ? [index] : []));
  const isComplete = telling.at(-1) !== tokens.length - 1;
  return telling.at(isComplete ? -2 : -1) ?? telling.at(-1) ?? tokens.length - 1;
}

export interface ChosenSentence {
  /** Null where every candidate was refused. */
  text: string | null;
  /** The first candidate and why it was refused; null where it was accepted. */
  refusal: { text: string; reason: string } | null;
}

/** Whether a text is at fault, and not the checkpoint or the connection. */
export function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && [400, 413].includes(error.status);
}

/** The first candidate that the server accepts; errors that are not about the text are thrown. */
export async function firstThatRuns(candidates: string[], run: (text: string) => Promise<unknown>): Promise<ChosenSentence> {
  let refusal: ChosenSentence['refusal'] = null;
  for (const text of candidates.filter(Boolean)) {
    try {
      await run(text);
      return { text, refusal };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (refusal) continue;
      const unknown = await unknownCharacters(text, error.message, run);
      refusal = { text, reason: unknown ? unknownSentence(unknown) : error.message };
    }
  }
  return { text: null, refusal };
}

/** How often a text is tried without the characters that were refused. */
const mostUnknown = 16;

/** The character that a tokenizer's refusal names by its code point: "the character 'é' (U+00E9) at byte 3 is not among …". */
function refusedCharacter(message: string): string | null {
  const [, code] = /^the character .*\(U\+([0-9A-F]{4,6})\)/s.exec(message) ?? [];
  return code === undefined ? null : String.fromCodePoint(parseInt(code, 16));
}

/**
 * All characters of a text that a model of characters does not know. A refusal names the first, so the text is tried
 * without each of them; null where it was refused for another reason.
 */
export async function unknownCharacters(text: string, refusal: string, run: (text: string) => Promise<unknown>): Promise<string[] | null> {
  const unknown: string[] = [];
  let [rest, message] = [text, refusal];
  while (unknown.length < mostUnknown) {
    const character = refusedCharacter(message);
    if (character === null || !rest.includes(character)) return unknown.length > 0 ? unknown : null;
    unknown.push(character);
    rest = rest.replaceAll(character, '');
    if (rest.trim() === '') return unknown;
    try {
      await run(rest);
      return unknown;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      message = error.message;
    }
  }
  return unknown;
}

/** Why a model of characters refuses a text. */
export function unknownSentence(unknown: string[]): string {
  const named = unknown.map((character) => `“${character}”`);
  const list = named.length < 2 ? named.join('') : `${named.slice(0, -1).join(', ')} and ${named.at(-1)}`;
  return `its vocabulary is the characters of the text that it was trained on, and ${list} ${named.length === 1 ? 'is' : 'are'} not among them`;
}
