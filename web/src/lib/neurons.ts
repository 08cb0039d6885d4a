// What switching single neurons off does to the likeliest next word, against a control.

import type { NeuronEffects } from './types';

/** Less of a probability is called nothing; as the server has it for `matters`. */
const least = 0.005;

/** The control: the probability where as active a neuron with another output vector is taken away. */
export function controlOf({ controls }: Pick<NeuronEffects, 'controls'>): { mean: number; low: number; high: number } {
  const all = controls.map(({ without }) => without);
  return { mean: all.reduce((sum, one) => sum + one, 0) / all.length, low: Math.min(...all), high: Math.max(...all) };
}

/** The neurons of the list that take more of the probability than every control moves it. */
export function deciding({ neurons, controls, probability }: Pick<NeuronEffects, 'neurons' | 'controls' | 'probability'>): number[] {
  const moved = Math.max(0, ...controls.map(({ without }) => Math.abs(probability - without)));
  return neurons.filter(({ without }) => probability - without >= least && probability - without > moved).map(({ neuron }) => neuron);
}

/** In the order of their direct effects, whichever of them was asked for first. */
export const byEffect = (neurons: NeuronEffects['neurons']): NeuronEffects['neurons'] => [...neurons].sort((a, b) => b.direct - a.direct);
