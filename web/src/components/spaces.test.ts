// Svelte drops a space at the edge of a block or an element: "nats. {/if}All" is shown as "nats.All". Such a space has to
// be written as {' '}.

import { readdirSync, readFileSync } from 'node:fs';
import { parse, type AST } from 'svelte/compiler';
import { expect, it } from 'vitest';

type Node = AST.Fragment['nodes'][number];
const inline = new Set(['span', 'strong', 'em', 'b', 'i', 'code', 'small', 'mark', 'a', 'sub', 'sup']);

const fragmentsOf = (node: Node): AST.Fragment[] =>
  ['fragment', 'consequent', 'alternate', 'body', 'fallback'].map((name) => (node as unknown as Record<string, AST.Fragment | null | undefined>)[name]).filter((one) => one?.type === 'Fragment') as AST.Fragment[];
const flows = (node: Node) => ['IfBlock', 'EachBlock'].includes(node.type) || (node.type === 'RegularElement' && inline.has(node.name));
/** Whether something is shown beside a space, without one of its own there. */
function isBeside(node: Node | undefined, side: 'before' | 'after'): boolean {
  if (!node) return false;
  if (node.type === 'Text') return node.data.trim() !== '' && !(side === 'before' ? /\s$/ : /^\s/).test(node.data);
  return node.type === 'ExpressionTag' || flows(node);
}

/** The texts of which a space at an edge is lost. */
function lostSpaces(source: string): string[] {
  const found: string[] = [];
  function walk({ nodes }: AST.Fragment, before?: Node, after?: Node) {
    nodes.forEach((node, index) => {
      const [left, right] = [nodes[index - 1] ?? before, nodes[index + 1] ?? after];
      for (const inner of fragmentsOf(node)) {
        if (!flows(node)) {
          walk(inner);
          continue;
        }
        const [first, last] = [inner.nodes[0], inner.nodes.at(-1)];
        if (first?.type === 'Text' && /^ +\S/.test(first.data) && isBeside(left, 'before')) found.push(first.raw.trim().slice(0, 40));
        if (last?.type === 'Text' && /\S +$/.test(last.data) && isBeside(right, 'after')) found.push(last.raw.trim().slice(-40));
        walk(inner, left, right);
      }
    });
  }
  walk(parse(source, { modern: true }).fragment);
  return found;
}

it('finds a space that is lost, and no other', () => {
  expect(lostSpaces('<p>{#if a}nats. {/if}All</p>')).toEqual(['nats.']);
  expect(lostSpaces('<p>{b}{#if a}<span> yours</span>{/if}</p>')).toEqual(['yours']);
  expect(lostSpaces("<p>{#if a}nats.{' '}{/if}All {#if b}of them{/if} <span>x</span></p>")).toEqual([]);
});

it('no component loses a space', () => {
  const root = new URL('../', import.meta.url);
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.svelte'));
  expect(files.length).toBeGreaterThan(100);
  const lost = files.flatMap((name) => lostSpaces(readFileSync(new URL(name, root), 'utf8')).map((text) => `${name}: ${text}`));
  expect(lost).toEqual([]);
}, 60_000); // it compiles every component
