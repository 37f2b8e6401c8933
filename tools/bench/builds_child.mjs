// Measures one engine of one build in a separate process (builds.mjs) and prints the results as JSON. Each
// measurement needs a fresh process, because V8's compiled code and heap would otherwise carry over.

/** @typedef {{createMs: number, prefill: number, decode: number}} Measured tokens per second */
/**
 * @typedef {object} Wanted
 * @property {string} index the URL of the build's index.js
 * @property {string} file a GGUF file
 * @property {number} threads
 * @property {number} promptTokens
 * @property {number} tokens to generate
 * @property {import('../../js/index.js').KvType} [kvType]
 * @property {number} runs the number of runs; the best one counts, because other load on the machine can
 * only slow it down
 */

/** @param {Wanted} wanted @returns {Promise<Measured>} */
async function measure({ index, file, threads, promptTokens, tokens, kvType = 'f16', runs }) {
  /** @type {typeof import('../../js/index.js')} */
  const { createEngine } = await import(index);
  const start = performance.now();
  const engine = await createEngine({ file, threads, kvType, prefixCache: false });
  const createMs = performance.now() - start;
  const vocab = (await engine.info()).shape?.vocab ?? 1;
  const settings = { temperature: 0, ignoreEnd: true, speculation: false, maxTokens: tokens };
  const measured = { createMs, prefill: 0, decode: 0 };
  for (let run = 0; run < runs + 1; run++) {
    const prompt = Array.from({ length: promptTokens }, (_, i) => (i * 31 + run * 977) % vocab);
    const stream = engine.generate(prompt, settings);
    await stream.text();
    const { timings } = /** @type {import('../../js/index.js').GenerationResult} */ (stream.result);
    if (run === 0) continue; // warm-up
    measured.prefill = Math.max(measured.prefill, timings.prefillTokensPerSecond);
    measured.decode = Math.max(measured.decode, timings.decodeTokensPerSecond);
  }
  await engine.close();
  return measured;
}

console.log(JSON.stringify(await measure(JSON.parse(process.argv[2]))));
