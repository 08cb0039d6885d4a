import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { glossary, termOf } from './glossary';

/** The rows of docs/notation.md whose first cell is a term: its meaning, without code marks. */
function notation(): Map<string, string> {
  const text = readFileSync(new URL('../../../docs/notation.md', import.meta.url), 'utf8');
  const terms = text.slice(text.indexOf('## Terms'), text.indexOf('## Attention'));
  const rows = [...terms.matchAll(/^\| ([^|]+) \| ([^|]+) \|/gm)].map(([, name, means]) => [name, means] as const);
  return new Map(rows.flatMap(([names, means]) => names.split(', ').map((name) => [name, means.replaceAll('`', '')])));
}

describe('the glossary', () => {
  it('has at least thirty terms, each once', () => {
    const names = glossary.map(({ name }) => name);
    expect(names.length).toBeGreaterThanOrEqual(30);
    expect(new Set(names).size).toBe(names.length);
  });

  it('defines every term in the words of docs/notation.md', () => {
    const written = notation();
    expect(Object.fromEntries(glossary.map(({ name, means }) => [name, means]))).toEqual(Object.fromEntries(glossary.map(({ name }) => [name, written.get(name)])));
  });

  it('finds a term in any number and case, and no other', () => {
    expect(termOf('Tokens')?.name).toBe('token');
    expect(termOf('queries')?.name).toBe('query');
    expect(termOf('layer norm')?.name).toBe('norm');
    expect(termOf('adds')).toBeUndefined();
    const phrases = glossary.flatMap(({ name, also = [] }) => [name, ...also].map((phrase) => [phrase, name]));
    for (const [phrase, name] of phrases) expect(termOf(phrase)?.name, phrase).toBe(name);
  });
});
