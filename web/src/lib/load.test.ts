import { describe, expect, it } from 'vitest';
import { Loaded } from './load.svelte';

/** A reply that comes when the test says so. */
function reply<T>() {
  let come!: (value: T) => void;
  let fail!: (error: Error) => void;
  const promise = new Promise<T>((resolve, reject) => ([come, fail] = [resolve, reject]));
  return { promise, come, fail };
}

describe('what is loaded', () => {
  it('is not taken for another subject, neither while that is loading nor where its reply comes late', async () => {
    let neuron = 7;
    const contexts = new Loaded<string>(() => `0 ${neuron}`);
    const first = reply<string>();
    const taken = contexts.from(first.promise);
    // Nothing is asked about the next one yet: its index is still on its way.
    neuron = 8;
    first.come('of 7');
    await taken;
    expect(contexts.value).toBeUndefined();
    expect([contexts.last, contexts.isFormer]).toEqual(['of 7', true]);

    const second = reply<string>();
    const next = contexts.from(second.promise);
    expect([contexts.value, contexts.loading]).toEqual([undefined, true]);
    second.come('of 8');
    await next;
    expect([contexts.value, contexts.isFormer, contexts.loading]).toEqual(['of 8', false, false]);
    neuron = 7;
    expect(contexts.value).toBeUndefined();
  });

  it('fails for its own subject alone', async () => {
    let neuron = 7;
    const contexts = new Loaded<string>(() => neuron);
    await contexts.from(Promise.reject(new Error('no corpus')));
    expect(contexts.failure).toBe('No corpus');
    neuron = 8;
    expect(contexts.failure).toBeNull();
    await contexts.from(Promise.resolve('of 8'));
    neuron = 7;
    expect(contexts.failure).toBeNull();
  });

  it('keeps the last value of one subject while the next is loading, and ignores what was asked before', async () => {
    const rows = new Loaded<number>();
    await rows.from(Promise.resolve(1));
    const [slow, quick] = [reply<number>(), reply<number>()];
    const both = [rows.from(slow.promise), rows.from(quick.promise)];
    expect([rows.value, rows.loading]).toEqual([1, true]);
    quick.come(3);
    slow.come(2);
    await Promise.all(both);
    expect([rows.value, rows.loading]).toEqual([3, false]);
  });

  it('is marked as former while it waits, and no longer where nothing is asked for or the reply has come', async () => {
    const rows = new Loaded<number>();
    await rows.from(Promise.resolve(1));
    rows.wait();
    expect([rows.value, rows.loading]).toEqual([1, true]);
    rows.rest();
    expect(rows.loading).toBe(false);
    const next = reply<number>();
    const taken = rows.from(next.promise);
    rows.rest();
    expect(rows.loading).toBe(true);
    next.come(2);
    await taken;
    expect([rows.value, rows.loading]).toEqual([2, false]);
  });
});
