// Changes in words.

import type { Token } from '../../lib/types';
import { tokenText } from '../../lib/numbers';
import type { Change, FreezeChange, PlaceChange, SteerChange } from './changes';

/** L2H3 → head 3 of block 2. */
export function placeName(name: string): string {
  const found = /^L(\d+)(?:H(\d+)|N(\d+)|\.(attn|mlp))?$/.exec(name);
  if (!found) return name;
  const [, layer, head, neuron, half] = found;
  if (head !== undefined) return `head ${head} of block ${layer}`;
  if (neuron !== undefined) return `neuron ${neuron} of block ${layer}`;
  if (half === 'attn') return `attention of block ${layer}`;
  return half === 'mlp' ? `feed-forward of block ${layer}` : `block ${layer}`;
}

/** “hare” (8); only the place where the text has none. */
const wordAt = (tokens: Token[], position: number) => (tokens[position] ? `“${tokenText(tokens[position].text)}” (${position})` : `position ${position}`);

/** At which words: " at “hare” (8)", " from “hare” (8) on"; nothing for every word. */
function whereInWords(positions: string, tokens: Token[]): string {
  const [, first, range, last] = /^(\d+)(-?)(\d*)$/.exec(positions) ?? [];
  if (first === undefined) return '';
  const word = wordAt(tokens, Number(first));
  if (!range) return ` at ${word}`;
  return last ? ` at ${first} to ${last}` : ` from ${word} on`;
}

function placeInWords({ place, method, factor, positions }: PlaceChange, tokens: Token[]): string {
  const how = method === 'zero' ? 'off' : method === 'mean' ? 'its mean' : `× ${factor}`;
  return `${placeName(place)}: ${how}${whereInWords(positions, tokens)}`;
}

function freezeInWords({ place, text }: FreezeChange): string {
  const whose = place === '' ? 'every head' : place.includes('H') ? placeName(place) : `each head of ${placeName(place)}`;
  return `${whose} looks where ${text ? `it does in “${text}”` : 'it did before the changes'}`;
}

/** blocks.2.hook_resid_post → 2; null for any other point. */
export function streamAfter(point: string): number | null {
  const found = /^blocks\.(\d+)\.hook_resid_post$/.exec(point);
  return found ? Number(found[1]) : null;
}

function steerInWords({ point, factor, towards, away, positions }: SteerChange, tokens: Token[]): string {
  const layer = streamAfter(point);
  const end = ({ text, position }: { text: string; position: number }) => `“${text.length > 40 ? `${text.slice(0, 39)}…` : text}” (${position})`;
  return `${layer === null ? point : `after block ${layer}`}${whereInWords(positions, tokens)}: ${factor} × towards ${end(towards)}${away ? `, away from ${end(away)}` : ''}`;
}

/** A change in words; `vocabulary` holds the texts of ids once a token was edited. */
export function describeChange(change: Change, tokens: Token[], vocabulary: string[]): string {
  const word = (position: number) => wordAt(tokens, position);
  switch (change.kind) {
    case 'place':
      return placeInWords(change, tokens);
    case 'cut':
      return `head ${change.head} of block ${change.layer}: ${word(change.query)} no longer sees ${word(change.key)}`;
    case 'token':
      return `${word(change.position)} becomes “${tokenText(vocabulary[change.id] ?? `#${change.id}`)}”`;
    case 'swap':
      return change.positions ? `${change.point} at ${change.positions}: from “${change.text}” at ${change.fromPositions}` : `${change.point}: from “${change.text}”`;
    case 'freeze':
      return freezeInWords(change);
    case 'steer':
      return steerInWords(change, tokens);
  }
}
