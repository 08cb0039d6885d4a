// What the picture shows, in the page's link: a part or cell (`at`), expanded blocks (`open`) and the station (`step`).

import { page } from '../../lib/state.svelte';
import type { Cell } from './find';

export function writeLink(changes: Record<string, string>): void {
  const extra = { ...page.view.extra, ...changes };
  for (const [name, text] of Object.entries(extra)) if (text === '') delete extra[name];
  if (JSON.stringify(extra) !== JSON.stringify(page.view.extra)) page.view.extra = extra;
}

export function writeExpanded(layers: Set<number>): void {
  writeLink({ open: [...layers].sort((a, b) => a - b).join(',') });
}

export function readExpanded(layers: number): Set<number> {
  return new Set((page.view.extra.open ?? '').split(',').filter((layer) => /^\d+$/.test(layer)).map(Number).filter((layer) => layer < layers));
}

export function cellText({ row, column }: Cell): string {
  return `${row}.${column}`;
}

/** The path of a link, and its cell: "b3/attention/h1/q/5.17". */
export function readPlace(text: string | undefined): { path: string[]; cell: Cell | null } {
  const path = (text ?? '').split('/').filter(Boolean);
  const cell = /^(\d+)\.(\d+)$/.exec(path[path.length - 1] ?? '');
  return { path, cell: cell ? { row: Number(cell[1]), column: Number(cell[2]) } : null };
}
