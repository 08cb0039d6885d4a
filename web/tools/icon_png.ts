// The icon (public/icon.svg) as a PNG, for systems that take no SVG.

import { deflateSync } from 'node:zlib';

const [blue, white] = [[0x3a, 0x3f, 0x9e], [0xff, 0xff, 0xff]];
/** Samples along each side of a pixel. */
const samples = 4;

/** How opaque white is at a point of the icon's 32 × 32 units. */
function whiteness(x: number, y: number): number {
  const arc = (centre: number, radius: number) => y <= 22 && Math.abs(Math.hypot(x - centre, y - 22) - radius) <= 1.2;
  const dot = (centre: number, radius: number) => Math.hypot(x - centre, y - 22) <= radius;
  if (dot(6, 2.3) || dot(13, 2.3) || dot(26, 2.8) || arc(19.5, 6.5)) return 1;
  return arc(16, 10) ? 0.55 : 0;
}

function crc32(bytes: Buffer): number {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; ++bit) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

function chunk(kind: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(kind, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

/** Without rounded corners: systems cut them themselves. */
export function iconPng(size: number): Buffer {
  const rows = Buffer.alloc(size * (1 + 3 * size)); // each row begins with its filter: none
  for (let row = 0; row < size; ++row) {
    for (let column = 0; column < size; ++column) {
      let sum = 0;
      for (let sample = 0; sample < samples * samples; ++sample) {
        const [dx, dy] = [(sample % samples) + 0.5, Math.floor(sample / samples) + 0.5];
        sum += whiteness(((column + dx / samples) * 32) / size, ((row + dy / samples) * 32) / size);
      }
      const share = sum / (samples * samples);
      for (let channel = 0; channel < 3; ++channel) rows[row * (1 + 3 * size) + 1 + 3 * column + channel] = Math.round(blue[channel] + share * (white[channel] - blue[channel]));
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([8, 2, 0, 0, 0], 8); // 8 bits a channel, RGB
  return Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), chunk('IHDR', header), chunk('IDAT', deflateSync(rows, { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
}
