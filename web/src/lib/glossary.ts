// The terms that the page defines where they are tapped, in the words of docs/notation.md, which a test compares.

export interface Term {
  name: string;
  means: string;
  /** How else a sentence says it; its plural with s is understood. */
  also?: string[];
}

export const glossary: Term[] = [
  { name: 'token', means: 'a piece of text with a number of its own: a word, a part of one, or a sign' },
  { name: 'vocabulary', means: 'all tokens that a model knows, each with its number, the id', also: ['id'] },
  { name: 'context', means: 'the longest sequence that a model accepts' },
  { name: 'embedding', means: 'the learned vector that a token’s id selects from a table', also: ['vector'] },
  { name: 'position', means: 'index of a token in a sequence' },
  { name: 'parameter', means: 'a number that training sets: an element of a matrix or of a table' },
  { name: 'residual stream', means: 'the sum that all blocks read from and add to, a vector for each position: (B, T, C)' },
  { name: 'block', means: 'attention and feed-forward with their norms and residual connections; a layer of the model' },
  { name: 'norm', means: 'a step that brings the numbers of a vector to a common scale', also: ['layer norm', 'RMS norm'] },
  { name: 'attention', means: 'the half of a block in which positions exchange information' },
  { name: 'head', means: 'an attention head, and nothing else: one pattern of attention of a block, with queries of its own' },
  { name: 'query', means: 'the vector by which a position looks for others', also: ['queries'] },
  { name: 'key', means: 'the vector by which a position is found by others' },
  { name: 'value', means: 'the vector that a position passes on to those that attend to it' },
  { name: 'score', means: 'the dot product of a query and a key, divided by √D' },
  { name: 'softmax', means: 'turns numbers into positive shares that sum to one; a larger number gets a larger share' },
  { name: 'attention weight', means: 'an element of a pattern: how much a query attends to a key', also: ['weight'] },
  { name: 'pattern', means: 'attention after the softmax; scores before it' },
  { name: 'mask', means: 'sets the scores of keys that a query must not see to −∞, so that their weights are zero' },
  { name: 'attention window', means: 'the positions that a query attends to in a banded mask, its own included', also: ['window'] },
  { name: 'mixed values', means: 'the sum of a head’s values, each times its weight, before the output projection' },
  { name: 'feed-forward', means: 'the half of a block that works on each position by itself, with many neurons' },
  { name: 'neuron', means: 'one channel of a feed-forward layer after its first matrix' },
  { name: 'unembedding', means: 'the projection from the residual stream to logits (lm_head), tied to the token embedding or not' },
  { name: 'logit', means: 'the number from which the softmax computes a token’s probability' },
  { name: 'logit lens', means: 'the next token’s probabilities as an earlier block’s stream would give them' },
  { name: 'loss', means: 'the average surprise over a text: what training lowers' },
  { name: 'surprise', means: '−log of the probability that the model gave to the token that follows, in nats' },
  { name: 'gradient', means: 'how much a number, such as the loss, changes with each parameter or vector' },
  { name: 'intervention', means: 'a change of a value inside the model during a pass: ablation, scaling, steering, patching, …' },
  { name: 'encoder', means: 'a stack whose positions see each other in both directions' },
  { name: 'decoder', means: 'a stack whose positions see only those before them' },
  { name: 'cross-attention', means: 'attention of a decoder to the result of an encoder' },
];

/** The term that a word or phrase of a sentence is, in any number and case. */
export function termOf(phrase: string): Term | undefined {
  const said = phrase.toLowerCase();
  return glossary.find(({ name, also = [] }) => [name, ...also].some((one) => said === one.toLowerCase() || said === `${one.toLowerCase()}s`));
}
