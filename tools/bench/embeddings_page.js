// Gives Wick and transformers.js the same methods in a page (embeddings.html). embeddings.mjs serves
// the imported files.

/** @param {string} url @returns {Promise<any>} */
const load = (url) => import(url);

/**
 * @param {(texts: string[]) => Promise<ArrayLike<number>[]>} embed
 * @param {string[]} texts
 * @returns {Promise<{ms: number, vectors: number[][]}>}
 */
async function timed(embed, texts) {
  const start = performance.now();
  const vectors = await embed(texts);
  const ms = performance.now() - start;
  return { ms, vectors: vectors.map((vector) => Array.from(vector)) };
}

class Wick {
  /** @type {import('../../js/index.js').Engine | undefined} */
  #engine;

  /** @param {{url: string, threads: number}} wanted */
  async load({ url, threads }) {
    const { createEngine } = await load('/dist/index.js');
    this.#engine = await createEngine({ url, cache: false, threads });
    return (await /** @type {import('../../js/index.js').Engine} */ (this.#engine).info()).kernels;
  }

  /** @param {string[]} texts */
  embed(texts) {
    const engine = /** @type {import('../../js/index.js').Engine} */ (this.#engine);
    return timed((some) => engine.embed(some), texts);
  }
}

class Transformers {
  /** @type {any} */
  #extract;

  /** @param {{model: string, dtype: string, threads: number}} wanted */
  async load({ model, dtype, threads }) {
    const { env, pipeline } = await load('/transformers/transformers.min.js');
    Object.assign(env, { allowRemoteModels: false, allowLocalModels: true, localModelPath: '/' });
    env.useBrowserCache = false;
    Object.assign(env.backends.onnx.wasm, { numThreads: threads, wasmPaths: '/onnxruntime/' });
    this.#extract = await pipeline('feature-extraction', model, { dtype, device: 'wasm' });
    return env.version;
  }

  /** @param {string[]} texts */
  embed(texts) {
    const embed = async (/** @type {string[]} */ some) => {
      const found = await this.#extract(some, { pooling: 'mean', normalize: true });
      const [count, width] = found.dims;
      const at = (/** @type {number} */ i) => found.data.subarray(i * width, (i + 1) * width);
      return Array.from({ length: count }, (_, i) => at(i));
    };
    return timed(embed, texts);
  }
}

/** @param {string | null} name */
export const makeEmbedder = (name) => (name === 'wick' ? new Wick() : new Transformers());
