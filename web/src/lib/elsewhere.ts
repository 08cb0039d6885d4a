// How other explanations draw or write the same thing: one sentence each, true of every model that heed runs.

export const elsewhere = {
  rows: 'Here each row is a query, and its weights sum to 1; some explanations draw each key as a row and each query as a column, and then the columns sum to 1: the same numbers, transposed.',
  mask: 'Here later words are masked, as in every model that writes from left to right; explanations without a mask draw the whole square, in which every word attends to every other, as in an encoder.',
  biases: 'Many explanations leave out the bias that GPT-2 and GPT-3 add to every projection, x\u00a0W\u00a0+\u00a0b, and some models have none.',
  split: 'Some draw a small matrix for each head, others one large matrix whose output is cut into a slice for each head: both are the same, since the large matrix is the small ones side by side.',
  norm: 'Here a norm comes before attention and before feed-forward (pre-norm, as in GPT-2 and LLaMA); the transformer of 2017 has it after each addition (post-norm, drawn as “add & norm”).',
};

export type Difference = keyof typeof elsewhere;
