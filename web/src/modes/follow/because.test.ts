import { describe, expect, it } from 'vitest';
import type { CausePath } from '../../lib/types';
import { controlRange, verdict } from './because';

const token = (id: number, text: string) => ({ id, text });
const path = (cause: boolean): CausePath => ({
  from: 1, token: token(5, ' blue'), layer: 0, position: 2, neurons: [3, 4], share: 0.1, without: 0.2, instead: token(7, ' deep'), instead_probability: 0.5, controls: [0.6, 0.4, 0.5], control: 0.4, cause,
});
const said = (...causes: boolean[]) => verdict({ position: 3, token: token(6, ' soft'), probability: 0.5, graph_neurons: 9, paths: causes.map(path) }, 'soft').replace(/\u00a0/g, ' ');

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

  it('have the range of their controls', () => expect(controlRange(path(true))).toEqual({ least: 0.4, most: 0.6 }));
});
