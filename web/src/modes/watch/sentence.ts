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

export interface ChosenSentence {
  /** Null where every candidate was refused. */
  text: string | null;
  /** The first candidate and why it was refused; null where it was accepted. */
  refusal: { text: string; reason: string } | null;
}

/** The first candidate that the server accepts; errors that are not about the text are thrown. */
export async function firstThatRuns(candidates: string[], run: (text: string) => Promise<unknown>): Promise<ChosenSentence> {
  let refusal: ChosenSentence['refusal'] = null;
  for (const text of candidates.filter(Boolean)) {
    try {
      await run(text);
      return { text, refusal };
    } catch (error) {
      if (!(error instanceof ApiError && [400, 413].includes(error.status))) throw error;
      refusal ??= { text, reason: error.message };
    }
  }
  return { text: null, refusal };
}
