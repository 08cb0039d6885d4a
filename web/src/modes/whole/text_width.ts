// Widths of texts, measured once for each font: they grow with its size.

const mostMeasured = 4000;
const measuredSize = 100; // pixels
const widths = new Map<string, Map<string, number>>();
let ruler: CanvasRenderingContext2D | null = null;

/** Pixels for each pixel of the font's size. */
export function relativeWidth(text: string, weight: number, family: string): number {
  const font = `${weight} ${measuredSize}px ${family}`;
  let known = widths.get(font);
  if (!known) widths.set(font, (known = new Map()));
  let width = known.get(text);
  if (width === undefined) {
    if (known.size >= mostMeasured) known.clear();
    ruler ??= document.createElement('canvas').getContext('2d')!;
    if (ruler.font !== font) ruler.font = font;
    width = ruler.measureText(text).width / measuredSize;
    known.set(text, width);
  }
  return width;
}

/** The first of the texts that fits in `room` pixels; the last one is cut if it must be, and left out where little remains. */
export function fitting(texts: string[], room: number, widthOf: (text: string) => number): string {
  const whole = texts.find((text) => widthOf(text) <= room);
  if (whole !== undefined) return whole;
  const letters = [...texts[texts.length - 1]];
  const each = widthOf(letters.join('')) / Math.max(1, letters.length);
  const kept = Math.floor(room / each) - 1;
  return kept >= 3 ? `${letters.slice(0, kept).join('').trimEnd()}…` : '';
}
