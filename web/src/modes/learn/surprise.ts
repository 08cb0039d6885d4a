// The surprise at a token in nats: the negative logarithm of its probability.

/** From the token's logit and any candidate of the same distribution, which gives the log of the softmax denominator. */
export function surprise(logit: number, known: { logit: number; probability: number }): number {
  const normaliser = known.logit - Math.log(known.probability);
  return normaliser - logit;
}

export interface Surprised {
  position: number;
  before: string;
  next: string;
  nats: number;
}

/** The loss: the average surprise. */
export function averageOf(surprises: Surprised[]): number {
  return surprises.reduce((sum, { nats }) => sum + nats, 0) / Math.max(1, surprises.length);
}
