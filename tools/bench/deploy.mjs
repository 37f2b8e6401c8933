// Measures the figures that docs/deploy.md uses, with servers on this machine: a cold start, a
// prompt that misses the prefix cache and one that hits it, and the CPU time per million tokens.
//   node tools/bench/deploy.mjs [--hosts workerd,node,deno,bun] [--model shape:type|FILE] [--context N] [--kv TYPE]
//     [--prompt 400] [--repetitions 5]
// Linux only: CPU times are read from /proc. They are meaningful even on a shared machine.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import {
  ask,
  exampleServers,
  residentOf,
  startNodeServer,
  startWorkerd,
} from '../../tests/support/example_servers.mjs';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { modelFile } from './models.mjs';
import { median } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    hosts: { type: 'string', default: 'workerd,node,deno,bun' },
    model: { type: 'string', default: 'examples/models/wick-2.6m-q8_0.gguf' },
    context: { type: 'string' },
    kv: { type: 'string' },
    prompt: { type: 'string', default: '400' },
    repetitions: { type: 'string', default: '5' },
  },
});
const path = modelFile(options.model);
const repetitions = Number(options.repetitions);
const ANSWER_TOKENS = 64;
const TOGETHER = 4;

/** @typedef {import('../../tests/support/example_servers.mjs').Started} Started */

/** @type {Record<string, () => Promise<Started>>} */
const hosts = {
  workerd: () =>
    startWorkerd(path, {
      ...(options.context && { CONTEXT: options.context }),
      ...(options.kv && { KV: options.kv }),
    }),
  node: () => startNodeServer(path),
  deno: () => exampleServers['examples/deno in Deno'].start(path),
  bun: () => exampleServers['examples/bun in Bun'].start(path),
};

const ticksMs = 1000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/**
 * @param {number} pid
 * @returns {number} the CPU time of the process in milliseconds, summed over its threads
 */
function processorMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * ticksMs;
}

/**
 * Returns a prompt for each number; no two share a prefix.
 * @param {number} number
 * @param {number} [words]
 */
const promptOf = (number, words = Number(options.prompt)) =>
  Array.from({ length: words }, (_, i) => `${(number * 7919 + i * 104729) % 10} `).join('');

/**
 * @param {string} origin @param {object} body
 * @returns {Promise<{firstMs: number, usage: any}>} the time to the first token
 */
async function complete(origin, body) {
  const started = performance.now();
  const wanted = { ...body, stream: true, stream_options: { include_usage: true } };
  const response = await ask(origin, '/v1/completions', wanted);
  if (response.status !== 200 || !response.body) throw new Error(await response.text());
  let [firstMs, text] = [0, ''];
  const decoder = new TextDecoder();
  for await (const bytes of response.body) {
    firstMs ||= performance.now() - started;
    text += decoder.decode(bytes, { stream: true });
  }
  const [, usage] = /"usage":(\{.*?\}+)/.exec(text.slice(text.lastIndexOf('"usage":{'))) ?? [];
  return { firstMs, usage: usage && JSON.parse(usage.replace(/\}\}+$/, '}}')) };
}

/** @param {() => Promise<Started>} start */
async function coldStart(start) {
  const began = performance.now();
  const server = await start();
  await complete(server.origin, { prompt: 'Once', max_tokens: 1 });
  return { server, ms: performance.now() - began, busyMs: processorMs(server.pid) };
}

/** @param {string} name */
async function measure(name) {
  const { server, ms: coldMs, busyMs } = await coldStart(hosts[name]);
  const { origin, pid } = server;
  try {
    const one = { max_tokens: 1 };
    await complete(origin, { prompt: promptOf(1), ...one }); // V8 has compiled everything
    /** @type {Record<'miss' | 'hit', number[]>} */
    const first = { miss: [], hit: [] };
    let [tokens, missMs] = [0, 0];
    for (let i = 0; i < repetitions; i++) {
      const prompt = promptOf(10 + i);
      const before = processorMs(pid);
      const miss = await complete(origin, { prompt, ...one });
      missMs += processorMs(pid) - before;
      tokens += miss.usage.prompt_tokens;
      first.miss.push(miss.firstMs);
      first.hit.push((await complete(origin, { prompt, ...one })).firstMs);
    }
    let written = 0;
    const before = processorMs(pid);
    for (let i = 0; i < repetitions; i++) {
      const body = { max_tokens: ANSWER_TOKENS, logit_bias: { 0: -100, 2: -100 } };
      const found = await Promise.all(
        Array.from({ length: TOGETHER }, (_, seed) =>
          complete(origin, { ...body, prompt: `Once ${i}`, seed }),
        ),
      );
      written += found.reduce((sum, { usage }) => sum + usage.completion_tokens, 0);
    }
    const writtenMs = processorMs(pid) - before;
    const cells = [
      ...[coldMs.toFixed(0), busyMs.toFixed(0)],
      ...[median(first.miss).toFixed(0), median(first.hit).toFixed(0)],
      ...[(missMs / tokens) * 1000, (writtenMs / written) * 1000].map((s) => s.toFixed(0)),
      (residentOf(pid).peakKb / 1024).toFixed(0),
    ];
    return { cells, promptTokens: tokens / repetitions };
  } finally {
    await server.close();
  }
}

console.log(`${environmentLine(describeEnvironment())}
${options.model}; prompts of ${options.prompt} words, answers of ${ANSWER_TOKENS} tokens, ${TOGETHER} in parallel

| host | cold start, ms | of which CPU, ms | first token: new prompt, ms | known prompt, ms | CPU seconds per million tokens: prefill | decode | peak RSS, MiB |
|---|---|---|---|---|---|---|---|`);
for (const name of options.hosts.split(',')) {
  const { cells, promptTokens } = await measure(name);
  console.log(`| ${name} (${promptTokens.toFixed(0)} prompt tokens) | ${cells.join(' | ')} |`);
}
