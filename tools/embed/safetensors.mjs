// Reads safetensors files: a length, a JSON header, then the tensors' bytes
// (https://github.com/huggingface/safetensors, "Format").

const HEADER_BYTES_MAX = 100_000_000; // the format's own limit

/** @typedef {{type: string, shape: number[], bytes: Uint8Array}} Tensor shape: outermost first */

/**
 * @param {Uint8Array} file
 * @returns {Map<string, Tensor>} by name; their bytes are views into the file
 */
export function readSafetensors(file) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const headerBytes = file.byteLength >= 8 ? Number(view.getBigUint64(0, true)) : 0;
  if (headerBytes < 2 || headerBytes > HEADER_BYTES_MAX || headerBytes + 8 > file.byteLength) {
    throw new Error(
      `safetensors: invalid header size ${headerBytes} in a file of ${file.byteLength} bytes`,
    );
  }
  const data = file.subarray(8 + headerBytes);
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + headerBytes)));
  const tensors = new Map();
  for (const [name, { dtype, shape, data_offsets: place }] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const [from, to] = place;
    if (!(from >= 0 && from <= to && to <= data.byteLength)) {
      throw new Error(`safetensors: ${name} extends beyond the end of the file`);
    }
    tensors.set(name, { type: dtype, shape, bytes: data.subarray(from, to) });
  }
  return tensors;
}
