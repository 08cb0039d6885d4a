// The text of the guided tour, as it is true of a model. *Stars* mark terms. `plain` is for every reader, `exact` adds the details.
// What the sentences claim is tested in claims.test.ts, or measured on the model beside them.

import { blockFormulas, changesQueryAndKey, embeddingFormula, groupSize, isGrouped, isParallel, normWords, positionedFormula, productFormula, seenFormula, windowOf } from '../../lib/architecture';
import type { TranslatorCard } from '../../lib/pair_types';
import type { Architecture } from '../../lib/types';
import { twoTexts } from './two_texts';

export type ChapterId = 'tokens' | 'embeddings' | 'head' | 'mask' | 'heads' | 'block' | 'depth' | 'training' | 'two-texts';

export interface Paragraph {
  text: string;
  /** A selector of the part of the live picture that it speaks of. */
  shows?: string;
}

export interface Chapter {
  id: ChapterId;
  title: string;
  /** The id of an example that shows well what the chapter is about. */
  example?: string;
  plain: Paragraph[];
  formula: { latex: string; says: string }[];
  exact: string;
}

/** The page after the last chapter. */
export const summary = { id: 'summary', title: 'In short' };

/** What the tour is about. */
export interface Toured {
  architecture: Architecture;
  heads: number;
  /** The block whose window its formulas name. */
  layer: number;
  /** The server's translator; null where it holds none, undefined where that is not known yet. */
  translator?: TranslatorCard | null;
}

const order = 'Without positions, a head of the first block could not tell the order of the words it reads: “dog man” and “man dog” would give it the same sum. Later blocks could, but only because of the mask: in another order, each word has seen other words before it.';

function positionsIn({ positions }: Architecture): Paragraph[] {
  if (positions === 'learned') return [{ text: 'A second table encodes the *position* of the token in the text. The two rows are added.', shows: '.lanes' }, { text: order, shows: '[data-shows=order]' }];
  if (positions === 'sinusoidal') return [{ text: 'Fixed sines and cosines encode the *position* of the token in the text, and are added.', shows: '.lanes' }, { text: order }];
  if (positions === 'rotary') return [{ text: 'The *position* of the token is not added here. It enters in every head, which turns queries and keys by angles that grow with it.' }, { text: order }];
  return [{ text: 'This model is not told the *position* of a token. It can tell the order only by the mask: a word attends to those before it, never to those after.' }];
}

const exactPositions: Record<Architecture['positions'], string> = {
  learned: 'Position embeddings are learned, as in GPT-2; a text can be no longer than that table.',
  sinusoidal: 'Position embeddings are fixed, as in the transformer of 2017.',
  rotary: 'There is no table of positions: queries and keys rotate in pairs of numbers, as in LLaMA, so that their product depends on the distance of two tokens.',
  none: 'There is no table of positions.',
};

export function chaptersOf({ architecture, heads, layer, translator }: Toured): Chapter[] {
  const norm = normWords(architecture);
  const window = windowOf(architecture, layer);
  const windowed = architecture.windows.some((one) => one > 0);
  const grouped = isGrouped(architecture, heads);
  const positioned = changesQueryAndKey(architecture);
  const product = productFormula(architecture);
  const [query, key] = positioned ? ['\\tilde Q', '\\tilde K'] : ['Q', 'K'];
  return [
    {
      id: 'tokens',
      title: 'Tokens: the pieces of text',
      plain: [
        { text: 'A model does not read letters. First, your sentence is split into *tokens*: pieces that are frequent in the text it was trained on. A common word is one token; a rare one is split into several.', shows: '[aria-label="Tokens and their ids"]' },
        { text: 'Each token has an *id*, its index in the *vocabulary*. From here on the model works with these ids only. The mark ␣ is a space; it belongs to the word that follows it.', shows: '[aria-label="Tokens and their ids"]' },
        { text: 'A language model does one thing: given the tokens so far, it gives every token of the vocabulary a probability of being the next.', shows: '[data-shows=next]' },
      ],
      formula: [{ latex: 'p(\\text{next}\\mid t_1,t_2,\\dots,t_T)', says: 'the probability of each next token, given all tokens so far' }],
      exact: 'The vocabulary is usually made by byte-pair encoding: start with single bytes or characters and keep merging the most frequent adjacent pair. Where all single bytes are in the vocabulary, any text can be encoded, even in a script that was not in the training data.',
    },
    {
      id: 'embeddings',
      title: 'Embeddings: tokens become vectors',
      example: 'bank-money',
      plain: [
        { text: 'An id has no meaning by itself. The model uses it to look up a row of a large table: its *embedding*, a list of numbers learned in training. Think of it as a point in a space of many dimensions. Tokens that are used in similar ways end up close together.', shows: '.lanes' },
        ...positionsIn(architecture),
        { text: 'Here is your sentence as the model sees it now: one row for each token, one column for each channel. Blue is negative, red positive.', shows: '[data-shows=matrix]' },
      ],
      formula: [embeddingFormula(architecture)],
      exact: `Looking up row i is the product of a one-hot vector with W_E, so the table is trained like any other matrix. ${exactPositions[architecture.positions]}`,
    },
    {
      id: 'head',
      title: 'One head: how a word attends to others',
      example: 'mole-animal',
      plain: [
        { text: 'A word has one embedding, whatever it means: a mole is an animal, a mark on the skin or an amount of substance. The words before it decide. *Attention* brings their information to it.', shows: '[data-shows=sentence]' },
        { text: 'It works like a web search. What you type is a *query*. Every page has a *key*, by which it is found, and a *value*, what it says. But where a search returns a list, a head returns a mixture: a little of every value, and most of those whose keys match best.', shows: '[data-shows=queries], [data-shows=keys], [data-shows=values]' },
        { text: 'Each word gets all three: a query (what it looks for), a key (what it can be found by) and a value (what it passes on). Where a query and a key point in the same direction, their dot product, the *score*, is large.', shows: '[data-shows=scores]' },
        { text: '*Softmax* turns the scores of a word into weights that sum to 100 %.', shows: '[data-shows=weights]' },
        ...(architecture.positions === 'rotary' ? [{ text: 'Before that, query and key *rotate* by their positions: a product of two rotated vectors also says how far apart the two words are.' }] : []),
        { text: 'The output of the head for a word is the sum of all values, each multiplied by its weight: its *mixed values*.', shows: '[data-shows=output]' },
        ...(grouped ? [{ text: `In this model *${groupSize(architecture, heads)} heads share* the keys and values of each key/value head; every head has queries of its own. Generating text then has to keep fewer numbers of each word.` }] : []),
      ],
      formula: [
        { latex: '\\begin{aligned} q_t &= x_t W_Q\\\\ k_s &= x_s W_K\\\\ v_s &= x_s W_V \\end{aligned}', says: 'three learned projections of every word' },
        ...(positioned ? [{ latex: positionedFormula(architecture), says: architecture.positions === 'rotary' ? 'R turns pairs of numbers by the angle of the position' : 'each query and key has mean square one, times a gain' }] : []),
        { latex: `\\begin{aligned} A &= \\operatorname{softmax}\\!\\Big(\\frac{${query} ${key}^{\\top}}{\\sqrt{D}}\\Big)\\\\ Z &= A\\,V \\end{aligned}`, says: 'the whole head' },
      ],
      exact: 'If the entries of q and k are independent with mean 0 and variance 1, q·k has mean 0 and variance D; dividing by √D keeps the softmax from saturating, where its gradient would vanish. Here x is the residual stream after the ' + norm.name + '.',
    },
    {
      id: 'mask',
      title: 'The mask: no looking ahead',
      example: 'adjectives',
      plain: [
        { text: 'The model has to predict the next word, so no word may attend to later ones. Before the softmax, the *mask* sets all scores of later words to minus infinity; their weights become exactly zero.', shows: '[data-shows=masked-scores]' },
        {
          text: windowed
            ? `That is why the picture has nothing above the diagonal. In some or all blocks of this model a *window* masks the words far back too: ${window > 0 ? `in block ${layer}, a word attends to itself and the ${window - 1} before it` : `block ${layer} has none, choose another one to see it`}.`
            : 'That is why the picture is a triangle. The first word can attend only to itself, the last one to all.',
          shows: '[data-shows=masked-weights]',
        },
        { text: 'It also makes training efficient: one forward pass over a thousand words makes a thousand predictions, one after each word.' },
        { text: 'And it suits a GPU. A recurrent network reads word by word: the thousandth word waits for the 999 before it. Here no cell of the picture waits for another, in any head, so thousands of arithmetic units can work at once; only the blocks wait for each other. The price: twice as many words need about four times as many dot products.', shows: '[data-shows=growth]' },
      ],
      formula: [{ latex: `S_{ts} = \\begin{cases} ${product}/\\sqrt{D} & ${seenFormula(window)}\\\\ -\\infty & \\text{otherwise} \\end{cases}`, says: window > 0 ? 'later words and those before the window are masked' : 'later words are masked' }],
      exact: 'exp(−∞) = 0, so a masked key gets no weight and does not enter the denominator: every row still sums to one. It is also why the key-value cache is correct: earlier rows do not change when the text grows.',
    },
    {
      id: 'heads',
      title: 'Many heads: several patterns at once',
      example: 'two-creatures',
      plain: [
        { text: 'One *head* has one *pattern* of attention. So each *block* has several heads side by side, each with small matrices of its own' + (grouped ? ' for the queries' : '') + '. One may attend from a noun to its adjective, another to who did something, a third simply to the previous word.', shows: '[data-shows=heads]' },
        { text: 'Nobody programmed these patterns. They emerged in training, because they help to predict the next word.' },
        { text: 'Here is every head of the model on your sentence. Each picture is like the one in the previous chapter; the strong spots are where the head attends.', shows: '[data-shows=heads]' },
      ],
      formula: [{ latex: '\\operatorname{attention}(x) = \\big[\\,Z_1\\;Z_2\\;\\cdots\\;Z_H\\,\\big]\\,W_O', says: 'the outputs of all heads, concatenated and mixed by one matrix' }],
      exact: 'Splitting W_O by rows turns this into a sum over heads of Z_h W_O^{(h)}: heads write to the residual stream independently, so one can be ablated, or its contribution measured, on its own.',
    },
    {
      id: 'block',
      title: 'The block: attention, then feed-forward',
      example: 'adjectives',
      plain: [
        { text: 'A *block* has two halves. In one, *attention*, words exchange information. In the other, *feed-forward*, each word is processed on its own by many *neurons*; each responds to one pattern and writes one vector.' + (architecture.gated ? ' A neuron has a *gate* here: one projection says how far it opens, a second one what passes.' : ''), shows: '#feed-forward' },
        { text: 'Neither half replaces anything: each adds its output to the *residual stream*, which runs through the model from the embedding to the prediction.' + (isParallel(architecture) ? ' In this model both halves read the same stream, side by side; in most others feed-forward reads what attention has added.' : ''), shows: '#gather' },
        { text: `Before each half, the *${norm.name}* brings the numbers to a common scale.` },
      ],
      formula: [
        ...blockFormulas(architecture),
        { latex: norm.formula, says: norm.says },
      ],
      exact: 'Because the outputs are added, the final vector is a sum over the embeddings and every head and neuron of every block; up to the scale of the last norm, a logit therefore splits exactly into their contributions. The residual path also carries the gradient back unattenuated.',
    },
    {
      id: 'depth',
      title: 'Depth: predictions form block by block',
      example: 'mystery',
      plain: [
        { text: 'One block after another adds to the *residual stream*. Later blocks build on what earlier ones wrote.', shows: '#stream' },
        { text: 'You can watch a prediction form: stop after some block and ask for the next word right there, with the *logit lens*. How early the model settles on it depends on the sentence.', shows: '#stream' },
        { text: 'At the end, the last vector is compared with the vector of every token in the vocabulary. The larger the product, the *logit*, the likelier that token is next.' },
      ],
      formula: [
        { latex: '\\begin{aligned} \\ell &= W_U \\operatorname{norm}(x_T)\\\\ p_i &= \\frac{e^{\\ell_i/\\tau}}{\\sum_j e^{\\ell_j/\\tau}} \\end{aligned}', says: 'logits of all tokens; τ is the temperature' },
      ],
      exact: 'Applying the last norm and W_U to an intermediate residual stream is called the logit lens. It is a view, not a computation that the model performs: an early layer may hold the answer in directions that only later layers align with W_U.',
    },
    {
      id: 'training',
      title: 'Training: learning from errors',
      example: 'two-creatures',
      plain: [
        { text: 'At the start all matrices are random, and so are the predictions. Training runs the model on text and compares each prediction with the word that really follows.' },
        { text: 'The *surprise* is the negative logarithm of the probability that the model gave to the true next word: near zero where it was sure and right, large where it was wrong. The average over all words is the *loss*.', shows: '[data-shows=surprise]' },
        { text: 'Then each of the millions of *parameters* is changed a little in the direction that lowers the loss, again and again. Everything you have seen on this tour, the heads, the neurons, the patterns of attention, was learned in this way.' },
      ],
      formula: [
        { latex: '\\mathcal L = -\\frac1{T-1}\\sum_{t=1}^{T-1}\\log p(t_{t+1}\\mid t_1\\dots t_t)', says: 'the average surprise' },
        { latex: '\\theta \\leftarrow \\theta - \\eta\\,\\nabla_\\theta \\mathcal L', says: 'a small step against the gradient' },
      ],
      exact: 'The loss is the cross-entropy in nats; its exponential, the perplexity, is the number of equally likely words that the model hesitates between. The update is AdamW’s: a running mean of the gradient divided by a running estimate of its magnitude, with decoupled weight decay. The loss does not fall to zero: no model can predict what is random in the text, so its entropy is the lowest average loss.',
    },
    twoTexts(translator),
  ];
}
