// Queries and keys before and after they rotate.

export interface Dial {
  /** The two numbers that rotate together. */
  first: number;
  second: number;
  before: [number, number];
  after: [number, number];
}

/** The partner of number 0, from the label of a term such as "q number 32"; null where it has none. */
export function partnerOf(terms: { label: string }[]): number | null {
  const partners = terms.map(({ label }) => Number(/number (\d+)$/.exec(label)?.[1] ?? NaN)).filter((number) => number > 0);
  return partners[0] ?? null;
}

/** The pairs of the first `channels` numbers: neighbours where number 0 rotates with 1, else halves. */
export function dialsOf(before: ArrayLike<number>, after: ArrayLike<number>, channels: number, partner: number, most: number): Dial[] {
  const pairs = Math.min(most, Math.floor(channels / 2));
  return Array.from({ length: pairs }, (_, pair) => {
    const first = partner === 1 ? 2 * pair : pair;
    const second = first + partner;
    return { first, second, before: [before[first], before[second]], after: [after[first], after[second]] };
  });
}

/** By how much a pair turns, in radians from −π to π. */
export function turnOf({ before: [x, y], after: [u, v] }: Dial): number {
  return Math.atan2(x * v - y * u, x * u + y * v);
}
