// The text of the guided tour. It depends on the model's architecture, so that every sentence is true of the model that is shown.
// `plain` is for every reader; `exact`, folded under “In detail”, adds what a specialist looks for. A term stands between
// *stars* and is explained where it first comes up. What the sentences claim is tested in claims.test.ts, or measured on
// the model in the picture beside them.

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

const order = 'What are positions for? Without them, a head of the first block could not tell the order of the words before a word: “dog man” and “man dog” would give it the same sum. Later blocks could, but only because of the mask: in another order, each word has seen other words before it.';

function positionsIn({ positions }: Architecture): Paragraph[] {
  if (positions === 'learned') return [{ text: 'A second table has a row for each *position*: 0 for the first token, 1 for the next, and so on. The two rows are added. So the same word enters the model as another vector where it stands at another place.', shows: '.lanes' }];
  if (positions === 'sinusoidal') return [{ text: 'Fixed sines and cosines encode the *position* of the token, 0 for the first one, and are added to the row.', shows: '.lanes' }];
  if (positions === 'rotary') return [{ text: 'The *position* of the token, 0 for the first one, is not added here: the same word enters this model as the same vector wherever it stands. Its place comes in with the next step.' }];
  return [{ text: 'This model is not told the *position* of a token. It can tell the order of words only by the mask (step 4): a word reads those before it, never those after it.' }];
}

function orderIn({ positions }: Architecture): Paragraph[] {
  if (positions === 'none') return [];
  return [positions === 'learned' ? { text: order, shows: '[data-shows=order]' } : { text: order }];
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
        { text: 'A model does not read letters. First, your sentence is split into *tokens*: pieces of text that were frequent in what the model has read. A common word is one token; a rare one is split into several.', shows: '[aria-label="Tokens and their ids"]' },
        { text: 'All tokens that a model knows are its *vocabulary*, a numbered list. A token’s number in that list is its *id*; from here on the model works with ids only. The mark ␣ is a space: it belongs to the word that follows it.', shows: '[aria-label="Tokens and their ids"]' },
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
        { text: 'An id has no meaning by itself. The model uses it to look up a row of a large table, the token’s *embedding*. It is a *vector*, a list of numbers, and was learned from text. Think of it as a point in a space of many dimensions: tokens that are used in similar ways often end up close together.', shows: '.lanes' },
        ...positionsIn(architecture),
        { text: 'Here is your sentence as the model sees it now, a *matrix*, which is a table of numbers: one row for each token, one column for each *channel*, a place in the vector. Blue is negative, red positive.', shows: '[data-shows=matrix]' },
      ],
      formula: [embeddingFormula(architecture)],
      exact: `Looking up row i is the product of a one-hot vector with W_E, so the table is trained like any other matrix. ${exactPositions[architecture.positions]}`,
    },
    {
      id: 'head',
      title: 'One head: how a word attends to others',
      example: 'mole-animal',
      plain: [
        { text: 'A word has one embedding, whatever it means: a mole is an animal, a mark on the skin or an amount of substance. The words before it decide. *Attention* brings their information to it.', shows: '[data-shows=senses]' },
        { text: 'The model is a stack of *blocks*, one after another, and every block has several *heads* of attention. This chapter looks into one of them. You choose it by two numbers, counted from 0, and the word that it works for.', shows: '.choose' },
        { text: 'It works like a web search. What you type is a *query*. Every page has a *key*, by which it is found, and a *value*, what it says. But where a search returns a list of pages, a head returns a mixture: a little of every value, and most of those whose keys match best.' },
        { text: 'Each word gets all three: a query (what it looks for), a key (what it can be found by) and a value (what it passes on). Each is the word’s vector times a matrix that the head has learned.', shows: '[data-shows=queries], [data-shows=keys], [data-shows=values]' },
        ...(architecture.positions === 'rotary' ? [{ text: 'Here positions come in: query and key *rotate* by an angle that grows with the position, so that they also say how far apart the two words are.' }] : []),
        { text: 'To compare a query with a key, their numbers are multiplied pair by pair and added up: their *dot product*. It is large where both point in the same direction. Divided by √D, where D is how many numbers they have, it is the *score*.', shows: '[data-shows=scores]' },
        { text: '*Softmax* turns the scores of a word into *weights*: shares that sum to 100 %. The largest score gets the largest share.', shows: '[data-shows=weights]' },
        { text: 'The output of the head for a word is the sum of all values, each multiplied by its weight: its *mixed values*.', shows: '[data-shows=output]' },
        ...(grouped ? [{ text: `In this model *${groupSize(architecture, heads)} heads share* one set of keys and values; every head has queries of its own. While it writes, the model then has to keep fewer numbers for each word.` }] : []),
      ],
      formula: [
        { latex: '\\begin{aligned} q_t &= x_t W_Q\\\\ k_s &= x_s W_K\\\\ v_s &= x_s W_V \\end{aligned}', says: 'each word’s vector x times three learned matrices W' },
        ...(positioned ? [{ latex: positionedFormula(architecture), says: architecture.positions === 'rotary' ? 'R turns pairs of numbers by the angle of the position' : 'each query and key has mean square one, times a gain' }] : []),
        { latex: `\\begin{aligned} A &= \\operatorname{softmax}\\!\\Big(\\frac{${query} ${key}^{\\top}}{\\sqrt{D}}\\Big)\\\\ Z &= A\\,V \\end{aligned}`, says: 'the whole head: A holds the weights, Z the mixed values' },
      ],
      exact: 'If the entries of q and k are independent with mean 0 and variance 1, q·k has mean 0 and variance D; dividing by √D keeps the softmax from saturating, where its gradient would vanish. Here x is the word’s vector in this block after the ' + norm.name + ' (step 6).',
    },
    {
      id: 'mask',
      title: 'The mask: no looking ahead',
      example: 'adjectives',
      plain: [
        { text: 'The model has to predict the next word. A word that could attend to later ones would simply read the answer. So before the softmax the *mask* sets the scores of all later words to minus infinity; their weights become exactly zero.', shows: '[data-shows=masked-scores]' },
        {
          text: windowed
            ? `That is why the picture has nothing above the diagonal. In some or all blocks of this model a *window* masks the words far back too: ${window > 0 ? `in block ${layer}, a word attends to itself and the ${window - 1} before it` : `block ${layer} has none, choose another one to see it`}.`
            : 'That is why the picture is a triangle. The first word can attend only to itself, the last one to all.',
          shows: '[data-shows=masked-weights]',
        },
        { text: 'It also makes training efficient: a single run over a thousand words makes a thousand predictions, one after each word.' },
        { text: 'And attention suits a *GPU*, a processor with thousands of arithmetic units that work at the same time. A recurrent network, the usual kind of model before, reads word by word: the thousandth word waits for the 999 before it. Here no cell of the picture waits for another, in any head of a block; only the blocks wait for each other. The price: twice as many words need about ' + (windowed ? 'twice to four times' : 'four times') + ' as many dot products.', shows: '[data-shows=growth]' },
        ...orderIn(architecture),
      ],
      formula: [{ latex: `S_{ts} = \\begin{cases} ${product}/\\sqrt{D} & ${seenFormula(window)}\\\\ -\\infty & \\text{otherwise} \\end{cases}`, says: window > 0 ? 'later words and those before the window are masked' : 'later words are masked' }],
      exact: 'exp(−∞) = 0, so a masked key gets no weight and does not enter the denominator: every row still sums to one. It is also why the key-value cache is correct: earlier rows do not change when the text grows.',
    },
    {
      id: 'heads',
      title: 'Many heads: several patterns at once',
      example: 'two-creatures',
      plain: [
        { text: 'The weights of a *head*, one row for each word, are its *pattern*. One pattern is not enough for a sentence. So each *block* has several heads side by side, each with small matrices of its own' + (grouped ? ' for the queries' : '') + '. One may attend from a noun to its adjective, another from “it” to the animal that is meant, a third simply to the previous word.', shows: '[data-shows=heads]' },
        { text: 'Nobody programmed these patterns. They emerged in training, because they help to predict the next word.' },
        { text: 'Here is every head of the model on your sentence. Each picture is a small one of the weights in the previous step: the strong spots are where the head attends.', shows: '[data-shows=heads]' },
      ],
      formula: [{ latex: '\\operatorname{attention}(x) = \\big[\\,Z_1\\;Z_2\\;\\cdots\\;Z_H\\,\\big]\\,W_O', says: 'the outputs of all heads, concatenated and mixed by one matrix' }],
      exact: 'Splitting W_O by rows turns this into a sum over heads of Z_h W_O^{(h)}: heads write to the residual stream independently, so one can be ablated, or its contribution measured, on its own.',
    },
    {
      id: 'block',
      title: 'The block: attention, then feed-forward',
      example: 'adjectives',
      plain: [
        { text: 'A *block* has two halves. In one, *attention*, words exchange information. In the other, *feed-forward*, each word is processed on its own by many *neurons*: each is active where the word’s vector points in a certain direction, and then adds a vector of its own.' + (architecture.gated ? ' A neuron has a *gate* here: one projection says how far it opens, a second one what passes.' : ''), shows: '#feed-forward' },
        { text: 'Neither half replaces anything: each adds its output to the word’s vector. This running sum, from the embedding to the prediction, is the *residual stream*.' + (isParallel(architecture) ? ' In this model both halves read the same stream, side by side; in most others feed-forward reads what attention has added.' : ''), shows: '#gather' },
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
        { text: 'You can watch a prediction form: stop after some block and ask for the next word right there. This is called the *logit lens*. How early the model settles on its word depends on the sentence.', shows: '#stream' },
        { text: 'At the end, the last word’s vector is compared with a vector of every token in the vocabulary, again by a dot product. The larger this number, the *logit*, the likelier that token is next; a softmax turns all logits into probabilities.' },
      ],
      formula: [
        { latex: '\\begin{aligned} \\ell &= W_U \\operatorname{norm}(x_T)\\\\ p_i &= \\frac{e^{\\ell_i/\\tau}}{\\sum_j e^{\\ell_j/\\tau}} \\end{aligned}', says: 'logits of all tokens, then probabilities; τ, the temperature, is 1 here: a larger one makes them more even' },
      ],
      exact: 'Applying the last norm and W_U to an intermediate residual stream is called the logit lens. It is a view, not a computation that the model performs: an early layer may hold the answer in directions that only later layers align with W_U.',
    },
    {
      id: 'training',
      title: 'Training: learning from errors',
      example: 'two-creatures',
      plain: [
        { text: 'At the start all numbers in the matrices are random, and so are the predictions. Training runs the model on text and compares each prediction with the word that really follows.' },
        { text: 'The *surprise* is the negative logarithm of the probability that the model gave to the true next word: near zero where it was sure and right, large where it was wrong. Its unit is the nat: a probability of 37 % is a surprise of 1 nat, one of 5 % of 3 nats. The average over all words is the *loss*.', shows: '[data-shows=surprise]' },
        { text: 'Then each of the millions of *parameters*, the numbers in the tables and matrices, is changed a little in the direction that lowers the loss. The *gradient* says which direction that is. This is repeated thousands of times. Everything you have seen on this tour, the embeddings, the heads, the neurons, was learned in this way.' },
      ],
      formula: [
        { latex: '\\mathcal L = -\\frac1{T-1}\\sum_{t=1}^{T-1}\\log p(t_{t+1}\\mid t_1\\dots t_t)', says: 'the average surprise' },
        { latex: '\\theta \\leftarrow \\theta - \\eta\\,\\nabla_\\theta \\mathcal L', says: 'all parameters θ take a small step, of size η, against the gradient of the loss' },
      ],
      exact: 'The loss is the cross-entropy in nats; its exponential, the perplexity, is the number of equally likely words that the model hesitates between. The update is AdamW’s: a running mean of the gradient divided by a running estimate of its magnitude, with decoupled weight decay. The loss does not fall to zero: no model can predict what is random in the text, so its entropy is the lowest average loss.',
    },
    twoTexts(translator),
  ];
}
