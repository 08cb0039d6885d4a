// The element of a point that each number on the page shows, for which the server derives its computation.

import type { HeadPart } from '../../lib/architecture';
import { tokenText } from '../../lib/numbers';
import type { Derivation, PointElement, WalkAnswer } from '../../lib/types';

export type At = (index: number) => PointElement;

export function stream(layer: number, part: 'pre' | 'mid' | 'post', position: number): At {
  return (index) => ({ point: `blocks.${layer}.hook_resid_${part}`, layer, position, index });
}

export function embedding(part: 'hook_embed' | 'hook_pos_embed', position: number): At {
  return (index) => ({ point: part, position, index });
}

export function added(layer: number, part: 'attn_out' | 'mlp_out', position: number): At {
  return (index) => ({ point: `blocks.${layer}.hook_${part}`, layer, position, index });
}

export function normalized(layer: number, part: 'ln1' | 'ln2', position: number): At {
  return (index) => ({ point: `blocks.${layer}.${part}.hook_normalized`, layer, position, index });
}

/** What a norm divides by. */
export function spread(layer: number, part: 'ln1' | 'ln2', position: number): PointElement {
  return { point: `blocks.${layer}.${part}.hook_scale`, layer, position, index: 0 };
}

export function finalSpread(position: number): PointElement {
  return { point: 'ln_final.hook_scale', position, index: 0 };
}

export function finalNormalized(position: number): At {
  return (index) => ({ point: 'ln_final.hook_normalized', position, index });
}

/** `head` counts key/value heads where the part has one vector for each of them. */
export function ofHead(layer: number, head: number, part: HeadPart, position: number): At {
  return (index) => ({ point: `blocks.${layer}.attn.hook_${part}`, layer, head, position, index });
}

/** What one head adds to the residual stream: its output times its rows of W_O. */
export function headResult(layer: number, head: number, position: number): At {
  return (index) => ({ point: `blocks.${layer}.attn.hook_result`, layer, head, position, index });
}

/** The concatenated head outputs: `index` runs over all heads. */
export function concatenated(layer: number, headSize: number, position: number): At {
  return (index) => ofHead(layer, Math.floor(index / headSize), 'z', position)(index % headSize);
}

export function pair(layer: number, head: number, part: 'attn_scores', position: number, key: number): PointElement {
  return { point: `blocks.${layer}.attn.hook_${part}`, layer, head, position, key };
}

export function neuron(layer: number, part: 'pre' | 'pre_linear' | 'post', position: number): At {
  return (index) => ({ point: `blocks.${layer}.mlp.hook_${part}`, layer, position, index });
}

export function logit(position: number, token: number): PointElement {
  return { point: 'logits', position, index: token };
}

/** q·k, term by term. */
export function dotOf(query: ArrayLike<number>, key: ArrayLike<number>): Derivation {
  const terms = Array.from(query, (left, index) => ({ label: `dimension ${index}`, left, right: key[index], value: left * key[index] })).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  return { name: 'q·k', value: terms.reduce((sum, { value }) => sum + value, 0), formula: 'q·k = Σ_j q_j k_j', latex: 'q\\cdot k=\\sum_j q_j\\,k_j', operation: 'sum', terms, count: terms.length, rest: 0, bias: null };
}

/** The server's q·k, term by term. */
export function dotProduct(query: number[], answer: WalkAnswer): Derivation {
  return { ...dotOf(query, answer.key), value: answer.product };
}

/** A key's attention weight: the softmax over all unmasked scores, its own first. */
export function share(answers: WalkAnswer[], answer: WalkAnswer): Derivation {
  const others = answers.filter((other) => !other.masked && other !== answer).sort((a, b) => b.share - a.share);
  const terms = [answer, ...others].map((one) => ({ label: tokenText(one.token), left: one.score, right: null, value: one.share }));
  return { name: 'share', value: answer.share, formula: 'a = exp(s) / Σ exp(s)', latex: 'a=\\frac{e^{s}}{\\sum_k e^{s_k}}', operation: 'softmax', terms, count: terms.length, rest: 0, bias: null };
}

/** An attention weight from a row of which only some scores may be known; later keys are masked. */
export function shareInRow(words: string[], scores: ArrayLike<number>, shares: ArrayLike<number>, key: number, seen: number): Derivation {
  const term = (at: number) => ({ label: words[at], left: scores[at], right: null, value: shares[at] });
  const others = Array.from({ length: words.length }, (_, at) => at).filter((at) => at !== key && Number.isFinite(scores[at])).sort((a, b) => shares[b] - shares[a]);
  const terms = [key, ...others].map(term);
  const rest = Math.max(0, 1 - terms.reduce((sum, { value }) => sum + value, 0));
  return { name: 'share', value: shares[key], formula: 'a = exp(s) / Σ exp(s)', latex: 'a=\\frac{e^{s}}{\\sum_k e^{s_k}}', operation: 'softmax', terms, count: seen, rest: seen > terms.length ? rest : 0, bias: null };
}

/** The sum of several keys' attention weights, the largest first. */
export function sharesOf(name: string, answers: WalkAnswer[]): Derivation {
  const terms = [...answers].sort((a, b) => b.share - a.share).map(({ token, share }) => ({ label: tokenText(token), left: null, right: null, value: share }));
  return { name, value: terms.reduce((sum, { value }) => sum + value, 0), formula: 'Σ a', latex: '\\sum_s a_s', operation: 'shares', terms, count: terms.length, rest: 0, bias: null };
}

/** What one key's value contributes to element `index` of the output. */
export function weighted(answer: WalkAnswer, index: number): Derivation {
  const value = answer.share * answer.value[index];
  return {
    name: 'weight × value', value, formula: 'a · v_j', latex: 'a\\,v_j', operation: 'sum', count: 1, rest: 0, bias: null,
    terms: [{ label: tokenText(answer.token), left: answer.share, right: answer.value[index], value }],
  };
}
