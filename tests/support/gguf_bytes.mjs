// Encodes the parts of GGUF files as bytes, for tests that write such files.

export const types = { u32: 4, f32: 6, bool: 7, string: 8, array: 9 };

/** @param {number | bigint} value */
export function u64(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

/** @param {number} value */
export function u32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** @param {number} value */
export function f32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}

/** @param {string} text */
export const string = (text) => Buffer.concat([u64(Buffer.byteLength(text)), Buffer.from(text)]);

/** @param {string} key @param {number} type @param {Buffer[]} value */
export const pair = (key, type, ...value) => Buffer.concat([string(key), u32(type), ...value]);
