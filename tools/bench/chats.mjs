// Runs many chats at once with a KV cache budget that fits only some of them. A chat has turns of
// random tokens and sampled answers. Some chats keep their tokens in sessions; the others send all
// of them again. Every answer is compared with the answer of the same chat run alone in an engine
// with enough memory, and every page must be freed.
//   node tools/bench/chats.mjs [--model shape:type | file.gguf] [--kv-mb 64] [--chats 16] [--sessions 4]
//     [--turns 3] [--ask 96] [--answer 48] [--swap] [--json]
// Exits with 1 if an answer was lost or changed, a page was not freed, or all chats fit into the budget.

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../../tests/support/locate.mjs';
import { modelFile } from './models.mjs';

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'smollm2-135m:q8_0' },
    'kv-mb': { type: 'string', default: '64' },
    chats: { type: 'string', default: '16' },
    sessions: { type: 'string', default: '4' },
    turns: { type: 'string', default: '3' },
    ask: { type: 'string', default: '96' },
    answer: { type: 'string', default: '48' },
    swap: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const file = modelFile(options.model);
const chats = Number(options.chats);
const turns = Number(options.turns);
const ask = Number(options.ask);
const answer = Number(options.answer);
const chatTokens = turns * (ask + answer);

/** @type {typeof import('../../js/index.js')} */
const { createEngine } = await import(resolve(root, 'dist/index.js'));
const directory = await createEngine({ file, directoryOnly: true, contextSize: chatTokens + 16 });
const { plan, shape: dimensions } = await directory.info();
await directory.close();
const vocab = dimensions?.vocab ?? 1;
const budgetBytes = Number(options['kv-mb']) * 2 ** 20;
const kvTokens = Math.floor(budgetBytes / (plan?.kvPageBytes ?? 1)) * 16;

/** @param {number} chat @param {number} turn */
const question = (chat, turn) =>
  Array.from({ length: ask }, (_, i) => (chat * 104729 + turn * 1299709 + i * 7919) % vocab);

/**
 * Runs a chat and returns the tokens of its answers.
 * @param {import('../../js/index.js').Engine} engine
 * @param {number} chat
 */
async function runChat(engine, chat) {
  const session = chat < Number(options.sessions) ? await engine.createSession() : null;
  /** @type {number[]} */
  const text = [];
  /** @type {number[][]} */
  const answers = [];
  for (let turn = 0; turn < turns; turn++) {
    /** @type {number[]} */
    const said = [];
    const settings = {
      seed: 100 * chat + turn,
      maxTokens: answer,
      ignoreEnd: true,
      onToken: (/** @type {import('../../js/index.js').TokenDetail} */ { token }) => {
        said.push(token);
      },
    };
    const asked = question(chat, turn);
    text.push(...asked);
    await (session ? session.prompt(asked, settings) : engine.generate(text, settings)).text();
    text.push(...said);
    answers.push(said);
  }
  await session?.close();
  return answers;
}

const sizes = { file, threads: 1, contextSize: chatTokens + 16 };
const engine = await createEngine({
  ...sizes,
  kvTokens,
  swap: options.swap ? { always: true } : false,
});
const startMs = performance.now();
const together = await Promise.all(Array.from({ length: chats }, (_, i) => runChat(engine, i)));
const seconds = (performance.now() - startMs) / 1000;
const { requests, tokens, kv } = await engine.stats();
await engine.close();

const roomy = await createEngine(sizes);
let same = 0;
for (let i = 0; i < chats; i++) {
  same += Number(JSON.stringify(await runChat(roomy, i)) === JSON.stringify(together[i]));
}
await roomy.close();

const result = {
  model: options.model,
  kvTokens,
  wantedTokens: chats * chatTokens,
  chats,
  sessions: Number(options.sessions),
  turns,
  seconds,
  tokensPerSecond: tokens.out / seconds,
  same,
  requests,
  tokens,
  pages: kv.pages,
  sequences: kv.sequences,
};
const { all, free, cached, usedMax } = kv.pages;
console.log(
  options.json
    ? JSON.stringify(result)
    : `${options.model}: ${chats} chats (${result.sessions} sessions) of ${turns} turns, ` +
        `${result.wantedTokens} tokens in pages for ${kvTokens} (${options['kv-mb']} MB)
${same} of ${chats} with the texts that they have alone; ${requests.length} of ${requests.submitted} requests whole
gave way ${requests.preempted}, to the file and back ${requests.swappedOut} and ${requests.swappedIn}, tokens read again ${tokens.recomputed}
pages at most ${usedMax}, afterwards ${all}: ${free} free, ${cached} in the prefix cache, of ${kv.sequences} sequences
${tokens.out} tokens in ${seconds.toFixed(1)} s, ${result.tokensPerSecond.toFixed(1)} tok/s`,
);
const isWhole = same === chats && requests.length === chats * turns;
const isReturned = kv.sequences === 0 && free + cached === all;
if (!isWhole || !isReturned || requests.preempted === 0) process.exitCode = 1;
