// One instance of build/bench/spread-*.wasm with a separate memory, and the messages between two
// instances.

const PAGES_MAX = 65_536;

/** The product number of a message that is only echoed (spread.c). */
export const EMPTY = -1;

/**
 * A message is an ArrayBuffer with a header: the product, its tokens, the bytes after the header, whether the
 * buffer is transferred and returned in the reply, and the time for which both sides stay awake (ms).
 * Activations or outputs follow.
 */
export const HEADER_BYTES = 64;

/** @param {ArrayBuffer} buffer */
export const headerOf = (buffer) => new Int32Array(buffer, 0, 5);

/** @param {ArrayBuffer} buffer @param {number} bytes */
export const payloadOf = (buffer, bytes) => new Uint8Array(buffer, HEADER_BYTES, bytes);

/**
 * @typedef {{seed: number, type: number, cols: number, rows: number}} Matrix
 * @typedef {[number, number]} Rows first and last, of a matrix
 */

/**
 * @param {WebAssembly.Module} module
 * @param {Record<string, any>} [imports] functions that main needs
 */
export async function makeInstance(module, imports = {}) {
  const memory = new WebAssembly.Memory({ initial: 16, maximum: PAGES_MAX });
  const unused = () => {
    throw new Error('a helper called a function of main');
  };
  const env = { memory, post: unused, wait: unused, settled: unused, nothing: unused, ...imports };
  const { exports } = await WebAssembly.instantiate(module, { env });
  const wasm = /** @type {Record<string, any>} */ (exports);
  const name = wasm.start(PAGES_MAX);
  let bytes = new Uint8Array(memory.buffer);
  const self = {
    wasm,
    /** Returns a view of all memory, even after it has grown. */
    bytes: () => {
      if (bytes.buffer !== memory.buffer) bytes = new Uint8Array(memory.buffer);
      return bytes;
    },
    kernels: () => {
      const all = self.bytes();
      return new TextDecoder().decode(all.subarray(name, all.indexOf(0, name)));
    },
    /** @param {number} size @returns {number} */
    alloc: (size) => {
      const address = wasm.alloc(size);
      if (address === 0) throw new Error(`cannot allocate ${size} bytes`);
      return address;
    },
    /**
     * @param {Matrix[][]} products
     * @param {(matrix: Matrix, product: number) => Rows} rowsOf
     */
    addProducts: (products, rowsOf) => {
      products.forEach((matrices, product) => {
        for (const matrix of matrices) {
          const [first, last] = rowsOf(matrix, product);
          const { seed, type, cols } = matrix;
          if (!wasm.add_matrix(seed, type, cols, first, last)) throw new Error('out of memory');
        }
        wasm.add_product(matrices.length);
      });
    },
  };
  return self;
}
