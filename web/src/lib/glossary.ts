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
  { name: 'context', means: 'the largest number of tokens that a model can read at once' },
  { name: 'vector', means: 'a list of numbers: a point, or a direction, in a space of as many dimensions' },
  { name: 'matrix', means: 'a table of numbers; a vector times a matrix is another vector', also: ['matrices'] },
  { name: 'dot product', means: 'the numbers of two vectors multiplied pair by pair, and added up' },
  { name: 'channel', means: 'one of the C places in a vector of the residual stream' },
  { name: 'embedding', means: 'the learned vector that a token’s id selects from a table' },
  { name: 'position', means: 'index of a token in a sequence, counted from 0' },
  { name: 'parameter', means: 'a number that training sets: an element of a matrix or of a table' },
  { name: 'residual stream', means: 'the sum that all blocks read from and add to, a vector for each position' },
  { name: 'block', means: 'one layer of the model: attention and feed-forward, which both add to the residual stream' },
  { name: 'norm', means: 'a step that brings the numbers of a vector to a common scale', also: ['layer norm', 'RMS norm'] },
  { name: 'attention', means: 'the half of a block in which positions exchange information' },
  { name: 'head', means: 'a part of a block’s attention, with queries and a pattern of its own' },
  { name: 'query', means: 'the vector by which a position looks for others', also: ['queries'] },
  { name: 'key', means: 'the vector by which a position is found by others' },
  { name: 'value', means: 'the vector that a position passes on to those that attend to it' },
  { name: 'score', means: 'the dot product of a query and a key, divided by √D' },
  { name: 'softmax', means: 'turns numbers into positive shares that sum to one; a larger number gets a larger share' },
  { name: 'attention weight', means: 'an element of a pattern: how much a query attends to a key', also: ['weight'] },
  { name: 'pattern', means: 'the attention weights of a head, a row for each query' },
  { name: 'edge', means: 'a connection of two positions in one head: of a query and a key that it attends to' },
  { name: 'mask', means: 'sets the scores of keys that a query must not see to −∞, so that their weights are zero' },
  { name: 'attention window', means: 'the positions that a query may attend to where the mask also hides those far back; its own is one of them', also: ['window'] },
  { name: 'mixed values', means: 'the sum of a head’s values, each times its weight, before the output projection' },
  { name: 'feed-forward', means: 'the half of a block that works on each position by itself, with many neurons' },
  { name: 'neuron', means: 'one channel of a feed-forward layer after its first matrix' },
  { name: 'unembedding', means: 'the matrix that turns the last vector of the residual stream into logits' },
  { name: 'logit', means: 'the number from which the softmax computes a token’s probability' },
  { name: 'logit lens', means: 'the next token’s probabilities as an earlier block’s stream would give them' },
  { name: 'loss', means: 'the average surprise over a text: what training lowers' },
  { name: 'surprise', means: '−log of the probability that the model gave to the token that follows, in nats' },
  { name: 'gradient', means: 'how much a number, such as the loss, changes with each parameter or vector' },
  { name: 'intervention', means: 'a change inside the model while it computes, such as a head that is switched off' },
  { name: 'encoder', means: 'a stack whose positions see each other in both directions' },
  { name: 'decoder', means: 'a stack whose positions see only those before them' },
  { name: 'cross-attention', means: 'attention of a decoder to the result of an encoder' },
];

/** The term that a word or phrase of a sentence is, in any number and case. */
export function termOf(phrase: string): Term | undefined {
  const said = phrase.toLowerCase();
  return glossary.find(({ name, also = [] }) => [name, ...also].some((one) => said === one.toLowerCase() || said === `${one.toLowerCase()}s`));
}
