import { describe, expect, it } from 'vitest';
import { toCsv, toJson, toNpy } from './export';

describe('files', () => {
  const table = { columns: ['token', 'share'], rows: [['a,"b"', 0.5], [' line\nend', null]] as [string, number | null][] };

  it('quote CSV fields', () => {
    expect(toCsv(table)).toBe('token,share\r\n"a,""b""",0.5\r\n" line\nend",\r\n');
  });

  it('name the fields in JSON', () => {
    expect(JSON.parse(toJson(table))).toEqual([{ token: 'a,"b"', share: 0.5 }, { token: ' line\nend', share: null }]);
  });

  it('are NumPy arrays: header padded to 64 bytes, then the values', () => {
    for (const shape of [[3], [1, 3], [3, 1, 1]]) {
      const bytes = toNpy({ shape, data: new Float32Array([1, -2, 0.5]) });
      const start = bytes.byteLength - 12;
      expect(start % 64).toBe(0);
      expect(10 + bytes[8] + 256 * bytes[9]).toBe(start);
      expect(new TextDecoder('latin1').decode(bytes.subarray(1, 6))).toBe('NUMPY');
      expect(new TextDecoder().decode(bytes.subarray(10, start))).toContain(`'shape': (${shape.length === 1 ? '3,' : shape.join(', ')})`);
      expect([...new Float32Array(bytes.slice(start).buffer)]).toEqual([1, -2, 0.5]);
    }
  });
});
