// tools/bench/latency_measure.mjs — the measurements of tools/bench/latency.mjs: in Node, and as a module of a page.

const greedy = { temperature: 0, ignoreEnd: true };

/** @param {number[]} values */
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/** @typedef {import('../../js/index.js').Engine} Engine */

/**
 * @param {Engine} engine
 * @returns {Promise<number>} the delay in ms from the first token to its piece
 */
async function firstPieceMs(engine) {
  const start = performance.now();
  const text = engine.generate('Hi', { ...greedy, maxTokens: 60 });
  let ms = 0;
  for await (const _ of text) ms ||= performance.now() - start;
  return ms - (text.result?.timings.ttftMs ?? 0);
}

/**
 * @param {Engine} engine
 * @returns {Promise<number>} the time in ms for one token just after an abort
 */
async function afterAbortMs(engine) {
  let pieces = 0;
  for await (const _ of engine.generate('Hi', greedy)) if (++pieces === 50) break;
  const start = performance.now();
  await engine.generate('Hi', { ...greedy, maxTokens: 1 }).text();
  return performance.now() - start;
}

/** @param {Engine} engine */
async function tokensPerSecond(engine) {
  const start = performance.now();
  const tokens = 400;
  const options = { ...greedy, maxTokens: tokens, speculation: false };
  for await (const _ of engine.generate('Hi', options));
  return (tokens * 1000) / (performance.now() - start);
}

/** @param {(engine: Engine) => Promise<number>} measure @param {Engine} engine @param {number} times */
async function medianOf(measure, engine, times) {
  await measure(engine);
  const found = [];
  for (let i = 0; i < times; i++) found.push(await measure(engine));
  return median(found);
}

/** @param {Engine} engine @returns {Promise<{firstPieceMs: number, afterAbortMs: number, tokensPerSecond: number}>} medians */
export async function measureLatency(engine) {
  return {
    firstPieceMs: await medianOf(firstPieceMs, engine, 40),
    afterAbortMs: await medianOf(afterAbortMs, engine, 40),
    tokensPerSecond: await medianOf(tokensPerSecond, engine, 12),
  };
}
