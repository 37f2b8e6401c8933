// Writes GGUF files of version 3 (ggml's GGUF specification): metadata and F32
// tensors.

const ALIGNMENT = 32;
const VERSION = 3;
const types = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 };

/** @typedef {'u32' | 'i32' | 'f32' | 'bool' | 'string'} Kind */
/** @typedef {{name: string, shape: number[], bytes: Uint8Array}} Weights shape: outermost first */

/** @param {number} value */
function u64(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

/** @param {number} value */
function u32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** @param {string} text */
function string(text) {
  const bytes = Buffer.from(text);
  return Buffer.concat([u64(bytes.length), bytes]);
}

/** @type {Record<Kind, (value: any) => Buffer>} */
const encoders = {
  u32,
  i32: (value) => u32(value >>> 0),
  f32: (value) => Buffer.from(new Float32Array([value]).buffer),
  bool: (value) => Buffer.from([value ? 1 : 0]),
  string,
};

/** Collects the directory and the tensors after it. */
export class GgufWriter {
  /** @type {Buffer[]} */
  #pairs = [];
  /** @type {Weights[]} */
  #tensors = [];

  /** @param {string} key @param {Kind} kind @param {unknown} value */
  set(key, kind, value) {
    this.#pairs.push(Buffer.concat([string(key), u32(types[kind]), encoders[kind](value)]));
  }

  /** @param {string} key @param {Kind} kind of each item @param {unknown[]} values */
  setList(key, kind, values) {
    const head = [string(key), u32(types.array), u32(types[kind]), u64(values.length)];
    this.#pairs.push(Buffer.concat([...head, ...values.map(encoders[kind])]));
  }

  /** @param {Weights} tensor with little-endian F32 bytes */
  add(tensor) {
    const wanted = 4 * tensor.shape.reduce((product, size) => product * size, 1);
    if (tensor.bytes.byteLength !== wanted) {
      throw new Error(`${tensor.name} has ${tensor.bytes.byteLength} bytes, must have ${wanted}`);
    }
    this.#tensors.push(tensor);
  }

  /** @returns {Uint8Array} the file */
  finish() {
    const counts = [u64(this.#tensors.length), u64(this.#pairs.length)];
    const head = [Buffer.from('GGUF'), u32(VERSION), ...counts, ...this.#pairs];
    const data = [];
    let offset = 0;
    for (const { name, shape, bytes } of this.#tensors) {
      // GGUF lists sizes innermost first; 0 is the type's id (F32)
      const sizes = [u32(shape.length), ...shape.toReversed().map(u64)];
      head.push(string(name), ...sizes, u32(0), u64(offset));
      const padding = Buffer.alloc(-bytes.byteLength & (ALIGNMENT - 1));
      data.push(bytes, padding);
      offset += bytes.byteLength + padding.length;
    }
    const directory = Buffer.concat(head);
    return Buffer.concat([directory, Buffer.alloc(-directory.length & (ALIGNMENT - 1)), ...data]);
  }
}
