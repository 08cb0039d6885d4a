import { describe, expect, it } from 'vitest';
import type { CauseFeature, CausePath } from '../../lib/types';
import { about, contextOf, controlRange, nameOf, verdict, wordsOf } from './because';

const token = (id: number, text: string) => ({ id, text });
const path = (cause: boolean): CausePath => ({
  from: 1, token: token(5, ' blue'), layer: 0, position: 2, neurons: [3, 4], features: [], share: 0.1, without: 0.2, instead: token(7, ' deep'), instead_probability: 0.5, controls: [0.6, 0.4, 0.5], control: 0.4, cause,
});
const said = (...causes: boolean[]) => verdict({ position: 3, token: token(6, ' soft'), probability: 0.5, unit: 'neuron', graph_units: 9, paths: causes.map(path) }, 'soft').replace(/\u00a0/g, ' ');

describe('the paths to a word', () => {
  it('are called causes only where they beat their controls', () => {
    expect(said(false, false, false)).toContain('No single path decides it');
    expect(said()).toContain('No single path decides it');
    expect(said(true, false, false)).toContain('One of the strongest paths to it is a cause');
    expect(said(true, true, false)).toContain('Two of the strongest paths to it are causes');
    expect(said(true, true, true)).toContain('The three strongest paths to it are causes');
    expect(said(true)).toContain('The strongest path to it is a cause');
    expect(said(true)).toContain('predicted with 50.0 %');
  });

  it('are named by the words that their first feature answers to, if it answers to any', () => {
    const feature = (number: number, of: number, ...words: [string, number][]): CauseFeature => ({
      feature: number, activation: 1, of, context: [token(1, ' a')], words: words.map(([text, contexts], id) => ({ token: token(id, text), contexts })),
    });
    const one = feature(7, 8, [' blue', 5], [' green', 2], [' red', 1]);
    const several = feature(8, 8, [' green', 4], [' blue', 2], ['green', 1], [' red', 1]);
    const none = feature(9, 0);
    expect(wordsOf(several)).toEqual(['green', 'blue', 'red']); // each once
    const named = (...features: CauseFeature[]) => nameOf({ ...path(true), neurons: [], features });
    expect(named(one)).toBe('1 feature of block 0: “blue”, “green”, …');
    expect(named(one, several, none)).toBe('3 features of block 0: “blue”, “green”, …');
    expect(named(none, several)).toBe('2 features of block 0: “green”, “blue”, …');
    expect(named(none)).toBe('1 feature of block 0');
    expect(nameOf(path(true))).toBe('2 neurons of block 0');
    expect(about(one)).toBe('strongest at “blue” (5 of 8), “green” (2), “red” (1)');
    expect(about(several)).toMatch(/, …$/);
    expect(about(none)).toContain('nowhere');
    expect(contextOf({ ...one, context: [token(1, '.'), token(5, ' of'), token(2, '\n'), token(3, 'A'), token(4, ' blue')] })).toEqual({ before: 'of A ', peak: 'blue' });
  });

  it('have the range of their controls', () => expect(controlRange(path(true))).toEqual({ least: 0.4, most: 0.6 }));
});
