// The questions of the worksheet and their answers, from numbers of the model at hand. A number is rounded once, as it is
// printed, and answers are computed from what is printed: whoever calculates gets what the sheet says.

/** As it is printed with so many decimals; a proper minus sign. */
export const fixed = (number: number, decimals: number): string => number.toFixed(decimals).replace(/^-(0(?:\.0*)?)$/, '$1').replace('-', '−');
export const rounded = (number: number, decimals: number): number => Number(number.toFixed(decimals));

/** Decimals of scores and values, of weights and products, of probabilities, of surprises. */
export const decimals = { score: 2, share: 3, value: 2, product: 3, chance: 4, percent: 1, nats: 2, stream: 3 } as const;

/** One word that the chosen one can attend to, in printed numbers. */
export interface Attended {
  text: string;
  score: number;
  share: number;
  /** Of the largest score: exp(score − largest), so that all can be written down. */
  power: number;
  /** The first number of its value. */
  value: number;
  /** share · value. */
  product: number;
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
  const powers = seen.map(({ score }) => rounded(Math.exp(score! - largest), decimals.share));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return seen.map(({ token, score, value: numbers }, index) => {
    const share = rounded(powers[index] / total, decimals.share);
    const value = rounded(numbers[0], decimals.value);
    return { text: token, score: rounded(score!, decimals.score), share, power: powers[index], value, product: rounded(share * value, decimals.product) };
  });
}

/** The rows whose weight is left blank: the largest, and the two after it. */
export function blanksOf(rows: Attended[]): number[] {
  return rows.map((_, index) => index).sort((a, b) => rows[b].share - rows[a].share || a - b).slice(0, 3).sort((a, b) => a - b);
}

export const sumOf = (numbers: number[], places: number): number => rounded(numbers.reduce((sum, one) => sum + one, 0), places);

/** A head in which there is something to calculate: the largest weight of its row is nearest to a half. The first where it is near enough. */
export function headToCalculate(rows: { layer: number; head: number; row: ArrayLike<number> }[]): { layer: number; head: number } {
  const [least, most] = [0.35, 0.85];
  const largest = (row: ArrayLike<number>) => Math.max(...Array.from(row));
  const [first] = rows;
  if (largest(first.row) >= least && largest(first.row) <= most) return { layer: first.layer, head: first.head };
  const { layer, head } = rows.reduce((best, one) => (Math.abs(largest(one.row) - 0.5) < Math.abs(largest(best.row) - 0.5) ? one : best));
  return { layer, head };
}

/** A probability as it is printed: never as 0, of which there is no logarithm. */
export function printedChance(probability: number): string {
  const usual = probability.toFixed(decimals.chance);
  return Number(usual) > 0 ? usual : probability.toPrecision(1);
}

export const surpriseOf = (printed: string): number => rounded(-Math.log(Number(printed)) + 0, decimals.nats);

/** The share of all other tokens, in per cent, of those that are printed. */
export const restOf = (probabilities: number[]): number => Math.max(0, rounded(100 - sumOf(probabilities.map((one) => rounded(100 * one, decimals.percent)), decimals.percent), decimals.percent));
