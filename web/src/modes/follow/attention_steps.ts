// Attention of one query, step by step: one dot product cell by cell, the row of scores, the mask, softmax, the weighted
// values, and ΔE in the residual stream. What is done at each step, and its numbers in words.

import { maskReason } from '../../lib/architecture';
import { percent, tokenWord, value } from '../../lib/numbers';
import type { Walk, WalkAnswer } from '../../lib/types';
import { rowsToShow } from './rows';
import { scoreDivisor } from './scores';

export const phases = ['keys', 'multiply', 'scale', 'row', 'mask', 'softmax', 'values', 'project', 'stream', 'others'] as const;
export type PhaseName = (typeof phases)[number];

export interface Phase {
  name: PhaseName;
  /** In a few words. */
  title: string;
  /** Its steps are [begin, end): step t is done at time t + 1. */
  begin: number;
  end: number;
}

/** A row of the picture: one key, or all that are not listed. */
export interface KeyRow {
  /** Null: the keys that are not listed, together. */
  answer: WalkAnswer | null;
  word: string;
  masked: boolean;
  share: number;
  /** share · value, (D). */
  contribution: number[];
}

export interface Steps {
  walk: Walk;
  word: string;
  rows: KeyRow[];
  /** The row whose product is computed cell by cell. */
  chosen: number;
  /** The other rows, in the order in which their scores follow. */
  others: number[];
  /** The rows that add to the output. */
  adding: number[];
  /** q_j · k_j of each listed row, (D). */
  products: number[][];
  /** What the scores are divided by, as written. */
  divisor: string;
  phases: Phase[];
  last: number;
}

const titles: Record<PhaseName, string> = {
  keys: 'query and keys', multiply: 'q · k', scale: 'divide', row: 'the row', mask: 'mask', softmax: 'softmax', values: 'values', project: 'ΔE', stream: 'add', others: 'other heads',
};

/** The key with the largest weight, and not the query's own where another one has some. */
export function strongestKey({ answers, position }: Walk): number {
  const seen = answers.filter(({ masked }) => !masked);
  const best = (among: WalkAnswer[]) => among.reduce((most, answer) => (answer.share > most.share ? answer : most), among[0]);
  const other = seen.filter((answer) => answer.position !== position);
  return (other.length > 0 && best(other).share > 0.01 ? best(other) : best(seen)).position;
}

function keyRows(walk: Walk, key: number): KeyRow[] {
  const listed = new Set(rowsToShow(walk.answers, false).rows);
  listed.add(walk.answers[key]);
  const rows = walk.answers.filter((answer) => listed.has(answer)).map((answer): KeyRow => ({
    answer, word: tokenWord(answer.token), masked: answer.masked, share: answer.share, contribution: answer.value.map((number) => answer.share * number),
  }));
  const hidden = walk.answers.filter((answer) => !answer.masked && !listed.has(answer));
  if (hidden.length === 0) return rows;
  // What the listed ones leave of the output is theirs.
  const contribution = walk.output.map((number, j) => number - rows.reduce((sum, row) => sum + row.contribution[j], 0));
  return [...rows, { answer: null, word: `${hidden.length} others`, masked: false, share: hidden.reduce((sum, { share }) => sum + share, 0), contribution }];
}

export function stepsOf(walk: Walk, key: number, heads: number): Steps {
  const rows = keyRows(walk, key);
  const chosen = rows.findIndex(({ answer }) => answer?.position === key);
  const others = rows.map((_, index) => index).filter((index) => index !== chosen);
  const adding = rows.map((_, index) => index).filter((index) => !rows[index].masked);
  const counts: Record<PhaseName, number> = {
    keys: 1, multiply: walk.head_size, scale: 1, row: others.length, mask: rows.some(({ masked }) => masked) ? 1 : 0, softmax: 1, values: adding.length, project: 1, stream: 1, others: heads > 1 ? 1 : 0,
  };
  let begin = 0;
  const all = phases.map((name): Phase => ({ name, title: titles[name], begin, end: (begin += counts[name]) })).filter(({ begin, end }) => end > begin);
  return {
    walk, word: tokenWord(walk.answers[walk.position].token), rows, chosen, others, adding,
    products: rows.map(({ answer }) => (answer ? walk.query.map((number, j) => number * answer.key[j]) : [])),
    divisor: scoreDivisor(walk), phases: all, last: begin,
  };
}

/** How many steps of a phase are done at a time: a fraction while one is on its way; 0 where there is no such phase. */
export function doneOf({ phases: all }: Steps, name: PhaseName, time: number): number {
  const phase = all.find((one) => one.name === name);
  return phase ? Math.max(0, Math.min(phase.end - phase.begin, time - phase.begin)) : 0;
}

export function phaseAt({ phases: all, last }: Steps, time: number): Phase {
  const step = Math.max(0, Math.ceil(Math.min(time, last) - 1e-9) - 1);
  return all.find(({ begin, end }) => step >= begin && step < end) ?? all[0];
}

/** Seconds that a step takes to play. */
export function secondsOf(steps: Steps, step: number): number {
  const phase = steps.phases.find(({ begin, end }) => step >= begin && step < end) ?? steps.phases[0];
  const inAll: Record<PhaseName, number> = { keys: 1.4, multiply: 5, scale: 1.4, row: 3, mask: 1.4, softmax: 1.8, values: 5, project: 1.8, stream: 1.8, others: 1.6 };
  return Math.min(1.4, inAll[phase.name] / (phase.end - phase.begin)) * (phase.end - phase.begin === 1 ? inAll[phase.name] / 1.4 : 1);
}

/** The running sum of the chosen dot product after `cells` cells. */
export function sumAfter({ products, chosen }: Steps, cells: number): number {
  return products[chosen].slice(0, Math.floor(cells + 1e-9)).reduce((sum, product) => sum + product, 0);
}

/** What the step that ended at `time` did, in words. */
export function captionAt(steps: Steps, time: number): string {
  const { walk, rows, chosen, others, adding, word, divisor } = steps;
  const phase = phaseAt(steps, time);
  const index = Math.max(0, Math.min(phase.end - phase.begin - 1, Math.ceil(time - 1e-9) - 1 - phase.begin));
  const key = rows[chosen];
  const short = (number: number) => value(number, 2);
  switch (phase.name) {
    case 'keys': return `“${word}” has a query, and every word has a key: ${walk.head_size} numbers each. How well does the key of “${key.word}” fit?`;
    case 'multiply': {
      const [left, right] = [walk.query[index], key.answer!.key[index]];
      const end = index === walk.head_size - 1;
      return `Number ${index + 1} of ${walk.head_size}: ${short(left)} × ${short(right)} = ${short(left * right)}. ${end ? `The sum of all is q · k = ${short(key.answer!.product)}.` : `Sum so far: ${short(sumAfter(steps, index + 1))}.`}`;
    }
    case 'scale': return `${short(key.answer!.product)} ${divisor} = ${short(key.answer!.scaled)}: the score of “${word}” for “${key.word}”.`;
    case 'row': {
      const other = rows[others[index]];
      return other.answer ? `The same with the key of “${other.word}”: score ${short(other.answer.scaled)}. The row fills.` : `And with the keys of the ${other.word}.`;
    }
    case 'mask': {
      const hidden = rows.find(({ masked }) => masked)!.answer!;
      return `The mask: ${maskReason(walk.position, hidden.position, 0).toLowerCase()}. Such scores become −∞.`;
    }
    case 'softmax': return `Softmax turns the scores into weights that sum to 100 %. “${key.word}” gets ${percent(key.share)}.`;
    case 'values': {
      const row = rows[adding[index]];
      return `${percent(row.share)} of the ${row.answer ? `value of “${row.word}”` : `values of the ${row.word}`} is added to the sum.`;
    }
    case 'project': return `The output matrix turns the sum, ${walk.output.length} numbers, into ΔE, ${walk.head_projection.length} numbers.`;
    case 'stream': return `ΔE is added to the vector of “${word}” in the residual stream.`;
    case 'others': return `The other heads of block ${walk.layer} add theirs: the stream after attention.`;
  }
}
