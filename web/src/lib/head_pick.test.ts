import { describe, expect, it } from 'vitest';
import { namedHead, pickAfter, type Shown } from './head_pick';

const examples = [
  { id: 'a', title: 'A', text: 'one mole', layer: 4, head: 1, position: 1 },
  { id: 'b', title: 'B', text: 'a hare slept', layer: 2, head: 3 },
  { id: 'c', title: 'C', text: 'no head' },
];
const shown = (changes: Partial<Shown> = {}): Shown => ({ text: 'a fox', position: 1, layer: 0, head: 0, pick: 'effect', named: false, ...changes });

describe('the head of an example', () => {
  it('is named for the example’s own word only', () => {
    expect(namedHead(examples, { text: 'one mole', position: 1 }, 1)).toEqual({ layer: 4, head: 1 });
    expect(namedHead(examples, { text: 'one mole', position: 0 }, 1)).toBeNull();
    expect(namedHead(examples, { text: 'a hare slept', position: 2 }, 2)).toEqual({ layer: 2, head: 3 });
    expect(namedHead(examples, { text: 'no head', position: 1 }, 1)).toBeNull();
    expect(namedHead(examples, { text: 'another', position: 1 }, 1)).toBeNull();
  });
});

describe('how the head is picked', () => {
  it('is what the link says, when it is opened and for another text', () => {
    expect(pickAfter(null, shown({ pick: '', layer: 3 }))).toBe('');
    expect(pickAfter(shown({ text: 'before', pick: '' }), shown())).toBe('effect');
    expect(pickAfter(shown({ text: 'before' }), shown({ pick: '', layer: 3 }))).toBe('');
  });

  it('is by hand after another head was chosen', () => {
    expect(pickAfter(shown(), shown({ layer: 2 }))).toBe('');
    expect(pickAfter(shown({ pick: '', layer: 2 }), shown({ pick: '', layer: 2, position: 0 }))).toBe('');
    expect(pickAfter(shown({ pick: '', layer: 2 }), shown({ pick: '', layer: 2, text: 'a fox slept', position: 2 }))).toBe('');
  });

  it('stays by effect for another word and a continued text', () => {
    expect(pickAfter(shown(), shown({ position: 0 }))).toBe('effect');
    expect(pickAfter(shown(), shown({ text: 'a fox slept', position: 2 }))).toBe('effect');
  });

  it('is by effect once the user asks for it', () => {
    expect(pickAfter(shown({ pick: '', layer: 2 }), shown({ layer: 2 }))).toBe('effect');
  });

  it('is by effect where an example’s word is left with its head, not with another', () => {
    const own = shown({ text: 'one mole', layer: 4, head: 1, pick: '', named: true });
    const left = { ...own, position: 0, named: false };
    expect(pickAfter(own, left)).toBe('effect');
    expect(pickAfter(own, { ...left, text: 'one mole of', position: 2 })).toBe('effect');
    expect(pickAfter(own, { ...own, position: 3, text: 'one mole of coal' })).toBe('');
    expect(pickAfter({ ...own, head: 2, named: false }, { ...left, head: 2 })).toBe('');
    expect(pickAfter(null, left)).toBe('');
  });
});
