// SHA-256 of bytes that come in pieces (FIPS 180-4); the browser's own hashes a whole buffer alone.

/** The fractional parts of cube (or square) roots of the first primes, as 32 bits. */
function rootBits(count: number, root: (prime: number) => number): Uint32Array {
  const primes: number[] = [];
  for (let candidate = 2; primes.length < count; ++candidate) if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate);
  return Uint32Array.from(primes, (prime) => (root(prime) % 1) * 2 ** 32);
}

const rounds = rootBits(64, Math.cbrt);

export class Sha256 {
  #state = rootBits(8, Math.sqrt);
  #words = new Uint32Array(64);
  #block = new Uint8Array(64);
  #held = 0;
  #length = 0;

  update(bytes: Uint8Array): this {
    this.#length += bytes.length;
    let at = 0;
    if (this.#held > 0) {
      at = Math.min(64 - this.#held, bytes.length);
      this.#block.set(bytes.subarray(0, at), this.#held);
      this.#held += at;
      if (this.#held < 64) return this;
      this.#mix(this.#block, 0);
    }
    for (; at + 64 <= bytes.length; at += 64) this.#mix(bytes, at);
    this.#held = bytes.length - at;
    this.#block.set(bytes.subarray(at));
    return this;
  }

  /** In hexadecimal. Call it once. */
  digest(): string {
    const bits = this.#length * 8;
    const padding = new Uint8Array(this.#held < 56 ? 64 - this.#held : 128 - this.#held);
    padding[0] = 0x80;
    const end = new DataView(padding.buffer);
    end.setUint32(padding.length - 8, Math.floor(bits / 2 ** 32));
    end.setUint32(padding.length - 4, bits % 2 ** 32);
    this.update(padding);
    return [...this.#state].map((word) => word.toString(16).padStart(8, '0')).join('');
  }

  #mix(bytes: Uint8Array, at: number): void {
    const w = this.#words;
    for (let i = 0; i < 16; ++i, at += 4) w[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
    for (let i = 16; i < 64; ++i) {
      const [x, y] = [w[i - 15], w[i - 2]];
      w[i] = w[i - 16] + w[i - 7]
        + (((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3))
        + (((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10));
    }
    let [a, b, c, d, e, f, g, h] = this.#state;
    for (let i = 0; i < 64; ++i) {
      const first = (h + (((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))) + ((e & f) ^ (~e & g)) + rounds[i] + w[i]) | 0;
      const second = ((((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + first) | 0;
      d = c;
      c = b;
      b = a;
      a = (first + second) | 0;
    }
    const state = this.#state;
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
  }
}
