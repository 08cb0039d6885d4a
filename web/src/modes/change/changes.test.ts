import { describe, expect, it } from 'vitest';
import { describeChange, editedTokens, formatChanges, parseChanges, textsOfSwaps, toInterventions, withChange, withoutChange, type Change } from './changes';

const all: Change[] = [
  { kind: 'place', place: 'L2H3', method: 'zero', factor: 0 },
  { kind: 'place', place: 'L2N17', method: 'mean', factor: 1 },
  { kind: 'place', place: 'L1.attn', method: 'scale', factor: -0.5 },
  { kind: 'place', place: 'L0', method: 'zero', factor: 0 },
  { kind: 'cut', layer: 1, head: 4, query: 7, key: 2 },
  { kind: 'token', position: 5, id: 823 },
  { kind: 'swap', point: 'blocks.2.hook_resid_post', positions: '3-4,6', fromPositions: '1-2,4', text: 'a; b: 50 % <c> é' },
];

describe('the link', () => {
  it('reads what it wrote', () => expect(parseChanges(formatChanges(all))).toEqual(all));
  it('is short', () => expect(formatChanges(all.slice(0, 6))).toBe('L2H3;L2N17~;L1.attn*-0.5;L0;L1H4:7>2;@5=823'));
  it('leaves out what it cannot read', () => expect(parseChanges('L2H3;nonsense;@x=2;p:1<2:%E0%A4%A;L1.norm')).toEqual([all[0]]));
});

describe('the list', () => {
  it('replaces a change of the same place where it stands', () => {
    const scaled: Change = { kind: 'place', place: 'L2H3', method: 'scale', factor: 2 };
    expect(withChange(all, scaled).map((change) => change.kind)).toEqual(all.map((change) => change.kind));
    expect(withChange(all, scaled)[0]).toBe(scaled);
  });
  it('holds several cuts of one head', () => expect(withChange(all, { ...all[4], key: 3 } as Change)).toHaveLength(8));
  it('takes a change out', () => expect(withoutChange(all, all[5])).toEqual([...all.slice(0, 5), all[6]]));
});

describe('what the server is asked', () => {
  it('gathers the cuts of a head', () => {
    const cuts = parseChanges('L1H4:7>2;L1H4:6>2;L0H0:3>1');
    expect(toInterventions(cuts, new Map(), 'renormalise')).toEqual([
      { kind: 'cut', layer: 1, head: 4, edges: [[7, 2], [6, 2]], renormalise: true },
      { kind: 'cut', layer: 0, head: 0, edges: [[3, 1]], renormalise: true },
    ]);
  });
  it('names places and traces', () => {
    const asked = toInterventions(all, new Map([[(all[6] as { text: string }).text, 't9']]), 'keep');
    expect(asked[0]).toEqual({ kind: 'ablate', place: 'L2H3' });
    expect(asked[1]).toEqual({ kind: 'mean', place: 'L2N17' });
    expect(asked[2]).toEqual({ kind: 'scale', place: 'L1.attn', factor: -0.5 });
    expect(asked[5]).toEqual({ kind: 'swap', place: 'blocks.2.hook_resid_post', positions: '3-4,6', from: 't9', from_positions: '1-2,4' });
    expect(asked).toHaveLength(6);
  });
  it('edits tokens', () => expect(editedTokens([1, 2, 3], parseChanges('@1=9;@7=4'))).toEqual([1, 9, 3]));
  it('lists the texts to trace once', () => expect(textsOfSwaps([all[6], { ...all[6], positions: '1' } as Change])).toHaveLength(1));
});

it('says changes in words', () => {
  const tokens = Array.from({ length: 8 }, (_, id) => ({ id, text: ` w${id}` }));
  expect(describeChange(all[0], tokens, [])).toBe('head 3 of block 2: off');
  expect(describeChange(all[4], tokens, [])).toBe('head 4 of block 1: “␣w7” (7) no longer sees “␣w2” (2)');
});
