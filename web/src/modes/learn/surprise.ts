// How surprised the model was by a token of the text, in nats: minus the logarithm of its chance.

/**
 * From the token's logit and any candidate of the same distribution: softmax differs from the logits only by
 * one number for all of them, which the candidate tells.
 */
export function surprise(logit: number, known: { logit: number; probability: number }): number {
  const normaliser = known.logit - Math.log(known.probability);
  return normaliser - logit;
}
