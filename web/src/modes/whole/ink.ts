// Colours and fonts of the picture, from the design tokens.

export interface Ink {
  paper: string;
  card: string;
  sunken: string;
  line: string;
  strong: string;
  ink: string;
  soft: string;
  accent: string;
  accentSoft: string;
  accentInk: string;
  query: string;
  key: string;
  value: string;
  plain: string;
  sans: string;
  mono: string;
  dark: boolean;
}

export function readInk(element: HTMLElement, dark: boolean): Ink {
  const style = getComputedStyle(element);
  const token = (name: string) => style.getPropertyValue(name).trim();
  return {
    paper: token('--paper'), card: token('--card'), sunken: token('--sunken'), line: token('--line'), strong: token('--line-strong'),
    ink: token('--ink'), soft: token('--ink-soft'), accent: token('--accent'), accentSoft: token('--accent-soft'), accentInk: token('--accent-ink'),
    query: token('--query'), key: token('--key'), value: token('--value'), plain: token('--ink-soft'),
    sans: token('--sans'), mono: token('--mono'), dark,
  };
}
