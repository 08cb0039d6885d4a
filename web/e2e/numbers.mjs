// Reading numbers off the page and holding them against the API's.
import assert from 'node:assert/strict';

/** "−5.77", "1.2·10⁻⁵", "42.5 %" as a number; per cent as a share. */
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

/** The page's text is the number, rounded to the digits that it shows. */
export function assertShows(text, number, what) {
  if (/^<\s*0\.1\s*%$/.test(text.trim().replace(/\u00a0/g, ' '))) {
    assert.ok(number > 0 && number < 0.0005, `${what}: the page says ${text}, the API ${number}`);
    return;
  }
  const shown = readNumber(text);
  const decimals = (/\.(\d+)/.exec(text)?.[1] ?? '').length + (text.includes('%') ? 2 : 0);
  const exponent = text.includes('·10') ? Math.floor(Math.log10(Math.abs(number))) : 0;
  const half = 0.5 * 10 ** (exponent - decimals) * (1 + 1e-6);
  assert.ok(Math.abs(shown - number) <= half, `${what}: the page says ${text}, the API ${number}`);
}
