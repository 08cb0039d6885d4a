// How much a vector points in the direction of a word: the cosine, beside those of words that were not chosen.

export function cosine(one: ArrayLike<number>, other: ArrayLike<number>): number {
  let [dot, first, second] = [0, 0, 0];
  for (let channel = 0; channel < one.length; channel++) {
    dot += one[channel] * other[channel];
    first += one[channel] ** 2;
    second += other[channel] ** 2;
  }
  return first > 0 && second > 0 ? dot / Math.sqrt(first * second) : 0;
}

/** Up to `most` token ids spread evenly over the vocabulary, without the chosen ones. */
export function othersOf(vocabulary: number, most: number, chosen: number[]): number[] {
  const count = Math.min(most, vocabulary);
  return Array.from({ length: count }, (_, index) => Math.floor(((index + 0.5) * vocabulary) / count)).filter((id) => !chosen.includes(id));
}

/** Token ids in a link, "810,1955"; at most `most`, without those that do not exist. */
export function idsInLink(text: string | undefined, vocabulary: number, most: number): number[] {
  const ids = (text ?? '').split(',').filter((part) => /^\d+$/.test(part)).map(Number);
  return [...new Set(ids)].filter((id) => id < vocabulary).slice(0, most);
}

export interface Depths {
  /** By word and vector. */
  words: number[][];
  /** Over the other words, by vector. */
  mean: number[];
  largest: number[];
}

export function depthsOf(vectors: ArrayLike<number>[], words: ArrayLike<number>[], others: ArrayLike<number>[]): Depths {
  const ofOthers = vectors.map((vector) => others.map((other) => cosine(vector, other)));
  return {
    words: words.map((word) => vectors.map((vector) => cosine(vector, word))),
    mean: ofOthers.map((all) => all.reduce((sum, one) => sum + one, 0) / Math.max(1, all.length)),
    largest: ofOthers.map((all) => all.reduce((most, one) => Math.max(most, one), -1)),
  };
}
