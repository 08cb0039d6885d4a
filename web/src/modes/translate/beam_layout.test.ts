import { describe, expect, it } from 'vitest';
import type { BeamNode, BeamSearch } from '../../lib/pair_types';
import { firstDetour, moved, nodeName, pathTo, placed, scoreOf, sumDerivation, textTo } from './beam_layout';
import { searched } from './searched';

const node = (id: number, parent: number | null, step: number, text: string | null, chance: number, sum: number, state: BeamNode['state']): BeamNode => ({ id, parent, step, token: text === null ? null : { id: text === '</s>' ? 2 : id + 10, text }, log_probability: Math.log(chance), sum, state });

/** Two beams, by hand: “Ein” is likelier than “Der” at first, and “Der Hund” than “Ein Tier” in the end. */
const small: BeamSearch = {
  beams: 2, length_penalty: 1, max_length: 64,
  nodes: [
    node(0, null, 0, null, 1, 0, 'kept'),
    node(1, 0, 1, 'Ein', 0.5, Math.log(0.5), 'kept'),
    node(2, 0, 1, 'Der', 0.4, Math.log(0.4), 'kept'),
    node(3, 0, 1, 'Das', 0.05, Math.log(0.05), 'dropped'),
    node(4, 2, 2, ' Hund', 0.9, Math.log(0.36), 'kept'),
    node(5, 1, 2, ' Tier', 0.6, Math.log(0.3), 'kept'),
    node(6, 1, 2, '</s>', 0.3, Math.log(0.15), 'dropped'),
    node(7, 4, 3, '</s>', 0.8, Math.log(0.288), 'finished'),
    node(8, 5, 3, '</s>', 0.7, Math.log(0.21), 'finished'),
  ],
  hypotheses: [
    { node: 7, score: Math.log(0.288) / 3, log_probability: Math.log(0.288), text: 'Der Hund', tokens: [], finished: true },
    { node: 8, score: Math.log(0.21) / 3, log_probability: Math.log(0.21), text: 'Ein Tier', tokens: [], finished: true },
  ],
};

const layout = placed(small, 1);
const { nodes } = layout;

describe('the tree of a small search', () => {
  it('has a column for each step, children in the order of their parents', () => {
    expect(layout.columns.map((column) => column.map(({ id }) => id))).toEqual([[0], [1, 2, 3], [5, 6, 4], [8, 7]]);
    expect(layout.rows).toBe(3);
    expect(layout.columns.map((column) => column.map(({ row }) => row))).toEqual([[1], [0, 1, 2], [0, 1, 2], [0.5, 1.5]]);
  });

  it('says the path, the text and the names of nodes', () => {
    expect(pathTo(small.nodes, 7)).toEqual([0, 2, 4, 7]);
    expect(textTo(nodes, 7)).toBe('Der Hund');
    expect(textTo(nodes, 0)).toBe('');
    expect([0, 4, 6, 7].map((id) => nodeName(nodes[id]))).toEqual(['start', '␣Hund', 'end', 'end']);
  });

  it('finds where a path leaves the likeliest token', () => {
    expect(firstDetour(nodes, 7)).toMatchObject({ step: 1, taken: { id: 2 }, likelier: { id: 1 } });
    expect(firstDetour(nodes, 8)).toBeNull();
    // “Das” has two likelier siblings: the likeliest counts.
    expect(firstDetour(nodes, 3)).toMatchObject({ likelier: { id: 1 } });
  });

  it('is walked by the arrow keys', () => {
    const go = (from: number, move: Parameters<typeof moved>[2], last = 3) => moved(layout, from, move, last, 7);
    expect([go(0, 'right'), go(1, 'right'), go(2, 'right'), go(7, 'right')]).toEqual([1, 5, 4, 7]);
    expect([go(7, 'left'), go(0, 'left')]).toEqual([4, 0]);
    expect([go(5, 'down'), go(6, 'down'), go(4, 'down'), go(5, 'up')]).toEqual([6, 4, 4, 5]);
    expect([go(5, 'first'), go(5, 'last'), go(5, 'last', 2), go(4, 'right', 2)]).toEqual([0, 7, 4, 4]);
    expect(go(6, 'right')).toBe(6);
  });
});

describe('a node', () => {
  it('has the score of a text that ends there', () => {
    expect(scoreOf({ sum: -3, step: 4 }, 1)).toBe(-0.75);
    expect(scoreOf({ sum: -3, step: 4 }, 0)).toBe(-3);
    expect(scoreOf({ sum: -3, step: 4 }, 2)).toBe(-3 / 16);
    expect(scoreOf({ sum: 0, step: 0 }, 1)).toBe(0);
  });

  it('tells its sum token by token', () => {
    const { value, terms, count, latex } = sumDerivation(nodes, 7, 1);
    expect(terms.map(({ label }) => label)).toEqual(['log p(Der)', 'log p(␣Hund)', 'log p(end)']);
    expect(terms.reduce((sum, term) => sum + term.value, 0)).toBeCloseTo(value, 12);
    expect(count).toBe(3);
    expect(latex).toContain('3^{1}');
    expect(sumDerivation(nodes, 0, 1)).toMatchObject({ value: 0, terms: [] });
  });
});

describe('the tree of a translator', () => {
  const tree = placed(searched, searched.length_penalty);

  it('stands in rows of its own, none over another, and no edges cross', () => {
    for (const [step, column] of tree.columns.entries()) {
      expect(column.length, `step ${step}`).toBeLessThanOrEqual(2 * searched.beams);
      for (let index = 1; index < column.length; ++index) {
        expect(column[index].row - column[index - 1].row).toBe(1);
        const [above, below] = [column[index - 1], column[index]].map(({ parent }) => tree.nodes[parent!].row);
        expect(above).toBeLessThanOrEqual(below);
      }
    }
    expect(tree.columns.flat().length).toBe(searched.nodes.length);
  });

  it('has sums of the log-probabilities on the way, and the scores of its hypotheses', () => {
    for (const { id, sum } of searched.nodes) expect(pathTo(searched.nodes, id).reduce((total, one) => total + searched.nodes[one].log_probability, 0)).toBeCloseTo(sum, 5);
    for (const { node, score, text } of searched.hypotheses) {
      expect(tree.nodes[node].score).toBeCloseTo(score, 5);
      expect(textTo(tree.nodes, node)).toBe(text);
    }
    expect(searched.hypotheses.map(({ score }) => score)).toEqual(searched.hypotheses.map(({ score }) => score).sort((one, other) => other - one));
  });

  it('reaches every kept node by the arrow keys', () => {
    const best = searched.hypotheses[0].node;
    const seen = new Set<number>([0]);
    const waiting = [0];
    for (let from = waiting.pop(); from !== undefined; from = waiting.pop()) {
      for (const move of ['left', 'right', 'up', 'down', 'first', 'last'] as const) {
        const to = moved(tree, from, move, tree.columns.length - 1, best);
        if (!seen.has(to)) waiting.push(to);
        seen.add(to);
      }
    }
    expect(seen.size).toBe(searched.nodes.length);
  });
});
