// How surprised the model was by each token of the text, from the logits before it.

/** Negative logarithm, in nats, of the softmax of `logits` at `token`. */
export function surprise(logits: ArrayLike<number>, token: number): number {
  let most = -Infinity;
  for (let index = 0; index < logits.length; ++index) most = Math.max(most, logits[index]);
  let sum = 0;
  for (let index = 0; index < logits.length; ++index) sum += Math.exp(logits[index] - most);
  return Math.log(sum) + most - logits[token];
}
