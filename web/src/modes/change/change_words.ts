// Changes in words.

import type { Token } from '../../lib/types';
import { tokenWord } from '../../lib/numbers';
import { headInWords } from '../../lib/statistics';
import type { Change, FreezeChange, PointChange, SteerChange } from './changes';

/** L2H3 → block 2, head 3. */
export function pointLabel(name: string): string {
  const found = /^L(\d+)(?:H(\d+)|N(\d+)|\.(attn|mlp))?$/.exec(name);
  if (!found) return name;
  const [, layer, head, neuron, half] = found;
  if (head !== undefined) return headInWords(Number(layer), Number(head));
  if (neuron !== undefined) return `block ${layer}, neuron ${neuron}`;
  if (half === 'attn') return `block ${layer}, attention`;
  return half === 'mlp' ? `block ${layer}, feed-forward` : `block ${layer}`;
}

/** “hare” (8), or "position 8" beyond the text. */
const wordAt = (tokens: Token[], position: number) => (tokens[position] ? `“${tokenWord(tokens[position].text)}” (${position})` : `position ${position}`);

/** " at “hare” (8)", " from “hare” (8) on"; '' for all positions. */
function whereInWords(positions: string, tokens: Token[]): string {
  const [, first, range, last] = /^(\d+)(-?)(\d*)$/.exec(positions) ?? [];
  if (first === undefined) return '';
  const word = wordAt(tokens, Number(first));
  if (!range) return ` at ${word}`;
  return last ? ` at ${first} to ${last}` : ` from ${word} on`;
}

function pointInWords({ point, method, factor, positions }: PointChange, tokens: Token[]): string {
  const how = method === 'zero' ? 'off' : method === 'mean' ? 'mean' : `× ${factor}`;
  return `${pointLabel(point)}: ${how}${whereInWords(positions, tokens)}`;
}

function freezeInWords({ point, text }: FreezeChange): string {
  const whose = point === '' ? 'every head' : point.includes('H') ? pointLabel(point) : `all heads of ${pointLabel(point)}`;
  return `${whose}: attention frozen${text ? ` to that in “${text}”` : ''}`;
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
    case 'point':
      return pointInWords(change, tokens);
    case 'cut':
      return `${headInWords(change.layer, change.head)}: ${word(change.query)} no longer attends to ${word(change.key)}`;
    case 'token':
      return `${word(change.position)} becomes “${tokenWord(vocabulary[change.id] ?? `#${change.id}`)}”`;
    case 'swap':
      return change.positions ? `${change.point} at ${change.positions}: from “${change.text}” at ${change.fromPositions}` : `${change.point}: from “${change.text}”`;
    case 'freeze':
      return freezeInWords(change);
    case 'steer':
      return steerInWords(change, tokens);
  }
}
