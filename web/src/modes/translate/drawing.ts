// The two texts with their links as an SVG file.

import { letters, wholePicture, type Drawing, type Palette } from '../../lib/drawing';
import { percent, tokenText } from '../../lib/numbers';
import type { PairMeta } from '../../lib/pair_types';
import type { NumberArray, Word } from '../../lib/types';
import { linkPath, type Box } from './layout';
import { rowOf } from './words';

const [margin, top, size, height, gap, between, letter] = [24, 56, 15, 30, 8, 150, 9.1]; // pixels
const least = 0.04;

function boxesOf(words: Word[], y: number): Box[] {
  let left = margin;
  return words.map(({ text }) => {
    const width = Math.max(34, [...tokenText(text)].length * letter + 14);
    const box = { left, top: y, width, height };
    left += width + gap;
    return box;
  });
}

const widthOf = (boxes: Box[]): number => (boxes.length === 0 ? 0 : boxes.at(-1)!.left + boxes.at(-1)!.width - margin);

export function alignmentDrawing(title: string, { source, target }: Pick<PairMeta, 'source' | 'target'>, cross: NumberArray, palette: Palette): Drawing {
  const rows = [boxesOf(source.words, top), boxesOf(target.words, top + height + between)];
  const width = Math.max(420, ...rows.map(widthOf)) + 2 * margin;
  for (const row of rows) {
    const shift = (width - 2 * margin - widthOf(row)) / 2;
    for (const box of row) box.left += shift;
  }
  const [above, below] = rows;
  const ends = `x1="0" y1="${top + height}" x2="0" y2="${top + height + between}"`;
  const parts = [
    `<defs><linearGradient id="link" gradientUnits="userSpaceOnUse" ${ends}><stop offset="0" stop-color="${palette.key}"/><stop offset="1" stop-color="${palette.query}"/></linearGradient></defs>`,
    letters(margin, 28, `Attention between the texts: ${title}`, palette.ink, 'font-size="15" font-weight="600"'),
  ];
  below.forEach((to, t) => rowOf(cross, t).forEach((weight, s) => {
    if (weight >= least) parts.push(`<path d="${linkPath(to, above[s], 'lines')}" fill="none" stroke="url(#link)" stroke-linecap="round" stroke-width="${(1 + 8 * weight).toFixed(2)}" opacity="${Math.min(1, 0.22 + 0.85 * weight).toFixed(2)}"/>`);
  }));
  const word = (box: Box, text: string) => {
    parts.push(`<rect x="${box.left.toFixed(1)}" y="${box.top}" width="${box.width.toFixed(1)}" height="${height}" rx="7" fill="${palette.paper}" stroke="${palette.line}"/>`);
    parts.push(letters(box.left + box.width / 2, box.top + 20, tokenText(text), palette.ink, `text-anchor="middle" font-family="ui-monospace, DejaVu Sans Mono, monospace" font-size="${size}"`));
  };
  above.forEach((box, index) => word(box, source.words[index].text));
  below.forEach((box, index) => {
    word(box, target.words[index].text);
    parts.push(letters(box.left + box.width / 2, box.top + height + 16, percent(Math.max(...rowOf(cross, index))), palette.soft, 'text-anchor="middle" font-size="11"'));
  });
  return wholePicture(width, top + 2 * height + between + 34, palette, parts);
}
