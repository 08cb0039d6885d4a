// Pictures for files of what several modes show.

import { barChart, pagePalette, type Drawing } from './drawing';
import { percent, tokenText } from './numbers';
import type { Candidate } from './types';

/** What may come next: the model's own share of each token, and what it is drawn with. */
export function candidatesDrawing(title: string, candidates: Candidate[], marked: number | null = null): Drawing {
  const bars = candidates.map(({ id, token, probability, drawn, removed_by }) => ({
    label: tokenText(token),
    values: [probability, removed_by === null ? drawn : null],
    note: `${percent(probability)} · ${removed_by ?? percent(drawn)}`,
    marked: id === marked,
  }));
  return barChart(title, ['model', 'drawn with'], bars, pagePalette());
}
