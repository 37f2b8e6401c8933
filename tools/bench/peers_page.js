// Gives both engines the same methods in a page (page.html, cold.html). peers.mjs serves the
// imported files.

/** @typedef {{url: string, threads: number, context: number, eager?: boolean, wasm?: string, mmproj?: string, dist?: string}} Load */
/** @typedef {{text: string, count: number}} Work */
/**
 * Text to generate at temperature 1, unconstrained or constrained by the schema, which `grammar` contains as GBNF. `ms` in
 * the result is the time from the first token to the last.
 * @typedef {{text: string, count: number, seed: number, schema?: Record<string, unknown>, grammar?: string}} Bound
 */

/** @param {string} url @returns {Promise<any>} */
const load = (url) => import(url);

class Wick {
  /** @type {import('../../js/index.js').Engine | undefined} */
  #engine;

  /** @param {Load} wanted */
  async load({ url, threads, context, eager = false, wasm, mmproj, dist = '/dist' }) {
    const { createEngine } = await load(`${dist}/index.js`);
    // every prompt is read completely, because prefill is measured
    const options = { threads, contextSize: context, eager, wasm, mmproj, prefixCache: false };
    this.#engine = await createEngine({ url, cache: false, ...options });
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
      speculation: false,
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

  /** @param {{image: string, text: string}} work `image` is the URL of a PPM file @returns {Promise<object>} the time to the first token */
  async see({ image, text }) {
    const engine = /** @type {import('../../js/index.js').Engine} */ (this.#engine);
    const blob = await (await fetch(image)).blob();
    const part = /** @type {const} */ ({ type: 'image', image: blob });
    const { macs } = await engine.mediaCost(part);
    const start = performance.now();
    const run = engine.generate([part, { type: 'text', text }], { maxTokens: 1, temperature: 0 });
    await run.text();
    const ms = performance.now() - start;
    return { ms, macs, promptTokens: run.result?.usage.promptTokens };
  }

  /** @param {Bound} work */
  async write({ text, count, seed, schema }) {
    const engine = /** @type {import('../../js/index.js').Engine} */ (this.#engine);
    const run = engine.generate(text, {
      ...{ maxTokens: count, temperature: 1, topK: 40, topP: 0.95, minP: 0.05, seed },
      ...(schema ? { jsonSchema: schema } : { ignoreEnd: true }),
      speculation: false,
    });
    const written = await run.text();
    const { usage, timings } = /** @type {import('../../js/index.js').GenerationResult} */ (
      run.result
    );
    return { text: written, tokens: usage.completionTokens, ms: timings.decodeMs };
  }
}

/** Decodes several sequences at once (Wick only). */
class Together {
  /** @type {import('../../js/index.js').Engine | undefined} */
  #engine;
  #vocab = 1;

  /** @param {Load} wanted */
  async load({ url, threads, context }) {
    const { createEngine } = await load('/dist/index.js');
    const options = { threads, contextSize: context, prefixCache: false, kvTokens: 16 * context };
    this.#engine = /** @type {import('../../js/index.js').Engine} */ (
      await createEngine({ url, cache: false, ...options })
    );
    const { kernels, shape } = await this.#engine.info();
    this.#vocab = shape?.vocab ?? 1;
    return { kernels };
  }

  /** @param {{count: number, tokens: number}} work @returns {Promise<number>} tok/s of all sequences together */
  async decode({ count, tokens }) {
    const prompt = Array.from({ length: 16 }, (_, i) => (i * 7919 + 1) % this.#vocab);
    const settings = { temperature: 0, ignoreEnd: true, speculation: false, maxTokens: tokens + 1 };
    const engine = /** @type {import('../../js/index.js').Engine} */ (this.#engine);
    const many = engine.generateMany(prompt, { n: count, ...settings });
    await Promise.all(many.map((one) => one.text()));
    const times = many.map((one) => one.result?.timings.decodeMs ?? 0);
    return (count * tokens * 1000) / Math.max(...times);
  }

  /** @param {{round: number, tokens: number}} work @returns {Promise<number>} tok/s */
  async prefill({ round, tokens }) {
    const prompt = Array.from({ length: tokens }, (_, i) => (i * 31 + round * 977) % this.#vocab);
    const engine = /** @type {import('../../js/index.js').Engine} */ (this.#engine);
    const run = engine.generate(prompt, { temperature: 0, ignoreEnd: true, maxTokens: 1 });
    await run.text();
    return run.result?.timings.prefillTokensPerSecond ?? 0;
  }
}

class Wllama {
  /** @type {any} */
  #engine;

  /** @param {Load} wanted */
  async load({ url, threads, context, mmproj }) {
    const { Wllama: Engine, LoggerWithoutDebug } = await load('/wllama/index.js');
    const wasm = { default: '/wllama/wasm/wllama.wasm' };
    this.#engine = new Engine(wasm, { logger: LoggerWithoutDebug });
    const files = mmproj ? [url, mmproj] : [url];
    const blobs = await Promise.all(files.map(async (file) => (await fetch(file)).blob()));
    await this.#engine.loadModel(blobs, {
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

  /** @param {{image: string, text: string}} work `image` is the URL of a PPM file @returns {Promise<object>} the time to the first token */
  async see({ image, text }) {
    const data = await (await fetch(image)).arrayBuffer();
    const content = [
      { type: 'image', data },
      { type: 'text', text },
    ];
    const start = performance.now();
    const answer = await this.#engine.createChatCompletion({
      ...{ messages: [{ role: 'user', content }], max_tokens: 1, temperature: 0 },
      cache_prompt: false,
    });
    return { ms: performance.now() - start, promptTokens: answer.timings?.prompt_n };
  }

  /** @param {Bound} work */
  async write({ text, count, seed, grammar }) {
    const answer = await this.#engine.createCompletion({
      ...{ prompt: text, max_tokens: count, seed, cache_prompt: false },
      ...{ temperature: 1, top_k: 40, top_p: 0.95, min_p: 0.05 },
      ...(grammar ? { grammar } : { ignore_eos: true }),
    });
    const { predicted_n, predicted_ms } = answer.timings;
    return { text: answer.choices[0].text, tokens: predicted_n, ms: predicted_ms };
  }
}

/** @param {string} name */
export function makePeer(name) {
  if (name === 'together') return new Together();
  return name === 'wick' ? new Wick() : new Wllama();
}
