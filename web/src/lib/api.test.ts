import { describe, expect, it } from 'vitest';
import { address, idsOf, readArray } from './api';
import { EventParser } from './events';

function answer(values: number[], shape: string, dtype = 'f32'): Response {
  return new Response(new Float32Array(values).buffer, { headers: { 'X-Heed-Dtype': dtype, 'X-Heed-Shape': shape } });
}

describe('a text without a tokenizer', () => {
  it('is a list of token ids', () => {
    expect(idsOf(' 464, 3139 #286\n')).toEqual([464, 3139, 286]);
    expect(() => idsOf('464 hello')).toThrow('“hello” is not a token id');
  });
});

describe('binary responses', () => {
  it('have a shape and values', async () => {
    const array = await readArray(answer([1, 2, 3, 4, 5, -Infinity], '2,3'));
    expect(array.shape).toEqual([2, 3]);
    expect([...array.data]).toEqual([1, 2, 3, 4, 5, -Infinity]);
  });

  it('are rejected when shape, type and length disagree', async () => {
    await expect(readArray(answer([1, 2, 3], '2,2'))).rejects.toThrow('expected 4 f32 values');
    await expect(readArray(answer([1], '1', 'f16'))).rejects.toThrow('expected 1 f32');
  });
});

describe('addresses', () => {
  it('leave out undefined parameters and escape the others', () => {
    expect(address('/api/x', { a: 1, b: undefined, c: null, d: 'é&', e: 0 })).toBe('/api/x?a=1&d=%C3%A9%26&e=0');
    expect(address('/api/x')).toBe('/api/x');
  });
});

describe('server-sent events', () => {
  it('are parsed from chunks split anywhere', () => {
    const text = ': heartbeat\n\nevent: token\ndata: {"a":1}\n\nevent: done\r\ndata: x\r\ndata: y\r\n\r\nevent: half';
    for (let cut = 0; cut <= text.length; ++cut) {
      const parser = new EventParser();
      expect([...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))]).toEqual([
        { event: 'token', data: '{"a":1}' },
        { event: 'done', data: 'x\ny' },
      ]);
    }
  });
});
