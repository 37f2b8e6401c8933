// Writes small GGUF files with given tensors, for tests of `wick quantize`.

import { f32, pair, string, types, u32, u64 } from './gguf_bytes.mjs';

const sizes = { F32: 4, F16: 2 };
const ids = { F32: 0, F16: 1 };

/** @param {number} value @returns {number} the bits of the nearest half-precision float */
export function halfOf(value) {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size === Number.POSITIVE_INFINITY) return sign | 0x7c00;
  const exponent = Math.max(-14, Math.floor(Math.log2(size || 1e-9)));
  const fraction = Math.round((size / 2 ** exponent) * 1024);
  return sign | (exponent === -14 ? fraction : (exponent + 14) * 1024 + fraction);
}

/**
 * @typedef {{name: string, type: 'F32' | 'F16', dims: number[], values: Float32Array}} Tensor
 * @param {Record<string, string | number | Float32Array>} metadata numbers become u32, arrays of one item f32
 * @param {Tensor[]} tensors
 */
export function weightsFile(metadata, tensors) {
  const pairs = Object.entries(metadata).map(([key, value]) => {
    if (typeof value === 'string') return pair(key, types.string, string(value));
    if (typeof value === 'number') return pair(key, types.u32, u32(value));
    return pair(key, types.f32, f32(value[0]));
  });
  const padded = (/** @type {number} */ bytes) => Math.ceil(bytes / 32) * 32;
  let offset = 0;
  const entries = tensors.map(({ name, type, dims, values }) => {
    const entry = [string(name), u32(dims.length), ...dims.map(u64), u32(ids[type]), u64(offset)];
    offset += padded(values.length * sizes[type]);
    return Buffer.concat(entry);
  });
  const head = [Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(pairs.length)];
  const directory = Buffer.concat([...head, ...pairs, ...entries]);
  const data = tensors.map(({ type, values }) => {
    const bytes = Buffer.alloc(padded(values.length * sizes[type]));
    values.forEach((value, i) => {
      if (type === 'F32') bytes.writeFloatLE(value, 4 * i);
      else bytes.writeUInt16LE(halfOf(value), 2 * i);
    });
    return bytes;
  });
  const gap = Buffer.alloc(padded(directory.length) - directory.length);
  return Buffer.concat([directory, gap, ...data]);
}
