// What the picture says: names of parts and cells, and the computation of a cell's number.

import { exactCount, tokenText, tokenWord, value } from '../../lib/numbers';
import { capitalised, headInWords, headName } from '../../lib/statistics';
import type { PointElement, Token } from '../../lib/types';
import { placeIn, type Cell, type Found } from './find';
import { headOfSource, parametersOf, type Part } from './parts';
import type { Setting } from './store';

const sizes = new WeakMap<Part, string>();

/** "96 × 768" */
export function sizeOf(part: Part): string {
  let size = sizes.get(part);
  if (size === undefined) sizes.set(part, (size = `${exactCount(part.rows)} × ${exactCount(part.columns)}`));
  return size;
}

/** The name in the breadcrumb and in the outline. */
export function nameOf(part: Part, path: string[]): string {
  const { layer, head } = placeIn(path);
  if (part.kind === 'head') return headName(layer, head);
  if (part.kind === 'model') return 'Model';
  return part.kind === 'block' || part.kind === 'entry' || part.kind === 'exit' ? part.title : part.term;
}

/** Rows of vectors and patterns are tokens. */
function token(setting: Setting, row: number): Token | undefined {
  return setting.tokens[setting.first + row];
}

function quoted(one: Token | undefined): string {
  return one ? `“${tokenWord(one.text)}”` : '';
}

export function rowName(part: Part, setting: Setting, candidates: Token[], row: number): string {
  if (part.source?.from === 'weights') return part.source.of === 'unembedding' ? tokenText(candidates[row]?.text ?? '') : String(row);
  return tokenText(token(setting, row)?.text ?? '');
}

export function columnName(part: Part, setting: Setting, column: number): string {
  return part.source?.from === 'pattern' ? tokenText(token(setting, column)?.text ?? '') : String(column);
}

/** What a cell is: "query of “fox”, number 17". */
export function cellName({ part, path }: Found, setting: Setting, candidates: Token[], { row, column }: Cell): string {
  const { head } = placeIn(path);
  const source = part.source;
  if (part.kind === 'tokens') return `${quoted(token(setting, row))}, token ${setting.first + row + 1} of ${setting.tokens.length}`;
  if (source?.from === 'pattern') return `attention of ${quoted(token(setting, row))} to ${quoted(token(setting, column))}`;
  if (source?.from === 'weights') {
    if (source.of === 'unembedding') return `W_U of ${quoted(candidates[row])}, channel ${column}`;
    const [from, to] = { query: ['channel', 'number'], key: ['channel', 'number'], value: ['channel', 'number'], 'head-output': ['number', 'channel'], output: ['number', 'channel'], gate: ['channel', 'neuron'], up: ['channel', 'neuron'], down: ['neuron', 'channel'] }[source.of];
    return `weight in ${part.term} from ${from} ${row} to ${to} ${column}`;
  }
  if (source?.from === 'activation') {
    const unit = /hook_(pre|pre_linear|post)$/.test(source.point) ? 'neuron' : head >= 0 && source.point !== 'attn.hook_result' ? 'number' : 'channel';
    return `${part.term} of ${quoted(token(setting, row))}, ${unit} ${column}`;
  }
  return part.title;
}

export function cellValue(part: Part, number: number | null): string {
  if (number === null) return 'not loaded';
  return part.source?.from === 'pattern' ? `${(100 * number).toFixed(1)} %` : value(number, 4);
}

/** The element of the trace that a cell shows, for its computation; weights have none. */
export function elementOf({ part, path }: Found, setting: Setting, { row, column }: Cell): PointElement | null {
  const { layer, head } = placeIn(path);
  const position = setting.first + row;
  if (part.source?.from === 'pattern') return { point: `blocks.${layer}.attn.hook_pattern`, layer, head, position, key: setting.first + column };
  if (part.source?.from !== 'activation') return null;
  const { point, inBlock, ofHead } = part.source;
  if (!inBlock) return { point, position, index: column };
  const element: PointElement = { point: `blocks.${layer}.${point}`, layer, position, index: column };
  if (ofHead) return { ...element, head: headOfSource(part.source, setting.shape, head) };
  // All heads' outputs side by side.
  if (point === 'attn.hook_z') return { ...element, head: Math.floor(column / setting.shape.head_size), index: column % setting.shape.head_size };
  return element;
}

/** What a part is and how large, for the outline and the line under the picture. */
export function partLine(part: Part, path: string[]): string {
  const { layer, head } = placeIn(path);
  const parameters = parametersOf(part);
  const owns = parameters > 0 ? `${exactCount(parameters)} parameters` : '';
  const what = part.kind === 'head' ? capitalised(headInWords(layer, head)) : ['model', 'block', 'entry', 'exit'].includes(part.kind) ? '' : part.title;
  const size = part.rows > 0 && part.kind === 'matrix' ? `${sizeOf(part)} numbers` : '';
  return [what, size, owns].filter(Boolean).join(' · ');
}
