import { describe, expect, it } from 'vitest';
import { formatChange, formatChanges, parseChanges } from './change_link';
import { describeChange } from './change_words';
import { findPoint, isCut, withChange, withoutChange, type Change } from './changes';
import { lastPositionOf, withinText } from './reach';
import { editedTokens, steerKey, textsOf, toInterventions, type Sources } from './interventions';

const swapText = 'a; b: 50 % <c> é';
const all: Change[] = [
  { kind: 'point', point: 'L2H3', method: 'zero', factor: 0, positions: '' },
  { kind: 'point', point: 'L2N17', method: 'mean', factor: 1, positions: '4-' },
  { kind: 'point', point: 'L1.attn', method: 'scale', factor: -0.5, positions: '5' },
  { kind: 'point', point: 'L0', method: 'zero', factor: 0, positions: '3-7' },
  { kind: 'cut', layer: 1, head: 4, query: 7, key: 2 },
  { kind: 'token', position: 5, id: 823 },
  { kind: 'freeze', point: '', text: '' },
  { kind: 'freeze', point: 'L2H3', text: 'x: y; 100 %!' },
  { kind: 'swap', point: 'blocks.2.hook_resid_post', positions: '3-4,6', fromPositions: '1-2,4', text: swapText },
  { kind: 'steer', point: 'blocks.1.hook_resid_post', factor: -1.5, towards: { text: 'a: b; c', position: 3 }, away: { text: '+1!', position: 0 }, positions: '2-' },
  { kind: 'steer', point: 'blocks.0.hook_resid_post', factor: 4, towards: { text: 'joy', position: 0 }, away: null, positions: '' },
  { kind: 'point', point: 'blocks.*.hook_resid_mid', method: 'scale', factor: 0.5, positions: '3-' },
  { kind: 'point', point: 'L2H3.q', method: 'zero', factor: 0, positions: '' },
  { kind: 'swap', point: 'hook_embed', positions: '', fromPositions: '', text: 'a' },
  { kind: 'steer', point: 'blocks.1.attn.hook_q', factor: 2, towards: { text: 'fox', position: 0 }, away: null, positions: '4' },
];

describe('the link', () => {
  it('round-trips', () => expect(parseChanges(formatChanges(all))).toEqual(all));
  it('is short', () => expect(formatChanges(all.slice(0, 7))).toBe('L2H3;L2N17@4-~;L1.attn@5*-0.5;L0@3-7;L1H4:7>2;@5=823;*!'));
  it('ignores invalid parts', () => expect(parseChanges('L2H3;no sense;@x=2;p:1<2:%E0%A4%A;.norm;L2N3!;b.1+x:1:a;b.1+2:1:%E0%A4%A')).toEqual([all[0]]));
});

describe('the list', () => {
  it('replaces a change of the same point and keeps its position', () => {
    const scaled: Change = { kind: 'point', point: 'L2H3', method: 'scale', factor: 2, positions: '1' };
    expect(withChange(all, scaled).map((change) => change.kind)).toEqual(all.map((change) => change.kind));
    expect(withChange(all, scaled)[0]).toBe(scaled);
  });
  it('holds a frozen head beside the same head scaled', () => expect(findPoint(withoutChange(all, all[7]), 'L2H3')).toBe(all[0]));
  it('holds several cuts of one head', () => {
    const cuts = withChange(all, { ...all[4], key: 3 } as Change);
    expect(cuts).toHaveLength(all.length + 1);
    expect([isCut(cuts, 1, 4, 7, 3), isCut(all, 1, 4, 7, 3)]).toEqual([true, false]);
  });
  it('removes a change', () => expect(withoutChange(all, all[5])).toEqual([...all.slice(0, 5), ...all.slice(6)]));
  it('replaces the strength of a direction', () => expect(withChange(all, { ...all[10], factor: 9 } as Change)).toHaveLength(all.length));
});

const sources: Sources = {
  base: 't1', tokens: 9, layers: 3, renormalise: 'keep',
  traces: new Map([[swapText, 't9'], ['x: y; 100 %!', 't8']]),
  vectors: new Map([
    [steerKey('blocks.1.hook_resid_post', { text: 'a: b; c', position: 3 }), Float32Array.of(1, 2)],
    [steerKey('blocks.1.hook_resid_post', { text: '+1!', position: 0 }), Float32Array.of(0, 4)],
    [steerKey('blocks.0.hook_resid_post', { text: 'joy', position: 0 }), Float32Array.of(0.5, 1)],
  ]),
};

describe('a text that became shorter', () => {
  it('ignores changes beyond its end', () => {
    const within = (tokens: number) => withinText(all, tokens).map(formatChange);
    expect(within(8)).toEqual(all.map(formatChange));
    expect(within(6)).toEqual(all.filter((_, index) => ![3, 4, 8].includes(index)).map(formatChange));
    expect(within(1)).toEqual(['L2H3', '*!', formatChange(all[7]), formatChange(all[10]), 'L2H3.q', formatChange(all[13])]);
  });
  it('has a last position for each change', () => expect(all.map(lastPositionOf)).toEqual([-1, 4, 5, 7, 7, 5, -1, -1, 6, 2, -1, 3, -1, -1, 4]));
});

describe('the interventions sent to the server', () => {
  it('joins the cuts of a head', () => {
    const cuts = parseChanges('L1H4:7>2;L1H4:6>2;L0H0:3>1');
    expect(toInterventions(cuts, { ...sources, renormalise: 'renormalise' })).toEqual([
      { kind: 'cut', layer: 1, head: 4, edges: [[7, 2], [6, 2]], renormalise: true },
      { kind: 'cut', layer: 0, head: 0, edges: [[3, 1]], renormalise: true },
    ]);
  });
  it('names points, positions and traces', () => {
    const asked = toInterventions(all.slice(0, 9), sources);
    expect(asked[0]).toEqual({ kind: 'ablate', point: 'L2H3' });
    expect(asked[1]).toEqual({ kind: 'mean', point: 'L2N17', positions: '4-', from: 't1' });
    expect(asked[2]).toEqual({ kind: 'scale', point: 'L1.attn', positions: '5', factor: -0.5 });
    expect(asked.slice(5, 8)).toEqual([0, 1, 2].map((layer) => ({ kind: 'freeze', point: `L${layer}`, positions: '0-8', from: 't1' })));
    expect(asked[8]).toEqual({ kind: 'freeze', point: 'L2H3', positions: '0-8', from: 't8' });
    expect(asked[9]).toEqual({ kind: 'swap', point: 'blocks.2.hook_resid_post', positions: '3-4,6', from: 't9', from_positions: '1-2,4' });
    expect(asked).toHaveLength(10);
  });
  it('adds a direction: one word minus another', () => expect(toInterventions(all.slice(9, 11), sources)).toEqual([
    { kind: 'add', point: 'blocks.1.hook_resid_post', positions: '2-', vector: [-1.5, 3] },
    { kind: 'add', point: 'blocks.0.hook_resid_post', vector: [2, 4] },
  ]));
  it('names points of any kind', () => {
    const traces = new Map([['a', 't5']]);
    expect(toInterventions(all.slice(11, 14), { ...sources, traces })).toEqual([
      { kind: 'scale', point: 'blocks.*.hook_resid_mid', positions: '3-', factor: 0.5 },
      { kind: 'ablate', point: 'L2H3.q' },
      { kind: 'swap', point: 'hook_embed', from: 't5' },
    ]);
  });
  it('edits tokens', () => expect(editedTokens([1, 2, 3], parseChanges('@1=9;@7=4'))).toEqual([1, 9, 3]));
  it('lists each text once', () => expect(textsOf([...all, { ...all[8], positions: '1' } as Change])).toEqual(['x: y; 100 %!', swapText, 'a: b; c', '+1!', 'joy', 'a', 'fox']));
});

it('describes changes in words', () => {
  const tokens = Array.from({ length: 8 }, (_, id) => ({ id, text: ` w${id}` }));
  const words = all.map((change) => describeChange(change, tokens, []));
  expect(words[0]).toBe('block 2, head 3: off');
  expect(words[1]).toBe('block 2, neuron 17: mean from “w4” (4) on');
  expect(words[2]).toBe('block 1, attention: × -0.5 at “w5” (5)');
  expect(words[3]).toBe('block 0: off at 3 to 7');
  expect(words[4]).toBe('block 1, head 4: “w7” (7) no longer attends to “w2” (2)');
  expect(words[6]).toBe('every head: attention frozen');
  expect(words[14]).toBe('blocks.1.attn.hook_q at “w4” (4): 2 × towards “fox” (0)');
  expect(words[13]).toBe('hook_embed: from “a”');
  expect(describeChange(all[4], tokens.slice(0, 5), [])).toBe('block 1, head 4: position 7 no longer attends to “w2” (2)');
  expect(words[10]).toBe('after block 0: 4 × towards “joy” (0)');
});
