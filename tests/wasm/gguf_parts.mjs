// GGUF files made of others: in parts, and with a longer header. No checks: what it is given, heed wrote.
import { readFileSync } from 'node:fs';

const alignment = 32;
const sizes = [1, 1, 2, 2, 4, 4, 4, 1, null, null, 8, 8, 8]; // of a value, by its type; 8: a string, 9: an array

const u32 = (value) => Buffer.from(new Uint32Array([value]).buffer);
const u64 = (value) => Buffer.from(new BigUint64Array([BigInt(value)]).buffer);
const text = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);
const padding = (size) => Buffer.alloc((alignment - (size % alignment)) % alignment);

/** { entries: bytes of the metadata, count: of its entries, tensors: [{ info, data }] }; `info` ends before the offset. */
export function readGguf(file) {
  const bytes = readFileSync(file);
  let at = 8;
  const number = () => Number(bytes.readBigUInt64LE((at += 8) - 8));
  const skip = (type) => {
    const size = type === 8 ? number() : sizes[type];
    at += size;
  };
  const [tensorCount, count] = [number(), number()];
  const begin = at;
  for (let entry = 0; entry < count; ++entry) {
    skip(8);
    const type = bytes.readUInt32LE((at += 4) - 4);
    if (type !== 9) {
      skip(type);
      continue;
    }
    const element = bytes.readUInt32LE((at += 4) - 4);
    for (let left = number(); left > 0; --left) skip(element);
  }
  const entries = bytes.subarray(begin, at);
  const tensors = Array.from({ length: tensorCount }, () => {
    const from = at;
    skip(8);
    const rank = bytes.readUInt32LE((at += 4) - 4);
    at += 8 * rank + 4;
    return { info: bytes.subarray(from, at), offset: number() };
  });
  const data = at + padding(at).length;
  return { entries, count, tensors: tensors.map(({ info, offset }, index) => ({ info, data: bytes.subarray(data + offset, index + 1 < tensors.length ? data + tensors[index + 1].offset : bytes.length) })) };
}

/** `more`: further entries of text or of 16-bit numbers, by their keys. */
export function ggufBytes({ entries, count, tensors }, more = {}) {
  const added = Object.entries(more).map(([key, value]) => Buffer.concat([text(key), typeof value === 'string' ? Buffer.concat([u32(8), text(value)]) : Buffer.concat([u32(2), Buffer.from(new Uint16Array([value]).buffer)])]));
  let offset = 0;
  const infos = tensors.map(({ info, data }) => {
    const described = Buffer.concat([info, u64(offset)]);
    offset += data.length + padding(data.length).length;
    return described;
  });
  const header = Buffer.concat([Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(count + added.length), entries, ...added, ...infos]);
  return Buffer.concat([header, padding(header.length), ...tensors.flatMap(({ data }) => [data, padding(data.length)])]);
}

/** The same model in two files, by their names. */
export function ggufParts(file, stem) {
  const { entries, count, tensors } = readGguf(file);
  const half = Math.floor(tensors.length / 2);
  return {
    [`${stem}-00001-of-00002.gguf`]: ggufBytes({ entries, count, tensors: tensors.slice(0, half) }, { 'split.no': 0, 'split.count': 2 }),
    [`${stem}-00002-of-00002.gguf`]: ggufBytes({ entries: Buffer.alloc(0), count: 0, tensors: tensors.slice(half) }, { 'split.no': 1, 'split.count': 2 }),
  };
}
