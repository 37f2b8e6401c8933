// Random numbers that are the same in every run.

/** @param {number} seed @returns {() => number} numbers below 1 (mulberry32) */
export function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let word = Math.imul(state ^ (state >>> 15), state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @param {number} size @param {number} seed @returns {Buffer<ArrayBuffer>} */
export function randomBytes(size, seed) {
  const bytes = Buffer.alloc(size);
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, size >> 2);
  let state = seed | 0 || 1;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  return bytes;
}
