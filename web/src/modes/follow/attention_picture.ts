// The picture of attention, step by step, on a canvas: the query, a row for each key, and what is added to the stream.

import { extentOf, inkOn, valueColour } from '../../lib/colour';
import { percent, value } from '../../lib/numbers';
import type { Ink } from '../whole/ink';
import { doneOf, sumAfter, type Steps } from './attention_steps';

interface Box {
  y: number;
  height: number;
}

/** Places in pixels. */
export interface Layout {
  width: number;
  height: number;
  label: number;
  strip: number;
  stripWidth: number;
  number: number;
  bar: number;
  barWidth: number;
  query: number;
  rows: Box[];
  output: number;
  delta: number;
  stream: number;
}

const [thick, thin] = [15, 7];
const [rowHeight, chosenHeight, footHeight] = [30, 84, 34];

export function layoutOf({ rows, chosen }: Steps, width: number): Layout {
  const narrow = width < 560;
  const label = narrow ? 74 : Math.min(150, 0.17 * width);
  const numbers = narrow ? 50 : 76;
  const bars = narrow ? 62 : 0.2 * width;
  const strip = label + 8;
  const number = width - numbers - bars;
  let y = 56;
  const placed = rows.map((_, index) => {
    const box = { y, height: index === chosen ? chosenHeight : rowHeight };
    y += box.height;
    return box;
  });
  y += 16;
  return { width, height: y + 3 * footHeight + 4, label, strip, stripWidth: number - strip - 8, number, bar: number + numbers, barWidth: bars, query: 24, rows: placed, output: y, delta: y + footHeight, stream: y + 2 * footHeight };
}

/** The row at a height. */
export function rowAt({ rows }: Layout, y: number): number | null {
  const index = rows.findIndex((box) => y >= box.y && y < box.y + box.height);
  return index < 0 ? null : index;
}

/** Vectors as strips, a pixel a number; each is painted once. */
export class Strips {
  #made = new Map<string, HTMLCanvasElement>();

  get(name: string, numbers: () => ArrayLike<number>, extent: number, dark: boolean): HTMLCanvasElement {
    const key = `${name} ${dark}`;
    let canvas = this.#made.get(key);
    if (!canvas) {
      const data = numbers();
      canvas = Object.assign(document.createElement('canvas'), { width: data.length, height: 1 });
      const context = canvas.getContext('2d')!;
      const image = context.createImageData(data.length, 1);
      for (let cell = 0; cell < data.length; cell++) image.data.set([...valueColour(data[cell], extent, dark), 255], 4 * cell);
      context.putImageData(image, 0, 0);
      this.#made.set(key, canvas);
    }
    return canvas;
  }
}

/** From 0 to 1, slow at both ends. */
const eased = (share: number) => share * share * (3 - 2 * share);
const part = (done: number, from: number, to: number) => Math.max(0, Math.min(1, (done - from) / (to - from)));

export class AttentionPicture {
  #strips = new Strips();
  readonly #extent: Record<'query' | 'key' | 'product' | 'value' | 'output' | 'delta' | 'stream', number>;
  /** The output after each added value. */
  readonly #sums: number[][];
  readonly #landed: number[];

  constructor(readonly steps: Steps) {
    const { walk, rows, products, adding } = steps;
    const answers = rows.flatMap(({ answer }) => (answer ? [answer] : []));
    this.#extent = {
      query: extentOf(walk.query), key: extentOf(answers.flatMap(({ key }) => key)), product: extentOf(products.flat()), value: extentOf(answers.flatMap(({ value: numbers }) => numbers)),
      output: extentOf(walk.output), delta: extentOf(walk.head_projection), stream: extentOf(walk.residual_before),
    };
    let sum = walk.output.map(() => 0);
    this.#sums = [sum, ...adding.map((index) => (sum = sum.map((number, j) => number + rows[index].contribution[j])))];
    this.#landed = walk.residual_before.map((number, channel) => number + walk.head_projection[channel]);
  }

  draw(context: CanvasRenderingContext2D, layout: Layout, time: number, ink: Ink): void {
    const { steps } = this;
    const { walk, rows, chosen } = steps;
    const done = (name: Parameters<typeof doneOf>[1]) => doneOf(steps, name, time);
    const [cells, scaled, filled, masked, softened, valued] = [done('multiply'), done('scale'), done('row'), done('mask'), done('softmax'), done('values')];
    const isValues = eased(part(valued, 0, 0.3));
    context.clearRect(0, 0, layout.width, layout.height);
    context.imageSmoothingEnabled = false;
    const text = (written: string, x: number, y: number, colour: string, { bold = false, mono = false, align = 'left' as CanvasTextAlign, size = 13, room = Infinity } = {}) => {
      context.font = `${bold ? 600 : 400} ${size}px ${mono ? ink.mono : ink.sans}`;
      context.textAlign = align;
      context.textBaseline = 'middle';
      context.fillStyle = colour;
      let shown = written;
      while (shown.length > 1 && context.measureText(shown).width > room) shown = `${shown.replace(/…$/, '').slice(0, -1)}…`;
      context.fillText(shown, x, y);
    };
    const strip = (name: string, numbers: () => ArrayLike<number>, extent: number, y: number, height: number, { colour = ink.strong, alpha = 1, cells: upTo = Infinity, smooth = false } = {}) => {
      if (alpha <= 0) return;
      const canvas = this.#strips.get(name, numbers, extent, ink.dark);
      const count = Math.min(canvas.width, upTo);
      context.globalAlpha = alpha;
      context.imageSmoothingEnabled = smooth;
      if (count > 0) context.drawImage(canvas, 0, 0, count, 1, layout.strip, y, (layout.stripWidth * count) / canvas.width, height);
      context.strokeStyle = colour;
      context.lineWidth = 1;
      context.strokeRect(layout.strip - 0.5, y - 0.5, layout.stripWidth + 1, height + 1);
      context.globalAlpha = 1;
    };

    // Titles of the columns.
    text(isValues > 0.5 ? 'value' : 'key', layout.strip, 10, isValues > 0.5 ? ink.value : ink.key, { size: 12, bold: true });
    text(scaled > 0.5 ? 'score' : 'q · k', layout.number, 10, ink.soft, { size: 12 });
    if (softened > 0) text('weight', layout.bar, 10, ink.soft, { size: 12 });
    text(`q: “${steps.word}”`, layout.label, layout.query + 8, ink.query, { bold: true, align: 'right', room: layout.label - 2 });
    strip('query', () => walk.query, this.#extent.query, layout.query, thick, { colour: ink.query });

    rows.forEach((row, index) => {
      const { y, height } = layout.rows[index];
      const isChosen = index === chosen;
      const order = steps.others.indexOf(index);
      const own = isChosen ? (time >= 1 ? 1 : 0) : part(filled, order, order + 1);
      const hidden = row.masked ? masked : 0;
      const pale = 1 - 0.7 * hidden;
      if (isChosen) {
        context.globalAlpha = 0.07;
        context.fillStyle = ink.accent;
        context.fillRect(0, y, layout.width, height);
        context.globalAlpha = 1;
      }
      const top = isChosen ? y + 26 : y + 3;
      context.globalAlpha = pale;
      text(row.word, layout.label, top + 8, row.answer ? ink.ink : ink.soft, { align: 'right', bold: isChosen, mono: row.answer !== null, room: layout.label - 2 });
      context.globalAlpha = 1;
      if (row.answer) {
        const { answer } = row;
        strip(`key ${index}`, () => answer.key, this.#extent.key, top, thick, { colour: ink.key, alpha: pale * (1 - isValues) });
        strip(`value ${index}`, () => answer.value, this.#extent.value, top, thick, { colour: ink.value, alpha: pale * isValues });
        const product = () => steps.products[index];
        const fades = 1 - isValues;
        if (isChosen) this.#multiply(context, layout, cells, time, ink, strip, text, fades);
        else if (own > 0) strip(`product ${index}`, product, this.#extent.product, top + thick + 2, thin, { alpha: 0.9 * pale * fades, cells: own * walk.head_size });
      }
      if (isValues > 0 && !row.masked) strip(`weighted ${index}`, () => row.contribution, this.#extent.output, top + (row.answer ? thick + 2 : 4), thin, { colour: ink.value, alpha: 0.9 * isValues });

      // The score, or the running sum before it.
      const middle = top + 8;
      const shown = isChosen ? cells > 0 : own >= 1 && row.answer !== null;
      if (shown && row.answer) {
        const number = isChosen && scaled < 0.5 ? sumAfter(steps, cells) : row.answer.scaled;
        context.globalAlpha = 1 - hidden;
        text(value(number, 2), layout.number, middle, ink.ink, { bold: isChosen });
        context.globalAlpha = hidden;
        if (hidden > 0) text('−∞', layout.number, middle, ink.soft);
        context.globalAlpha = 1;
      }
      if (softened > 0) {
        const room = layout.barWidth - 46;
        context.fillStyle = ink.query;
        context.fillRect(layout.bar, middle - 6, Math.max(row.masked ? 0 : 1, room * row.share * eased(softened)), 12);
        if (softened >= 0.5) text(row.masked ? '0 %' : percent(row.share), layout.width, middle, row.masked ? ink.soft : ink.ink, { align: 'right', size: 12 });
      }
    });
    this.#foot(context, layout, time, ink, strip, text);
  }

  /** The chosen key: the query comes to it, and they are multiplied cell by cell. */
  #multiply(context: CanvasRenderingContext2D, layout: Layout, cells: number, time: number, ink: Ink, strip: DrawStrip, text: DrawText, alpha: number): void {
    const { steps } = this;
    const { walk, chosen, rows } = steps;
    const { y } = layout.rows[chosen];
    const travelled = eased(Math.min(1, time));
    if (travelled === 0 || alpha === 0) return;
    strip('query', () => walk.query, this.#extent.query, layout.query + travelled * (y + 7 - layout.query), thick, { colour: ink.query, alpha });
    if (cells === 0) return;
    strip(`product ${chosen}`, () => steps.products[chosen], this.#extent.product, y + 26 + thick + 5, thick + 3, { alpha, cells });
    const size = layout.stripWidth / walk.head_size;
    const column = Math.min(walk.head_size - 1, Math.ceil(cells) - 1);
    if (size >= 30) {
      for (let cell = 0; cell < Math.floor(cells + 1e-9); cell++) {
        const number = steps.products[chosen][cell];
        context.globalAlpha = alpha;
        text(value(number, 1), layout.strip + (cell + 0.5) * size, y + 26 + thick + 14, inkOn(valueColour(number, this.#extent.product, ink.dark)), { align: 'center', size: 10 });
      }
      context.globalAlpha = 1;
    }
    if (cells >= walk.head_size) return;
    // The column at hand, and its three numbers.
    context.strokeStyle = ink.ink;
    context.lineWidth = 2;
    context.strokeRect(layout.strip + column * size - 1, y + 5, Math.max(3, size + 2), thick + 2 * thick + 14);
    const [left, right] = [walk.query[column], rows[chosen].answer!.key[column]];
    const written = `${value(left, 2)} × ${value(right, 2)} = ${value(left * right, 2)}`;
    const x = layout.strip + (column + 0.5) * size;
    context.font = `400 11px ${ink.sans}`;
    const half = context.measureText(written).width / 2 + 4;
    const at = Math.max(layout.strip + half, Math.min(layout.strip + layout.stripWidth - half, x));
    context.fillStyle = ink.card;
    context.fillRect(at - half, y + chosenHeight - 15, 2 * half, 14);
    text(written, at, y + chosenHeight - 8, ink.ink, { align: 'center', size: 11 });
  }

  /** What is summed, ΔE, and the residual stream. */
  #foot(context: CanvasRenderingContext2D, layout: Layout, time: number, ink: Ink, strip: DrawStrip, text: DrawText): void {
    const { steps } = this;
    const { walk, rows, adding } = steps;
    const done = (name: Parameters<typeof doneOf>[1]) => doneOf(steps, name, time);
    const [valued, projected, landed, others] = [done('values'), done('project'), done('stream'), done('others')];
    const narrow = layout.width < 560;
    const label = (written: string, y: number, colour: string) => text(written, layout.label, y + 8, colour, { align: 'right', bold: true, room: layout.label - 2 });
    label(narrow ? 'sum' : 'sum of values', layout.output, ink.value);
    const whole = Math.floor(valued + 1e-9);
    strip(`sum ${whole}`, () => this.#sums[whole], this.#extent.output, layout.output, thick, { colour: ink.value, alpha: valued > 0 ? 1 : 0.35 });
    if (valued > whole) {
      const index = adding[whole];
      const from = layout.rows[index].y + 20;
      strip(`weighted ${index}`, () => rows[index].contribution, this.#extent.output, from + eased(part(valued - whole, whole === 0 ? 0.3 : 0, 1)) * (layout.output - from), thin, { colour: ink.value });
    }
    label('ΔE', layout.delta, ink.accent);
    const smooth = walk.head_projection.length > layout.stripWidth;
    const delta = (y: number, alpha: number, cells = Infinity) => strip('delta', () => walk.head_projection, this.#extent.delta, y, thick, { colour: ink.accent, alpha, cells, smooth });
    delta(layout.delta, projected > 0 ? 1 : 0.35, projected * walk.head_projection.length);
    label(narrow ? 'stream' : `stream of “${steps.word}”`, layout.stream, ink.ink);
    strip('before', () => walk.residual_before, this.#extent.stream, layout.stream, thick, { smooth });
    strip('landed', () => this.#landed, this.#extent.stream, layout.stream, thick, { smooth, alpha: part(landed, 0.7, 1) });
    strip('after', () => walk.residual_after, this.#extent.stream, layout.stream, thick, { smooth, alpha: others });
    if (landed > 0 && landed < 1) delta(layout.delta + eased(landed) * footHeight, 1 - part(landed, 0.7, 1));
    if (layout.width >= 560) {
      const note = (written: string, y: number) => text(written, layout.number, y + 8, ink.soft, { size: 12, room: layout.width - layout.number });
      if (valued >= adding.length) note(`${walk.output.length} numbers`, layout.output);
      if (projected >= 1) note(`· W_O: ${walk.head_projection.length} numbers`, layout.delta);
      if (landed >= 1) note(others >= 1 ? '+ all heads’ ΔE' : '+ ΔE', layout.stream);
    }
  }
}

type DrawStrip = (name: string, numbers: () => ArrayLike<number>, extent: number, y: number, height: number, more?: { colour?: string; alpha?: number; cells?: number; smooth?: boolean }) => void;
type DrawText = (written: string, x: number, y: number, colour: string, more?: { bold?: boolean; mono?: boolean; align?: CanvasTextAlign; size?: number; room?: number }) => void;
