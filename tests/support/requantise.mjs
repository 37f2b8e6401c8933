// Writes a GGUF file again with its matrices in another type: as float32, to have a model that
// others are measured from, or as Q4_K, which no file of the repository holds. Reads F32 and Q8_0.

const F32 = 0;
const Q8_0 = 8;
const Q4_K = 12;

/** Bytes of a metadata value of fixed size, by its type's number. */
const VALUE_BYTES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const STRING = 8;
const ARRAY = 9;

/** Reads a GGUF directory front to back. */
class Reader {
  /** @param {Buffer} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  u32() {
    this.at += 4;
    return this.bytes.readUInt32LE(this.at - 4);
  }
  u64() {
    this.at += 8;
    return Number(this.bytes.readBigUInt64LE(this.at - 8));
  }
  string() {
    const length = this.u64();
    this.at += length;
    return this.bytes.toString('utf8', this.at - length, this.at);
  }
  /** @param {number} type */
  skipValue(type) {
    if (type === STRING) {
      this.string();
    } else if (type === ARRAY) {
      const item = this.u32();
      for (let count = this.u64(); count > 0; count--) this.skipValue(item);
    } else {
      this.at += VALUE_BYTES[type];
    }
  }
}

/** @param {number} half the bits of a float16 @returns {number} */
function floatOf(half) {
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  const size = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
  return half & 0x8000 ? -size : size;
}

/** The nearest float16 of a number from 0 to 65504. @param {number} value @returns {number} bits */
function halfOf(value) {
  const exponent = Math.max(-14, Math.floor(Math.log2(value || 1e-9)));
  const fraction = Math.round((value / 2 ** exponent) * 1024);
  return exponent === -14 ? fraction : (exponent + 14) * 1024 + fraction;
}

/** @param {Buffer} data @param {number} type @param {number} count @returns {Float32Array} */
function decode(data, type, count) {
  const values = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    const block = (i >> 5) * 34;
    values[i] =
      type === F32
        ? data.readFloatLE(i * 4)
        : floatOf(data.readUInt16LE(block)) * data.readInt8(block + 2 + (i & 31));
  }
  return values;
}

/**
 * A super-block of 256 values: 8 parts of 32, each with a step and an offset of 6 bits, the least
 * value of a part at code 0 and the largest at 15.
 * @param {Float32Array} values @param {Buffer} out 144 bytes, zero
 */
function encodeQ4K(values, out) {
  const lows = [];
  const steps = [];
  for (let part = 0; part < 8; part++) {
    const of = values.subarray(part * 32, part * 32 + 32);
    lows.push(Math.max(0, -Math.min(...of)));
    steps.push((Math.max(...of) + lows[part]) / 15);
  }
  const [stepBits, lowBits] = [steps, lows].map((list) => halfOf(Math.max(...list) / 63));
  const [stepUnit, lowUnit] = [floatOf(stepBits), floatOf(lowBits)];
  out.writeUInt16LE(stepBits, 0);
  out.writeUInt16LE(lowBits, 2);
  const six = (/** @type {number} */ value, /** @type {number} */ unit) =>
    unit ? Math.min(63, Math.round(value / unit)) : 0;
  for (let part = 0; part < 8; part++) {
    const step = six(steps[part], stepUnit);
    const low = six(lows[part], lowUnit);
    if (part < 4) {
      out[4 + part] |= step;
      out[8 + part] |= low;
    } else {
      out[8 + part] |= (step & 15) | ((low & 15) << 4);
      out[part] |= (step >> 4) << 6;
      out[4 + part] |= (low >> 4) << 6;
    }
    for (let i = 0; i < 32 && step > 0; i++) {
      const above = (values[part * 32 + i] + lowUnit * low) / (stepUnit * step);
      const code = Math.max(0, Math.min(15, Math.round(above)));
      out[16 + (part >> 1) * 32 + i] |= code << ((part & 1) * 4);
    }
  }
}

/** @param {Float32Array} values @param {number} type @returns {Buffer} */
function encode(values, type) {
  if (type === F32) return Buffer.from(values.buffer);
  const out = Buffer.alloc((values.length / 256) * 144);
  for (let i = 0; i < values.length / 256; i++)
    encodeQ4K(values.subarray(i * 256, i * 256 + 256), out.subarray(i * 144, i * 144 + 144));
  return out;
}

/** @param {number[]} numbers each as 64 bits */
const u64s = (...numbers) => Buffer.from(BigUint64Array.from(numbers, BigInt).buffer);
/** @param {number[]} numbers each as 32 bits */
const u32s = (...numbers) => Buffer.from(Uint32Array.from(numbers).buffer);
/** @param {number} size */
const aligned = (size) => Math.ceil(size / 32) * 32;

/**
 * @param {Buffer} file a GGUF file, aligned to 32, with tensors in F32 and Q8_0
 * @param {'f32' | 'q4_k'} matrices what matrices become; with q4_k the embedding stays as it is
 * @returns {Buffer}
 */
export function requantise(file, matrices) {
  const reader = new Reader(file);
  reader.at = 8;
  const count = reader.u64();
  for (let keys = reader.u64(); keys > 0; keys--) {
    reader.string();
    reader.skipValue(reader.u32());
  }
  const metadata = file.subarray(0, reader.at);
  const tensors = Array.from({ length: count }, () => {
    const name = reader.string();
    const dims = Array.from({ length: reader.u32() }, () => reader.u64());
    return { name, dims, type: reader.u32(), offset: reader.u64() };
  });
  const base = aligned(reader.at);
  let offset = 0;
  const entries = [];
  const datas = [];
  for (const tensor of tensors) {
    const values = tensor.dims.reduce((product, dim) => product * dim);
    const bytes = tensor.type === F32 ? values * 4 : (values / 32) * 34;
    const from = file.subarray(base + tensor.offset, base + tensor.offset + bytes);
    const isKept =
      tensor.dims.length === 1 || (matrices === 'q4_k' && tensor.name === 'token_embd.weight');
    const type = isKept ? tensor.type : matrices === 'f32' ? F32 : Q4_K;
    if (tensor.type !== F32 && tensor.type !== Q8_0) throw new Error(`${tensor.name}: what type`);
    const data = isKept ? from : encode(decode(from, tensor.type, values), type);
    const { name, dims } = tensor;
    entries.push(u64s(name.length), Buffer.from(name), u32s(dims.length), u64s(...dims));
    entries.push(u32s(type), u64s(offset));
    datas.push(data, Buffer.alloc(aligned(data.length) - data.length));
    offset += aligned(data.length);
  }
  const head = Buffer.concat([metadata, ...entries]);
  return Buffer.concat([head, Buffer.alloc(aligned(head.length) - head.length), ...datas]);
}
