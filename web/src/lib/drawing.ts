// SVG files of what the page shows as a canvas or as HTML elements.

/** An SVG file: its text and its size in pixels. */
export interface Drawing {
  text: string;
  width: number;
  height: number;
}

export interface Palette {
  paper: string;
  ink: string;
  soft: string;
  line: string;
  accent: string;
  key: string;
  query: string;
  pale: string;
}

/** The colours of the current theme. */
export function pagePalette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const read = (token: string) => style.getPropertyValue(token).trim();
  return { paper: read('--card'), ink: read('--ink'), soft: read('--ink-soft'), line: read('--line'), accent: read('--accent'), key: read('--key'), query: read('--query'), pale: read('--line-strong') };
}

const sans = 'system-ui, sans-serif';
const mono = 'ui-monospace, DejaVu Sans Mono, monospace';
const monoWidth = 0.602; // of a letter, in its size

export const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

export function wholePicture(width: number, height: number, palette: Palette, parts: string[]): Drawing {
  const text = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${sans}" font-size="12"><rect width="${width}" height="${height}" fill="${palette.paper}"/>${parts.join('')}</svg>`;
  return { text, width, height };
}

export function letters(x: number, y: number, content: string, fill: string, more = ''): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="${fill}" xml:space="preserve" ${more}>${escaped(content)}</text>`;
}

export interface Bar {
  label: string;
  /** One for each series; null draws no bar. */
  values: (number | null)[];
  note: string;
  marked?: boolean;
}

/** Rows of horizontal bars, one for each series, on one scale; a negative value is drawn by its magnitude. */
export function barChart(title: string, series: string[], bars: Bar[], palette: Palette): Drawing {
  const [width, labels, notes, rowHeight, top] = [640, 150, 120, 12 + 9 * series.length, 58];
  const most = Math.max(1e-12, ...bars.flatMap(({ values }) => values.map((value) => Math.abs(value ?? 0))));
  const room = width - labels - notes - 40;
  const colours = [palette.pale, palette.accent];
  const colour = (index: number) => (series.length === 1 ? palette.accent : colours[index % 2]);
  const parts = [letters(16, 24, title, palette.ink, 'font-size="15" font-weight="600"')];
  series.forEach((name, index) => {
    parts.push(`<rect x="${labels + 24 + 130 * index}" y="37" width="14" height="7" rx="3" fill="${colour(index)}"/>`, letters(labels + 44 + 130 * index, 45, name, palette.soft));
  });
  bars.forEach((bar, row) => {
    const y = top + row * rowHeight;
    const middle = y + rowHeight / 2 + 4;
    parts.push(letters(labels + 14, middle, bar.label, bar.marked ? palette.query : palette.ink, `text-anchor="end" font-family="${mono}"${bar.marked ? ' font-weight="700"' : ''}`));
    bar.values.forEach((value, index) => {
      if (value !== null) parts.push(`<rect x="${labels + 24}" y="${y + 6 + 9 * index}" width="${Math.max(1, (room * Math.abs(value)) / most).toFixed(1)}" height="7" rx="3" fill="${colour(index)}"/>`);
    });
    parts.push(letters(width - 16, middle, bar.note, palette.soft, 'text-anchor="end"'));
  });
  return wholePicture(width, top + bars.length * rowHeight + 14, palette, parts);
}

export interface ShadedToken {
  text: string;
  /** 0 to 1; null: not attended to. */
  weight: number | null;
  written?: boolean;
  marked?: boolean;
}

/** Wrapped tokens, shaded by weight. */
export function shadedText(title: string, tokens: ShadedToken[], palette: Palette): Drawing {
  const [width, size, gap, lineHeight, top] = [720, 14, 4, 30, 46];
  const parts = [letters(16, 26, title, palette.ink, 'font-size="15" font-weight="600"')];
  let x = 16;
  let y = top;
  for (const { text, weight, written, marked } of tokens) {
    const wide = [...text].length * size * monoWidth + 8;
    if (x + wide > width - 16 && x > 16) [x, y] = [16, y + lineHeight];
    const shade = weight === null ? 0 : 0.1 + 0.8 * Math.sqrt(Math.min(1, weight));
    parts.push(`<rect x="${x.toFixed(1)}" y="${y}" width="${wide.toFixed(1)}" height="24" rx="5" fill="${palette.key}" fill-opacity="${weight === null ? 0 : (0.45 * shade).toFixed(3)}" stroke="${marked ? palette.query : palette.line}" stroke-width="${marked ? 2 : written ? 1 : 0}"/>`);
    parts.push(letters(x + 4, y + 17, text, marked ? palette.query : written ? palette.accent : palette.ink, `font-family="${mono}" font-size="${size}"${written ? ' font-weight="600"' : ''}`));
    x += wide + gap;
  }
  return wholePicture(width, y + lineHeight + 12, palette, parts);
}

export interface Curve {
  name: string;
  values: (number | null)[];
  colour: string;
  width: number;
  opacity?: number;
  dots?: boolean;
}

/** Round numbers from `low` to `high`, about `count` of them. */
export function ticks(low: number, high: number, count: number): number[] {
  const rough = (high - low) / count;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, index) => (first + index) * step);
}

/** Lines over steps with their axes and names. */
export function lineChart(title: string, steps: number[], curves: Curve[], palette: Palette, format: (value: number) => string): Drawing {
  const [width, height] = [760, 360];
  const box = { left: 70, right: 20, top: 66, bottom: 34 };
  const known = curves.flatMap(({ values }) => values.filter((value): value is number => value !== null && Number.isFinite(value)));
  const low = known.reduce((least, value) => Math.min(least, value), Infinity);
  const high = known.reduce((most, value) => Math.max(most, value), -Infinity);
  const [first, last] = [steps[0] ?? 0, steps.at(-1) ?? 1];
  const x = (step: number) => box.left + ((step - first) / (last - first || 1)) * (width - box.left - box.right);
  const y = (value: number) => height - box.bottom - ((value - low) / (high - low || 1)) * (height - box.top - box.bottom);
  const parts = [letters(16, 26, title, palette.ink, 'font-size="15" font-weight="600"')];
  for (const tick of ticks(low, high, 5)) {
    parts.push(`<line x1="${box.left}" x2="${width - box.right}" y1="${y(tick).toFixed(1)}" y2="${y(tick).toFixed(1)}" stroke="${palette.line}"/>`, letters(box.left - 8, y(tick) + 4, format(tick), palette.soft, 'text-anchor="end"'));
  }
  for (const tick of ticks(first, last, 8)) parts.push(letters(x(tick), height - 12, tick.toLocaleString('en-US'), palette.soft, 'text-anchor="middle"'));
  let legend = box.left;
  for (const { name, values, colour, width: thickness, opacity = 1, dots } of curves) {
    const points = values.flatMap((value, index) => (value === null || !Number.isFinite(value) ? [] : [[x(steps[index]), y(value)]]));
    parts.push(`<polyline fill="none" stroke="${colour}" stroke-width="${thickness}" stroke-opacity="${opacity}" stroke-linejoin="round" points="${points.map(([px, py]) => `${px.toFixed(1)},${py.toFixed(1)}`).join(' ')}"/>`);
    if (dots) parts.push(...points.map(([px, py]) => `<circle cx="${px.toFixed(1)}" cy="${py.toFixed(1)}" r="3.5" fill="${colour}" stroke="${palette.paper}"/>`));
    parts.push(`<line x1="${legend}" x2="${legend + 20}" y1="46" y2="46" stroke="${colour}" stroke-width="${Math.max(2, thickness)}" stroke-opacity="${opacity}"/>`, letters(legend + 26, 50, name, palette.soft));
    legend += 44 + 7 * name.length;
  }
  return wholePicture(width, height, palette, parts);
}
