// Runs native llama.cpp (node-llama-cpp) in a separate process. native_peer.mjs starts it, sends
// {id, method, argument} and receives {id, value} or {id, error}.

import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/** tools/setup.sh bench installs it into .toolchain/bench; it is not a dependency of the package. */
const { getLlama } = await import(pathToFileURL(process.argv[2]).href);

/** @type {any} */
let sequence;

/** @returns {string} the kernel build that llama.cpp chose for this processor */
function cpuVariant() {
  const found = readFileSync('/proc/self/maps', 'utf8').match(/libggml-cpu-(\w+)\.so/);
  return found ? found[1] : 'unknown';
}

/** @type {Record<string, (argument: any) => Promise<unknown>>} */
const methods = {
  async load({ path, threads, context }) {
    const llama = await getLlama({ gpu: false, build: 'never', maxThreads: threads });
    const model = await llama.loadModel({ modelPath: path });
    const made = await model.createContext({
      contextSize: context,
      batchSize: context,
      threads,
      sequences: 1,
    });
    sequence = made.getSequence();
    return { release: llama.llamaCppRelease?.release, variant: cpuVariant() };
  },

  /** Samples greedily: the first token arrives with the prefill, the others one by one. */
  async measure({ tokens: prompt, count }) {
    await sequence.clearHistory();
    const next = { generateNext: { token: true, options: { temperature: 0 } } };
    const last = prompt.length - 1;
    const start = performance.now();
    const answer = await sequence.controlledEvaluate([
      ...prompt.slice(0, last),
      [prompt[last], next],
    ]);
    const prefilled = performance.now();
    let token = answer[last].next.token;
    for (let i = 1; i < count; i++) {
      token = (await sequence.controlledEvaluate([[token, next]]))[0].next.token;
    }
    const end = performance.now();
    return {
      promptTokens: prompt.length,
      tokens: count,
      prefill: (prompt.length / (prefilled - start)) * 1000,
      decode: ((count - 1) / (end - prefilled)) * 1000,
    };
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
