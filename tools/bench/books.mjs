// Measures books that are read only once: the time to read a document, the time from opening it to
// the first word of an answer if its state was stored in Q8 or Q4, and the size of the state. It
// runs in Node, with a synthetic model (wick synth) and an f16 KV cache.
//   node tools/bench/books.mjs [--model qwen2.5-0.5b:q4_0] [--tokens 1000] [--runs 3] [--threads 0]

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../../tests/support/locate.mjs';
import { modelFile } from './models.mjs';
import { median } from './statistics.mjs';

/** @type {typeof import('../../js/index.js')} */
const { createEngine } = await import(resolve(root, 'dist/index.js'));

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'qwen2.5-0.5b:q4_0' },
    tokens: { type: 'string', default: '1000' },
    runs: { type: 'string', default: '3' },
    threads: { type: 'string', default: '0' },
  },
});
const tokens = Number(options.tokens);
const threads = Number(options.threads) || undefined;
const kinds = /** @type {const} */ (['q8', 'q4']);
const question = [17, 170, 71];

const settings = {
  ...{ file: modelFile(options.model), contextSize: tokens + 64, ...(threads && { threads }) },
  prefixCache: false, // so that no run benefits from an earlier one
};
const engine = await createEngine(settings);
const book = Array.from({ length: tokens }, (_, index) => 100 + ((index * 7919) % 5000));

/**
 * @param {import('../../js/index.js').Session} session
 * @returns {Promise<void>} settles when the first word has arrived
 */
async function firstWord(session) {
  for await (const _ of session.prompt(question, {
    maxTokens: 1,
    temperature: 0,
    ignoreEnd: true,
  }));
}

/** @param {() => Promise<unknown>} act */
async function timed(act) {
  const began = performance.now();
  await act();
  return performance.now() - began;
}

/** @param {Uint8Array<ArrayBuffer>} state */
async function open(state) {
  const { session } = await engine.loadState(state);
  if (!session) throw new Error('the session was not restored');
  const fork = await session.fork();
  await firstWord(fork);
  for (const one of [fork, session]) await one.close();
}

const source = await engine.createSession();
await source.append(book);
const whole = await source.save();
const states = await Promise.all(kinds.map((kvType) => source.save({ kvType })));
await source.close();
/** @type {number[]} */
const anew = [];
const opened = kinds.map(() => /** @type {number[]} */ ([]));
for (let run = 0; run < Number(options.runs); run++) {
  anew.push(
    await timed(async () => {
      const session = await engine.createSession();
      await session.append(book);
      await firstWord(session);
      await session.close();
    }),
  );
  for (const [index, state] of states.entries()) opened[index].push(await timed(() => open(state)));
}
const perThousand = (/** @type {Uint8Array} */ bytes) => (bytes.length / tokens / 1000).toFixed(2);
const { threads: used } = await engine.info();
console.log(`${options.model}, ${tokens} tokens, ${used} threads, median of ${options.runs} runs`);
console.log(
  `recomputed: ${median(anew).toFixed(0)} ms to the first word; f16 ${perThousand(whole)} MB per 1,000 tokens`,
);
for (const [index, kind] of kinds.entries()) {
  const ms = median(opened[index]);
  const share = (median(anew) / ms).toFixed(0);
  console.log(
    `opened from ${kind}: ${ms.toFixed(0)} ms, ${share} times as fast; ${perThousand(states[index])} MB per 1,000 tokens`,
  );
}
await engine.close();
