// The two engines behind the same calls, in a page (page.html, cold.html). What they are imported
// from is served there (peers.mjs).

/** @typedef {{url: string, threads: number, context: number, eager?: boolean, wasm?: string}} Load */
/** @typedef {{text: string, count: number}} Work */

/** @param {string} address @returns {Promise<any>} */
const load = (address) => import(address);

class Wick {
  /** @type {import('../../js/index.js').Engine | undefined} */
  #engine;

  /** @param {Load} wanted */
  async load({ url, threads, context, eager = false, wasm }) {
    const { createEngine } = await load('/dist/index.js');
    // every prompt is read whole: what is measured is reading
    const options = { threads, contextSize: context, eager, wasm, prefixCache: false };
    this.#engine = await createEngine({ url, ...options });
    const { kernels } = await /** @type {import('../../js/index.js').Engine} */ (
      this.#engine
    ).info();
    return { kernels };
  }

  /** @param {Work} work */
  async measure({ text, count }) {
    const run = /** @type {import('../../js/index.js').Engine} */ (this.#engine).generate(text, {
      maxTokens: count,
      temperature: 0,
      ignoreEnd: true,
    });
    await run.text();
    const { usage, timings } = /** @type {import('../../js/index.js').GenerationResult} */ (
      run.result
    );
    return {
      promptTokens: usage.promptTokens,
      tokens: usage.completionTokens,
      prefill: timings.prefillTokensPerSecond,
      decode: timings.decodeTokensPerSecond,
    };
  }
}

class Wllama {
  /** @type {any} */
  #engine;

  /** @param {Load} wanted */
  async load({ url, threads, context }) {
    const { Wllama: Engine, LoggerWithoutDebug } = await load('/wllama/index.js');
    const wasm = { default: '/wllama/wasm/wllama.wasm' };
    this.#engine = new Engine(wasm, { logger: LoggerWithoutDebug });
    const blob = await (await fetch(url)).blob();
    await this.#engine.loadModel([blob], {
      n_ctx: context,
      n_threads: threads,
      n_gpu_layers: 0,
      n_batch: context,
    });
  }

  /** @param {Work} work */
  async measure({ text, count }) {
    const answer = await this.#engine.createCompletion({
      prompt: text,
      max_tokens: count,
      temperature: 0,
      ignore_eos: true,
      cache_prompt: false,
    });
    const { prompt_n, predicted_n, prompt_per_second, predicted_per_second } = answer.timings;
    return {
      promptTokens: prompt_n,
      tokens: predicted_n,
      prefill: prompt_per_second,
      decode: predicted_per_second,
    };
  }
}

/** @param {string} name */
export const makePeer = (name) => (name === 'wick' ? new Wick() : new Wllama());
