// The questions of the worksheet and their answers, from numbers of the model at hand.

/** One word that the chosen one can attend to. */
export interface Attended {
  text: string;
  score: number;
  share: number;
  /** Of the largest score: exp(score − largest), so that all can be written down. */
  power: number;
  /** The first number of its value. */
  value: number;
}

export interface AttendedInput {
  token: string;
  score: number | null;
  share: number;
  value: number[];
}

export function attendedOf(answers: AttendedInput[]): Attended[] {
  const seen = answers.filter((one) => one.score !== null);
  const largest = Math.max(...seen.map(({ score }) => score!));
  return seen.map(({ token, score, share, value: numbers }) => ({ text: token, score: score!, share, power: Math.exp(score! - largest), value: numbers[0] }));
}

/** The rows whose weight is left blank: the largest, and the two after it. */
export function blanksOf(rows: Attended[]): number[] {
  return rows.map((_, index) => index).sort((a, b) => rows[b].share - rows[a].share || a - b).slice(0, 3).sort((a, b) => a - b);
}

export const mixedOf = (rows: Attended[]): number => rows.reduce((sum, row) => sum + row.share * row.value, 0);
