// The guided tour's text. *Stars* emphasise. `plain` is for everybody, `exact` for who wants it precisely.

export type LiveView = 'tokens' | 'embeddings' | 'head' | 'mask' | 'heads' | 'block' | 'depth' | 'training';

export interface Chapter {
  id: LiveView;
  title: string;
  /** The example to show, by its id; a model without it keeps the present prompt. */
  example?: string;
  plain: string[];
  formula: { latex: string; says: string }[];
  exact: string;
  /** What to try on the live view beside it. */
  try: string;
}

export const chapters: Chapter[] = [
  {
    id: 'tokens',
    title: 'Tokens: the letters of the machine',
    example: 'mole-animal',
    plain: [
      'A model cannot read letters. Before anything else, your sentence is cut into *tokens*: pieces that occurred often in the texts it learned from. A common word is one piece; a rare one falls into several.',
      'Each piece has a number, its place in a long list. From here on the model sees only these numbers. The little mark ␣ is a space: it belongs to the word that follows it.',
      'Everything the model ever does is one thing: given the tokens so far, say how likely each piece of the list is to come next.',
    ],
    formula: [{ latex: 'p(\\text{next}\\mid t_1,t_2,\\dots,t_T)', says: 'the chance of each next token, given all tokens so far' }],
    exact: 'The list is made by byte-pair encoding: start with single bytes and keep merging the most frequent neighbouring pair. Any text can be written with it, even in a script it never saw, since single bytes remain in the list.',
    try: 'Type a sentence of your own with a rare name in it, and see into how many pieces it falls.',
  },
  {
    id: 'embeddings',
    title: 'Embeddings: a place in a space of meanings',
    example: 'mole-animal',
    plain: [
      'A number in a list means nothing by itself. So the model looks up a row of a big table: for each token, a list of values that it has learned. Think of it as a *place* in a space with very many directions. Tokens that are used alike end up near each other.',
      'A second table says *where* in the text the token stands. The two rows are added. Without that, “dog bites man” and “man bites dog” would be the same heap of words.',
      'Here is your sentence as the model has it now: one line for each token, one column for each direction. Blue is below zero, red above.',
    ],
    formula: [{ latex: 'x_t = W_E[\\,\\text{token}_t\\,] + W_P[\\,t\\,]', says: 'token row plus position row' }],
    exact: 'Looking up row i is the product of a one-hot vector with W_E, so the table is trained like any other matrix. Position rows are learned, as in GPT-2; the text can be no longer than that table.',
    try: 'The same word twice in a sentence has the same token row but different places: press both and compare the strips.',
  },
  {
    id: 'head',
    title: 'One head: how a word looks around',
    example: 'mole-chemistry',
    plain: [
      'The word “mole” can be an animal, a mark on the skin or an amount of substance. Which one is meant stands elsewhere in the text. *Attention* fetches it.',
      'Each word asks a question, its *query*. Each word holds up a sign, its *key*. Where question and sign point the same way, their product is large. Softmax turns these products into shares that add up to 100 %.',
      'And each word has something to hand over, its *value*. The asking word takes from every value as much as the share says, and adds it all up.',
    ],
    formula: [
      { latex: '\\begin{aligned} q_t &= x_t W_Q\\\\ k_s &= x_s W_K\\\\ v_s &= x_s W_V \\end{aligned}', says: 'three learned views of every word' },
      { latex: '\\begin{aligned} A &= \\operatorname{softmax}\\!\\Big(\\frac{Q K^{\\top}}{\\sqrt{D}}\\Big)\\\\ Z &= A\\,V \\end{aligned}', says: 'the whole head' },
    ],
    exact: 'If the entries of q and k have variance 1, q·k has variance D; dividing by √D keeps the softmax from starting out saturated, where its gradient would vanish. The x here are the normalised stream, and each view has its bias.',
    try: 'Choose another word, another head. Some heads look at the word before, some at the beginning, some for meaning.',
  },
  {
    id: 'mask',
    title: 'The mask: no peeking ahead',
    example: 'adjectives',
    plain: [
      'The model is to guess the next word, so no word may look at what comes after it. Before the softmax, all scores towards later words are set to minus infinity; their share becomes exactly zero.',
      'That is why the picture is a triangle. The first word can only look at itself. The last one sees everything.',
      'This has a lovely consequence: one reading of a text of a thousand words holds a thousand guesses at once, one after each word. Nothing is wasted in training.',
    ],
    formula: [{ latex: 'S_{ts} = \\begin{cases} q_t\\cdot k_s/\\sqrt{D} & s\\le t\\\\ -\\infty & s>t \\end{cases}', says: 'later words are out of sight' }],
    exact: 'exp(−∞) = 0, so a masked key neither receives weight nor enters the sum of the denominator: every row still adds up to one. It is also what makes the key-value cache right: an earlier row never changes when the text grows.',
    try: 'Move over the triangle: each line is one word’s look, and its shares add up to 100 %.',
  },
  {
    id: 'heads',
    title: 'Many heads: many questions at once',
    example: 'two-creatures',
    plain: [
      'One head can ask one kind of question. So each block has several, side by side, each with its own small matrices. One may watch for the adjective of a noun, another for who did it, a third just for the word before.',
      'Nobody told them what to watch for. They found it, because it helped to guess the next word.',
      'Here is every head of the model on your sentence. Each picture is a triangle like the one in the last chapter; the bright spots are where it looks.',
    ],
    formula: [{ latex: '\\operatorname{attention}(x) = \\big[\\,Z_1\\;Z_2\\;\\cdots\\;Z_H\\,\\big]\\,W_O', says: 'all heads laid side by side, mixed by one matrix' }],
    exact: 'Splitting W_O by rows, the same is a sum over heads of Z_h W_O^{(h)}: heads write to the stream independently, which is why one can be switched off or its contribution measured alone.',
    try: 'Find a head whose spots lie on the line just below the diagonal: it looks at the previous word.',
  },
  {
    id: 'block',
    title: 'The block: gather, then think',
    example: 'adjectives',
    plain: [
      'A block has two halves. In the first, words talk to each other: that is attention. In the second, each word thinks for itself: *feed-forward*, a large number of neurons, each of which asks one question and writes one note.',
      'Neither half replaces anything. Each *adds* to what is there. You can picture a stream flowing through the model, to which every part contributes a little.',
      'Before each half, the numbers are brought to a common size, so that nobody shouts.',
    ],
    formula: [
      { latex: 'x \\leftarrow x + \\operatorname{attention}(\\operatorname{norm}(x))', says: 'words exchange' },
      { latex: 'x \\leftarrow x + W_2\\,\\operatorname{gelu}\\!\\big(W_1 \\operatorname{norm}(x)\\big)', says: 'each word thinks' },
      { latex: '\\operatorname{norm}(x) = \\frac{x-\\mu}{\\sqrt{\\sigma^2+\\varepsilon}}\\odot g + b', says: 'mean zero, spread one, then a learned gain and shift' },
    ],
    exact: 'Because the parts add, the final vector is a sum over the embeddings and every head and neuron of every block; up to the last norm’s scale, a logit therefore splits exactly into their contributions. The residual path also carries the gradient back undiminished.',
    try: 'Look at the strongest neurons of the last word. What do their promoted words have in common?',
  },
  {
    id: 'depth',
    title: 'Depth: the guess sharpens',
    example: 'mystery',
    plain: [
      'One block after the other adds to the stream. The first ones settle simple things: which letters belong together, which word is near. Later ones can build on what earlier ones found.',
      'There is a trick to watch it happen: stop after some block and ask the model for its guess right there. Early guesses are wild. Layer by layer they become certain.',
      'At the end, the last vector is compared with every token of the list. The closer it points to one, the likelier that token is next.',
    ],
    formula: [
      { latex: '\\begin{aligned} \\ell &= W_U \\operatorname{norm}(x_T)\\\\ p_i &= \\frac{e^{\\ell_i/\\tau}}{\\sum_j e^{\\ell_j/\\tau}} \\end{aligned}', says: 'scores for all tokens; τ is the temperature' },
    ],
    exact: 'Reading intermediate streams through the last norm and W_U is called the logit lens. It is a view, not a computation the model makes: an early layer may hold the answer in directions that only later layers turn towards W_U.',
    try: 'Press a block to go into it; choose another word to see how its guess comes about.',
  },
  {
    id: 'training',
    title: 'Training: from surprise to sense',
    example: 'two-creatures',
    plain: [
      'At the start all tables and matrices are random, and so are the guesses. Training shows the model a text and asks at every word: how surprised were you by what came next?',
      'The *surprise* is the negative logarithm of the chance that it gave to the true next word. Sure and right: zero. Caught out: large. The average over all words is the *loss*.',
      'Then each of the millions of numbers is moved a tiny bit in the direction that would have made the surprise smaller. Again and again. All that you have seen on this tour, the heads, the neurons, the triangle’s bright spots, grew out of that.',
    ],
    formula: [
      { latex: '\\mathcal L = -\\frac1{T-1}\\sum_{t=1}^{T-1}\\log p(t_{t+1}\\mid t_1\\dots t_t)', says: 'the average surprise' },
      { latex: '\\theta \\leftarrow \\theta - \\eta\\,\\nabla_\\theta \\mathcal L', says: 'a small step downhill' },
    ],
    exact: 'The loss is the cross-entropy in nats; e to its power, the perplexity, is the number of equally likely words the model hesitates between. The step taken is AdamW’s: the gradient divided by a running estimate of its own size, with weight decay apart.',
    try: 'See which words surprised it most. Often they are the first of a phrase; the rest then follows.',
  },
];

/** Splits `a *b* c` into plain and emphasised parts. */
export function emphasised(text: string): { text: string; strong: boolean }[] {
  return text.replace(/(\d) %/g, '$1\u00a0%').split('*').map((part, index) => ({ text: part, strong: index % 2 === 1 })).filter((part) => part.text !== '');
}
