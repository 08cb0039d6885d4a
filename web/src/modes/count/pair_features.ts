// What an encoder and a decoder are made of, in words.

import type { Stack, StackedModel } from '../../lib/stacks';

const positionWords: Record<Stack['positions'], string> = { learned: 'learned positions', rotary: 'rotary positions', sinusoidal: 'sinusoidal positions', relative: 'positions as biases of the scores, by distance', none: 'no positions' };

export function featuresOf({ encoder, decoder, shared_embedding }: StackedModel): string[] {
  const last = decoder ?? encoder;
  const norm = last.norm === 'rms' ? 'RMS norms' : 'layer norms';
  const place = { pre: ' before what reads them', post: ' after what they sum' };
  return [
    `${norm}${last.norm_placement ? place[last.norm_placement] : ''}`,
    positionWords[encoder.positions],
    `${last.activation_label}${last.gated ? ' with gates' : ''}`,
    ...(last.biases.query ? [] : ['no biases']),
    ...(decoder ? [shared_embedding ? `one embedding for both texts${last.unembedding === 'tied' ? ' and the output' : ''}` : 'an embedding for each text'] : ['no mask']),
  ];
}
