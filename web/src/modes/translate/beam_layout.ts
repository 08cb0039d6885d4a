// Beam search as a drawn tree: a column for each step, and what the numbers of a node are made of.

import { tokenText, tokenWord, value } from '../../lib/numbers';
import type { BeamNode, BeamSearch } from '../../lib/pair_types';
import type { Derivation } from '../../lib/types';

export interface PlacedNode extends BeamNode {
  /** From the top of its column; columns are as high as the largest, and the others stand in their middle. */
  row: number;
  score: number;
  /** Whether its token is the end of a text. */
  ends: boolean;
}

export interface BeamLayout {
  nodes: PlacedNode[];
  columns: PlacedNode[][];
  rows: number;
}

/** The score of a text that ends here: its log-probability divided by a power of its length. */
export function scoreOf({ sum, step }: Pick<BeamNode, 'sum' | 'step'>, lengthPenalty: number): number {
  return step === 0 ? 0 : sum / step ** lengthPenalty;
}

/** Children stand in the order of their parents, the likeliest first, so that no two edges of a step cross. */
export function placed({ nodes }: Pick<BeamSearch, 'nodes'>, lengthPenalty: number): BeamLayout {
  const end = nodes.find(({ state }) => state === 'finished')?.token?.id;
  const all: PlacedNode[] = nodes.map((node) => ({ ...node, row: 0, score: scoreOf(node, lengthPenalty), ends: node.token !== null && node.token.id === end }));
  const columns: PlacedNode[][] = [];
  for (const node of all) (columns[node.step] ??= []).push(node);
  const rows = Math.max(...columns.map((column) => column.length));
  for (const column of columns) {
    const above = (node: PlacedNode) => (node.parent === null ? 0 : all[node.parent].row);
    column.sort((one, other) => above(one) - above(other) || other.sum - one.sum || one.id - other.id);
    column.forEach((node, index) => (node.row = index + (rows - column.length) / 2));
  }
  return { nodes: all, columns, rows };
}

/** The ids from the start to a node. */
export function pathTo(nodes: BeamNode[], id: number): number[] {
  const path: number[] = [];
  for (let node: BeamNode | undefined = nodes[id]; node; node = node.parent === null ? undefined : nodes[node.parent]) path.unshift(node.id);
  return path;
}

/** The text up to a node, as it is written; the end is no text. */
export function textTo(nodes: PlacedNode[], id: number): string {
  return pathTo(nodes, id).map((one) => (nodes[one].ends ? '' : (nodes[one].token?.text ?? ''))).join('').trim();
}

/** What a node is called: its token, or where a text starts or ends. */
export function nodeName({ token, ends }: PlacedNode): string {
  if (token === null) return 'start';
  return ends ? 'end' : tokenText(token.text);
}

export function nodeWord({ token, ends }: PlacedNode): string {
  if (token === null) return 'start';
  return ends ? 'end' : tokenWord(token.text);
}

/** The node's sum of log-probabilities, term by term, and the score that it gives. */
export function sumDerivation(nodes: PlacedNode[], id: number, lengthPenalty: number): Derivation {
  const path = pathTo(nodes, id).slice(1);
  const node = nodes[id];
  const digits = 4;
  const latex = `\\text{score} = \\frac{\\sum\\log p}{n^{${lengthPenalty}}} = \\frac{${value(node.sum, digits)}}{${node.step}^{${lengthPenalty}}} = ${value(scoreOf(node, lengthPenalty), digits)}`;
  return {
    name: 'sum', value: node.sum, formula: 'Σ log p', latex: node.step === 0 ? '\\sum\\log p = 0' : latex, operation: 'sum', count: path.length, rest: 0, bias: null,
    terms: path.map((one) => ({ label: `log p(${nodeName(nodes[one])})`, left: null, right: null, value: nodes[one].log_probability })),
  };
}

export type Move = 'left' | 'right' | 'up' | 'down' | 'first' | 'last';

/** Where an arrow key leads among the columns up to `last`: the parent, the likeliest child, or a neighbour in the column. */
export function moved({ nodes, columns }: BeamLayout, from: number, move: Move, last: number, best: number): number {
  const node = nodes[from];
  if (move === 'first') return 0;
  if (move === 'last') return pathTo(nodes, best).filter((id) => nodes[id].step <= last).at(-1)!;
  if (move === 'left') return node.parent ?? from;
  if (move === 'right') {
    const children = node.step < last ? (columns[node.step + 1] ?? []).filter(({ parent }) => parent === from) : [];
    return children.find(({ state }) => state !== 'dropped')?.id ?? children[0]?.id ?? from;
  }
  const column = columns[node.step];
  const index = column.findIndex(({ id }) => id === from) + (move === 'up' ? -1 : 1);
  return column[index]?.id ?? from;
}

export interface Detour {
  step: number;
  taken: PlacedNode;
  likelier: PlacedNode;
}

/** The first step at which a path does not take the likeliest token after those before it; null where it always does, as greedy search would. */
export function firstDetour(nodes: PlacedNode[], id: number): Detour | null {
  for (const one of pathTo(nodes, id).slice(1)) {
    const taken = nodes[one];
    const likeliest = nodes.filter(({ parent }) => parent === taken.parent).reduce((most, node) => (node.log_probability > most.log_probability ? node : most), taken);
    if (likeliest !== taken) return { step: taken.step, taken, likelier: likeliest };
  }
  return null;
}
