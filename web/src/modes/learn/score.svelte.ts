// What the reader has predicted and solved, for all chapters.

import { recall, remember } from '../../lib/remembered';
import type { ChapterId } from './chapters';

const kept = 'heed-learn';

interface Kept {
  /** Whether the first answer to a question was right, by chapter. */
  answers: Partial<Record<ChapterId, boolean>>;
  solved: Partial<Record<ChapterId, boolean>>;
}

/** What was remembered; anything else in its place counts as nothing. */
export function keptOf(text: string | null): Kept {
  try {
    const { answers, solved } = JSON.parse(text ?? '{}') as Partial<Kept>;
    const only = (given: unknown) => Object.fromEntries(Object.entries(given ?? {}).filter(([, one]) => typeof one === 'boolean'));
    return { answers: only(answers), solved: only(solved) };
  } catch {
    return { answers: {}, solved: {} };
  }
}

class Score {
  #kept: Kept = $state(keptOf(recall(kept)));

  get answered(): number {
    return Object.keys(this.#kept.answers).length;
  }
  get right(): number {
    return Object.values(this.#kept.answers).filter(Boolean).length;
  }
  get solved(): number {
    return Object.values(this.#kept.solved).filter(Boolean).length;
  }

  isSolved(chapter: ChapterId): boolean {
    return this.#kept.solved[chapter] === true;
  }

  /** The first answer in a chapter counts. */
  answer(chapter: ChapterId, right: boolean): void {
    if (this.#kept.answers[chapter] === undefined) this.#kept.answers[chapter] = right;
    this.#remember();
  }
  solve(chapter: ChapterId): void {
    this.#kept.solved[chapter] = true;
    this.#remember();
  }
  again(): void {
    this.#kept = { answers: {}, solved: {} };
    this.#remember();
  }

  #remember(): void {
    remember(kept, JSON.stringify(this.#kept));
  }
}

export const score = new Score();
