// The surprise at a token in nats: the negative logarithm of its probability.

/** From the token's logit and any candidate of the same distribution, which gives the log of the softmax denominator. */
export function surprise(logit: number, known: { logit: number; probability: number }): number {
  const normaliser = known.logit - Math.log(known.probability);
  return normaliser - logit;
}
