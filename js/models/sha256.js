// js/models/sha256.js — SHA-256 (FIPS 180-4) of bytes that arrive in pieces. Web Crypto accepts
// only complete messages, and its state cannot survive a reload.

/**
 * @param {number} bits the fractional bits of a square or cube root
 * @param {(prime: number) => number} root
 * @param {number} count
 */
function fractions(bits, root, count) {
  const words = new Int32Array(count);
  for (let prime = 2, found = 0; found < count; prime++) {
    let isPrime = true;
    for (let divisor = 2; divisor * divisor <= prime; divisor++) {
      if (prime % divisor === 0) isPrime = false;
    }
    if (isPrime) words[found++] = (root(prime) % 1) * 2 ** bits;
  }
  return words;
}

const START = fractions(32, Math.sqrt, 8);
const ROUNDS = fractions(32, Math.cbrt, 64);
const BLOCK_BYTES = 64;

/** A hash that accepts bytes in pieces. `state` can be stored between whole blocks. */
export class Sha256 {
  #words = START.slice();
  #schedule = new Int32Array(64);
  #rest = new Uint8Array(BLOCK_BYTES);
  /** The number of bytes hashed so far. */
  size = 0;

  /** @returns {number[]} the state after a whole number of blocks */
  get state() {
    return [...this.#words];
  }

  /**
   * @param {number[]} state
   * @param {number} size the number of bytes that it covers, in whole blocks
   */
  static resume(state, size) {
    const hash = new Sha256();
    hash.#words = Int32Array.from(state);
    hash.size = size;
    return hash;
  }

  /** @param {Uint8Array} bytes */
  update(bytes) {
    let at = 0;
    const held = this.size % BLOCK_BYTES;
    this.size += bytes.byteLength;
    if (held > 0) {
      at = Math.min(BLOCK_BYTES - held, bytes.byteLength);
      this.#rest.set(bytes.subarray(0, at), held);
      if (held + at < BLOCK_BYTES) return this;
      this.#block(new DataView(this.#rest.buffer), 0);
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (; at + BLOCK_BYTES <= bytes.byteLength; at += BLOCK_BYTES) this.#block(view, at);
    this.#rest.set(bytes.subarray(at));
    return this;
  }

  /** @returns {string} 64 hexadecimal digits; afterwards, the hash does not accept more bytes */
  hex() {
    const { size } = this;
    const padding = new Uint8Array(((119 - (size % BLOCK_BYTES)) % BLOCK_BYTES) + 9);
    padding[0] = 0x80;
    const view = new DataView(padding.buffer);
    view.setUint32(padding.byteLength - 8, Math.floor(size / 2 ** 29));
    view.setUint32(padding.byteLength - 4, (size * 8) % 2 ** 32);
    this.update(padding);
    return Array.from(this.#words, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  /** @param {DataView} view @param {number} at */
  #block(view, at) {
    const w = this.#schedule;
    const k = ROUNDS;
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(at + 4 * i);
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15];
      const y = w[i - 2];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    const sums = this.#words;
    let a = sums[0];
    let b = sums[1];
    let c = sums[2];
    let d = sums[3];
    let e = sums[4];
    let f = sums[5];
    let g = sums[6];
    let h = sums[7];
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    sums[0] += a;
    sums[1] += b;
    sums[2] += c;
    sums[3] += d;
    sums[4] += e;
    sums[5] += f;
    sums[6] += g;
    sums[7] += h;
  }
}

const CHECKSUM_DIGITS = 32;

/** @param {Uint8Array<ArrayBuffer>} bytes of a chunk @returns {Promise<string>} the first half of their SHA-256 */
export async function checksum(bytes) {
  const { subtle } = globalThis.crypto ?? {}; // missing in insecure contexts
  if (!subtle) return new Sha256().update(bytes).hex().slice(0, CHECKSUM_DIGITS);
  const found = new Uint8Array(await subtle.digest('SHA-256', bytes));
  const digits = Array.from(found, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return digits.slice(0, CHECKSUM_DIGITS);
}

/** @param {string} text @returns {string} 64 hexadecimal digits */
export const hashText = (text) => new Sha256().update(new TextEncoder().encode(text)).hex();
