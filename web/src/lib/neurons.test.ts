import { describe, expect, it } from 'vitest';
import { byEffect, controlOf, deciding } from './neurons';

const neuron = (index: number, without: number, direct = 0) => ({ neuron: index, activation: 1, direct, without });

describe('neurons that are switched off', () => {
  it('decide where they take more than every control moves', () => {
    const controls = [{ neuron: 1, without: 0.52 }, { neuron: 2, without: 0.49 }];
    expect(deciding({ probability: 0.5, controls, neurons: [neuron(7, 0.4), neuron(8, 0.485), neuron(9, 0.6)] })).toEqual([7]);
  });
  it('decide nothing below half a percentage point', () => {
    expect(deciding({ probability: 0.5, controls: [{ neuron: 1, without: 0.5 }], neurons: [neuron(7, 0.4951)] })).toEqual([]);
    expect(deciding({ probability: 0.5, controls: [{ neuron: 1, without: 0.5 }], neurons: [neuron(7, 0.4949)] })).toEqual([7]);
  });
  it('have a control with a mean and its ends', () => {
    expect(controlOf({ controls: [{ neuron: 1, without: 0.25 }, { neuron: 2, without: 0.75 }] })).toEqual({ mean: 0.5, low: 0.25, high: 0.75 });
  });
  it('are listed by direct effect', () => {
    expect(byEffect([neuron(1, 0, 0.1), neuron(2, 0, 0.4), neuron(3, 0, 0.2)]).map((one) => one.neuron)).toEqual([2, 3, 1]);
  });
});
