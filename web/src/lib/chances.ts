// The computation of a next token's probability, for the popover, from numbers that are on the page.
// The server filters first (top-k, top-p, min-p) and applies the temperature last.

import { tokenText } from './numbers';
import type { Candidate, Derivation, NextTokens, Sampling, SamplingOption, Token } from './types';

type Term = Derivation['terms'][number];
const term = (label: string, value: number, left: number | null = null, right: number | null = null): Term => ({ label, left, right, value });

/** A softmax of which only the largest terms are known; `first` is the explained one. */
function shareOfAll(name: string, first: Term, others: Term[], count: number, formula: string, latex: string): Derivation {
  const terms = [first, ...others];
  const rest = Math.max(0, 1 - terms.reduce((sum, { value }) => sum + value, 0));
  return { name, value: first.value, formula, latex, operation: 'softmax', terms, count, rest: count > terms.length ? rest : 0, bias: null };
}

/** The model's own probability: a logit beside those of the whole vocabulary. */
export function probabilityOf(candidate: Candidate, { candidates, vocabulary }: NextTokens): Derivation {
  const one = ({ token, logit, probability }: Candidate) => term(tokenText(token), probability, logit);
  const others = candidates.filter(({ id }) => id !== candidate.id).sort((a, b) => b.probability - a.probability);
  return shareOfAll('probability', one(candidate), others.map(one), vocabulary, 'p = exp(ℓ) / Σ exp(ℓ)', 'p=\\frac{e^{\\ell}}{\\sum_w e^{\\ell_w}}');
}

/** A prediction of the logit lens: only the most likely tokens are known, without logits. */
export function guessOf(tokens: Token[], probabilities: number[], index: number, vocabulary: number): Derivation {
  const all = tokens.map(({ text }, at) => term(tokenText(text), probabilities[at]));
  return shareOfAll('guess', all[index], all.filter((_, at) => at !== index), vocabulary, 'p = softmax(W_U · norm(x))', 'p=\\operatorname{softmax}(W_U\\operatorname{norm}(x))');
}

/** The options of a stage that change something. */
function active(options: SamplingOption[], sampling: Sampling, stage: string): SamplingOption[] {
  return options.filter((option) => option.stage === stage && sampling[option.name] !== option.unmodified);
}

/** The logit, after penalties, divided by the temperature. */
export function scaledOf({ logit, scaled }: Candidate, { sampling }: NextTokens, options: SamplingOption[]): Derivation {
  const { temperature } = sampling;
  const penalised = active(options, sampling, 'penalties').length > 0;
  const score = temperature === 0 ? scaled : scaled * temperature;
  const label = penalised ? 'logit, after penalties' : 'logit';
  const by = temperature === 0 ? null : 1 / temperature;
  const formula = temperature === 0 ? 'T = 0: greedy, logits are not divided' : 'ℓ / T';
  return {
    name: 'scaled', value: scaled, formula, latex: temperature === 0 ? '' : `\\ell\\,/\\,T,\\quad T=${temperature}`, operation: 'sum',
    terms: [term(label, scaled, penalised ? score : logit, by)], count: 1, rest: 0, bias: null,
  };
}

/** The probability after each active filter and the temperature. */
export function chanceOf({ probability, drawn, after, removed_by }: Candidate, { sampling }: NextTokens, options: SamplingOption[]): Derivation {
  const { temperature } = sampling;
  const steps = Object.entries(after).flatMap(([stage, value]) => {
    const names = active(options, sampling, stage).map(({ name, label }) => `${label.toLowerCase()} ${sampling[name]}`);
    return names.length > 0 ? [term(names.join(', '), value)] : [];
  });
  const taken = steps.findIndex(({ value }) => value === 0);
  const until = taken < 0 ? steps : steps.slice(0, taken + 1);
  const last = taken < 0 ? [term(temperature === 0 ? 'temperature 0 (greedy)' : `temperature ${temperature}`, drawn)] : [];
  return {
    name: 'drawn', value: drawn, formula: removed_by ? `removed by ${removed_by}` : 'exp(ℓ/T) / Σ exp(ℓ/T) over the remaining tokens',
    latex: removed_by || temperature === 0 ? '' : 'd=\\frac{e^{\\ell/T}}{\\sum_{\\text{left}} e^{\\ell_w/T}}',
    operation: 'steps', terms: [term('model', probability), ...until, ...last], count: 1 + until.length + last.length, rest: 0, bias: null,
  };
}

/** What lists of next tokens export. */
export const candidatesTable = (candidates: Candidate[]) => ({
  columns: ['rank', 'id', 'token', 'logit', 'scaled', 'probability', 'drawn', 'removed_by'],
  rows: candidates.map(({ rank, id, token, logit, scaled, probability, drawn, removed_by }) => [rank, id, token, logit, scaled, probability, drawn, removed_by]),
});

/** (candidates, 3): logit, probability, and that of being sampled. */
export const candidatesArray = (candidates: Candidate[]) => ({
  shape: [candidates.length, 3],
  data: Float32Array.from(candidates.flatMap(({ logit, probability, drawn }) => [logit, probability, drawn])),
});
