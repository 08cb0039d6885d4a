// Colours of the picture, from the design tokens, and text that fits its room.

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

const mostMeasured = 4000;
const widths = new Map<string, number>();

function widthOf(context: CanvasRenderingContext2D, text: string): number {
  const key = `${context.font}|${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > mostMeasured) widths.clear();
    width = context.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

/** The first of the texts that fits in `room` pixels; the last one is cut if it must be, and left out where little remains. */
export function fitting(context: CanvasRenderingContext2D, texts: string[], room: number): string {
  const whole = texts.find((text) => widthOf(context, text) <= room);
  if (whole !== undefined) return whole;
  const letters = [...texts[texts.length - 1]];
  const each = widthOf(context, letters.join('')) / Math.max(1, letters.length);
  const kept = Math.floor(room / each) - 1;
  return kept >= 3 ? `${letters.slice(0, kept).join('').trimEnd()}…` : '';
}

export { widthOf };
