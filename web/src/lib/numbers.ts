// Formatting of numbers: aligned in columns, a true minus sign, no false precision.

const minus = '\u2212';

/** A value of the model: `digits` decimals, fewer for large values; −∞ where masked. */
export function value(number: number | null | undefined, digits = 3): string {
  if (number === null || number === undefined || number === -Infinity) return `${minus}∞`;
  if (Number.isNaN(number)) return 'not a number';
  const size = Math.abs(number);
  if (size === 0) return (0).toFixed(digits);
  if (size >= 1e5 || size < 0.5 * 10 ** -digits) {
    const [mantissa, exponent] = size.toExponential(1).split('e');
    return `${number < 0 ? minus : ''}${mantissa}·10${superscript(Number(exponent))}`;
  }
  const places = Math.max(0, digits - Math.max(0, Math.floor(Math.log10(size))));
  return `${number < 0 ? minus : ''}${size.toFixed(places)}`;
}

function superscript(exponent: number): string {
  return String(exponent).replace(/[-0-9]/g, (character) => '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'['-0123456789'.indexOf(character)]);
}

/** A fraction between 0 and 1 as a percentage. */
export function percent(share: number): string {
  const hundredths = 100 * share;
  if (share === 0) return '0\u00a0%';
  if (hundredths < 0.05) return '<\u00a00.1\u00a0%';
  return `${hundredths >= 99.95 ? hundredths.toFixed(0) : hundredths.toFixed(1)}\u00a0%`;
}

const scales: [number, string][] = [
  [1e12, 'trillion'],
  [1e9, 'billion'],
  [1e6, 'million'],
];

/** A count in words: 175 billion, 2.4 million, 1,536. */
export function count(number: number): string {
  for (const [size, name] of scales) {
    if (number >= size) return `${significant(number / size)} ${name}`;
  }
  return Math.round(number).toLocaleString('en-US');
}

export function exactCount(number: number): string {
  return Math.round(number).toLocaleString('en-US');
}

export function bytes(number: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (number >= 1024 && unit < units.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? number : significant(number)} ${units[unit]}`;
}

/** As files and downloads are measured: 548 MB. */
export function fileSize(number: number): string {
  const [size, unit] = number >= 1e9 ? [number / 1e9, 'GB'] : number >= 1e6 ? [number / 1e6, 'MB'] : [number / 1e3, 'kB'];
  return `${unit === 'GB' ? size.toFixed(2) : Math.round(size)} ${unit}`;
}

function significant(number: number): string {
  if (number >= 100) return number.toFixed(0);
  return number >= 10 ? number.toFixed(1) : number.toFixed(2);
}

/** A token's text with its spaces, line ends and control characters made visible. */
export function tokenText(text: string): string {
  return text.replace(/ /g, '␣').replace(/\n/g, '↵').replace(/\t/g, '⇥')
    .replace(/[\u0000-\u001f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0))).replace(/\u007f/g, '␡');
}

/** A token's text as it is read aloud. */
export function tokenWord(text: string): string {
  if (text === '\n') return 'line end';
  if (text.trim() === '') return 'space';
  return text.startsWith(' ') ? text.slice(1) : text;
}
