// Parses numbers on the page and compares them with those of the API.
import assert from 'node:assert/strict';

/** "−5.77", "1.2·10⁻⁵", "42.5 %" as a number; a percentage as a fraction. */
export function readNumber(text) {
  const plain = text.trim().replace(/\u2212/g, '-').replace(/[\s\u00a0,]/g, '');
  const scientific = /^(-?[\d.]+)·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)$/.exec(plain);
  if (scientific) {
    const exponent = [...scientific[2]].map((character) => '-0123456789'['⁻⁰¹²³⁴⁵⁶⁷⁸⁹'.indexOf(character)]).join('');
    return Number(scientific[1]) * 10 ** Number(exponent);
  }
  if (plain.endsWith('%')) return Number(plain.slice(0, -1)) / 100;
  return Number(plain);
}

/**
 * The static page computes by itself, the numbers to compare with are the native program's: both in f32, in another order
 * of sums, 2e-6 apart. Where rounding to the digits shown falls between them, the last one differs.
 */
const isOtherEngine = Boolean(process.env.HEED_STATIC);

/**
 * Asserts that a number is that of the API: the same, or of the other engine 2e-6 apart, with room for sums of such numbers.
 * `least`: how large the numbers are, at least, that it is a sum or difference of.
 */
export function assertSame(number, expected, what, least = 1e-3) {
  const apart = isOtherEngine ? 1e-5 * Math.max(Math.abs(expected), least) : 0;
  assert.ok(Math.abs(number - expected) <= apart, `${what}: ${number}, the API ${expected}`);
}

/** Asserts that the text shows the number, rounded to the digits shown. */
export function assertShows(text, number, what) {
  if (/^<\s*0\.1\s*%$/.test(text.trim().replace(/\u00a0/g, ' '))) {
    assert.ok(number > 0 && number < 0.0005, `${what}: the page says ${text}, the API ${number}`);
    return;
  }
  const shown = readNumber(text);
  const decimals = (/\.(\d+)/.exec(text)?.[1] ?? '').length + (text.includes('%') ? 2 : 0);
  const exponent = text.includes('·10') ? Math.floor(Math.log10(Math.abs(number))) : 0;
  const unit = 10 ** (exponent - decimals);
  const half = 0.5 * unit * (1 + 1e-6);
  assert.ok(Math.abs(shown - number) <= half + (isOtherEngine ? unit : 0), `${what}: the page says ${text}, the API ${number}`);
}
