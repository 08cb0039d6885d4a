// Exported pictures shared by several modes.

import { barChart, pagePalette, type Drawing } from './drawing';
import { percent, tokenText } from './numbers';
import type { Candidate } from './types';

/** Next-token candidates: the model's probability of each and the probability after sampling settings. */
export function candidatesDrawing(title: string, candidates: Candidate[], marked: number | null = null): Drawing {
  const bars = candidates.map(({ id, token, probability, drawn, removed_by }) => ({
    label: tokenText(token),
    values: [probability, removed_by === null ? drawn : null],
    note: `${percent(probability)} · ${removed_by ?? percent(drawn)}`,
    marked: id === marked,
  }));
  return barChart(title, ['model', 'sampling'], bars, pagePalette());
}
