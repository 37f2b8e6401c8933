// Native llama.cpp with its library of images (llama.node) in a separate process: see native_peer.mjs and images.mjs.
// node-llama-cpp, which the other comparisons run, is built without that library.

import { pathToFileURL } from 'node:url';

const { default: library } = await import(pathToFileURL(process.argv[2]).href);

/** @type {any} */
let context;

/** @type {Record<string, (argument: any) => Promise<unknown>>} */
const methods = {
  async load({ path, mmproj, threads, context: size }) {
    const batch = { n_ctx: size, n_batch: size, n_ubatch: size, n_parallel: 1 };
    context = await library.loadModel({
      model: path,
      n_threads: threads,
      n_gpu_layers: 0,
      ...batch,
    });
    if (!(await context.initMultimodal({ path: mmproj, use_gpu: false, n_threads: threads }))) {
      throw new Error('the mmproj file is refused');
    }
  },

  async see({ path, text }) {
    const start = performance.now();
    const { timings } = await context.completion({
      prompt: `<__media__>${text}`,
      media_paths: [path],
      ...{ n_predict: 1, temperature: 0, cache_prompt: false },
    });
    return { ms: performance.now() - start, promptTokens: timings?.prompt_n };
  },
};

process.on('message', async (/** @type {any} */ { id, method, argument }) => {
  try {
    process.send?.({ id, value: await methods[method](argument) });
  } catch (error) {
    process.send?.({ id, error: String(error) });
  }
});
process.on('disconnect', () => process.exit());
