// examples/bench/measure.js — the measurement: creates and runs engines one after the other and
// reports every figure as soon as it is measured. It does not depend on the page.

import { createEngine } from 'wick-llm';
import { modelUrl } from 'wick-llm-demo-model';

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {import('wick-llm').EngineInfo} EngineInfo */
/** @typedef {import('wick-llm').EngineMetrics} EngineMetrics */
/** @typedef {import('wick-llm').OneSource} ModelSource */

/**
 * @typedef {{model: string, source: ModelSource | undefined, threads: number[], prompts: number[],
 *   tokens: number, repetitions: number}} Plan `source` undefined: the built-in model
 * @typedef {{prefill: number, decode: number, ttftMs: number}} Sample in tokens/s
 * @typedef {{threads: number, promptTokens: number, tokens: number, loadMs: number,
 *   samples: Sample[]}} Run
 * @typedef {{runs: Run[], info: EngineInfo | undefined, metrics: EngineMetrics | undefined,
 *   metricsThreads: number}} Result
 */

/**
 * @typedef {object} Listener
 * @property {(text: string, share: number) => void} onState the current step and its progress
 * @property {(seconds: number, tokens: number) => void} onToken is called for tokens of the current
 * repetition
 * @property {() => void} onRepetition is called when a repetition begins
 * @property {(sample: Sample) => void} onSample
 */

/** Makes a random prompt (splitmix32), which differs in every repetition. @param {number} seed */
function makePrompt(seed, count = 0, vocab = 1) {
  const prompt = new Int32Array(count);
  let state = Math.imul(seed + 1, 0x9e3779b9);
  for (let i = 0; i < count; i++) {
    state = (state + 0x9e3779b9) | 0;
    let z = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    prompt[i] = ((z ^ (z >>> 16)) >>> 0) % vocab;
  }
  return prompt;
}

/**
 * @param {Engine} engine
 * @param {Int32Array} prompt
 * @param {number} tokens
 * @param {Listener} listener
 * @param {AbortSignal} signal
 * @returns {Promise<Sample>}
 */
async function repeat(engine, prompt, tokens, listener, signal) {
  listener.onRepetition();
  const start = performance.now();
  let count = 0;
  const generation = engine.generate(prompt, {
    maxTokens: tokens,
    temperature: 0,
    ignoreEnd: true,
    speculation: false,
    signal,
    onToken: () => listener.onToken((performance.now() - start) / 1000, ++count),
  });
  await generation.text();
  const timings = generation.result?.timings;
  if (!timings) throw new Error('the generation has no result');
  return {
    prefill: timings.prefillTokensPerSecond,
    decode: timings.decodeTokensPerSecond,
    ttftMs: timings.ttftMs,
  };
}

/**
 * @param {Plan} plan
 * @param {Listener} listener
 * @param {AbortSignal} signal
 * @param {Result} result is filled during the run, so that stopping keeps the measurements so far
 */
export async function measure(plan, listener, signal, result) {
  const total = plan.threads.length * plan.prompts.length * (plan.repetitions + 1);
  let done = 0;
  for (const threads of plan.threads) {
    const start = performance.now();
    listener.onState(`Loading, ${threads} thread(s)`, done / total);
    const engine = await createEngine({
      ...(plan.source ?? { url: modelUrl }),
      threads,
      metrics: true,
      cache: false, // because loading is measured
      prefixCache: false, // so that every prompt is evaluated completely
      contextSize: Math.max(...plan.prompts) + plan.tokens,
      signal,
    });
    const loadMs = performance.now() - start;
    try {
      const vocab = (await engine.info()).shape?.vocab ?? 1;
      for (const promptTokens of plan.prompts) {
        /** @type {Run} */
        const run = { threads, promptTokens, tokens: plan.tokens, loadMs, samples: [] };
        // the first run is a warm-up
        for (let repetition = -1; repetition < plan.repetitions; repetition++) {
          const what = repetition < 0 ? 'warming up' : `${repetition + 1} of ${plan.repetitions}`;
          listener.onState(`${threads} thread(s), ${promptTokens} tokens: ${what}`, done / total);
          const prompt = makePrompt(done, promptTokens, vocab);
          const sample = await repeat(engine, prompt, plan.tokens, listener, signal);
          done++;
          if (repetition < 0) {
            await engine.metrics({ reset: true });
            result.runs.push(run);
            continue;
          }
          run.samples.push(sample);
          listener.onSample(sample);
        }
      }
      result.info = await engine.info();
      result.metrics = await engine.metrics();
      result.metricsThreads = result.info.threads;
    } finally {
      await engine.close();
    }
  }
}
