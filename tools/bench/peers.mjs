// Wick against its peers on the same files, in one run, in turns: wllama in the same Chromium, native
// llama.cpp in a process of its own.
//   node tools/bench/peers.mjs [--models shape:type,...] [--threads 1,2] [--prompt 128] [--tokens 32]
//     [--repetitions 7] [--cold shape:type,...] [--peers wllama,llama.cpp]
// QUICK=1: 64 + 16 tokens, up to 3 repetitions, no intervals, within 8 minutes. Writes
// build/bench/peers.json; a full run also its section of docs/benchmarks.md.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { launchChromium } from '../../tests/support/browsers.mjs';
import { root } from '../../tests/support/locate.mjs';
import { serve } from '../serve.mjs';
import { measureCold, openPage } from './browser_peer.mjs';
import { environmentLine, writeSection } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { makeModel, modelFolder } from './models.mjs';
import { nativeVersion, openNative } from './native_peer.mjs';
import { makePrompt } from './prompts.mjs';
import { compareSamples, peersTable } from './rows.mjs';

const quick = process.env.QUICK === '1';
const everything = ['smollm2-135m', 'qwen2.5-0.5b'].flatMap((shape) =>
  ['q4_0', 'q4_k_m', 'q8_0'].map((type) => `${shape}:${type}`),
);
const { values: options } = parseArgs({
  options: {
    models: {
      type: 'string',
      default: (quick ? ['smollm2-135m:q8_0', ...everything.slice(3)] : everything).join(','),
    },
    cold: { type: 'string', default: 'qwen2.5-0.5b:q4_0' },
    threads: { type: 'string', default: '1,2' },
    prompt: { type: 'string', default: quick ? '64' : '128' },
    tokens: { type: 'string', default: quick ? '16' : '32' },
    repetitions: { type: 'string', default: quick ? '3' : '7' },
    peers: { type: 'string', default: 'wllama,llama.cpp' },
    out: { type: 'string', default: 'build/bench/peers.json' },
    document: { type: 'boolean', default: !quick },
  },
  allowNegative: true,
});
const promptTokens = Number(options.prompt);
const newTokens = Number(options.tokens);
const repetitions = Number(options.repetitions);
const context = 512;
const COLD_PROMPT_TOKENS = 32;
const QUICK_SECONDS = 400;
const QUICK_SECONDS_MAX = 470;

/** @typedef {import('./browser_peer.mjs').Peer} Peer */
/** @typedef {import('./rows.mjs').Measurement} Measurement */
/** @typedef {{shape: string, type: string, threads: number, phase: 'speed' | 'cold'}} Task */
/** @typedef {ReturnType<typeof compareSamples>} Row */

/** @returns {Record<string, string>} the peers' versions; ends the run when one is missing */
function findPeers() {
  const wllama = resolve(root, 'node_modules/@wllama/wllama/package.json');
  /** @type {Record<string, string | undefined>} */
  const versions = {
    wllama: existsSync(wllama) ? JSON.parse(readFileSync(wllama, 'utf8')).version : undefined,
    'llama.cpp': nativeVersion(),
  };
  /** @type {Record<string, string>} */
  const found = {};
  for (const name of options.peers.split(',')) {
    const version = versions[name];
    if (version === undefined) {
      console.error(
        name in versions
          ? `bench-peers: ${name} is not installed: run tools/setup.sh core browsers bench`
          : `bench-peers: no peer is called '${name}': there are ${Object.keys(versions).join(', ')}`,
      );
      process.exit(1);
    }
    found[name] = version;
  }
  return found;
}

/**
 * Shares of the time that is left in a quick run. A task that has begun gets at least one round; on a
 * machine so busy that a task as long as the longest so far would not end in time, none begins.
 */
class Clock {
  #start = performance.now();
  #taskStart = 0;
  #longestMs = 0;

  /** @param {number} tasksLeft with the one that begins @returns {boolean} whether there is time for it */
  startTask(tasksLeft) {
    const now = performance.now();
    this.#taskStart = now;
    const end = this.#start + QUICK_SECONDS * 1000;
    this.taskEnd = quick ? now + (end - now) / tasksLeft : Number.POSITIVE_INFINITY;
    return !quick || now + this.#longestMs < this.#start + QUICK_SECONDS_MAX * 1000;
  }

  endTask() {
    this.#longestMs = Math.max(this.#longestMs, performance.now() - this.#taskStart);
  }

  /** @param {number} roundMs that the last round took */
  hasTimeFor(roundMs) {
    return performance.now() + roundMs <= (this.taskEnd ?? 0);
  }
}

/**
 * Rounds in which each side has its turn.
 * @template T
 * @param {string[]} names
 * @param {Clock} clock
 * @param {(name: string, round: number) => Promise<T>} measure
 * @returns {Promise<Record<string, T[]>>}
 */
async function takeTurns(names, clock, measure) {
  /** @type {Record<string, T[]>} */
  const samples = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < repetitions; round++) {
    const start = performance.now();
    for (const name of names) samples[name].push(await measure(name, round));
    if (!clock.hasTimeFor(performance.now() - start)) break;
  }
  return samples;
}

/**
 * @param {Bench} bench
 * @param {Task} task
 * @param {Record<string, Peer>} sides filled, so that whoever called can close them
 * @returns {Promise<Row[]>}
 */
async function compareSpeed(bench, { shape, type, threads }, sides) {
  const { name, path } = makeModel(shape, type);
  const names = ['wick', ...Object.keys(bench.versions)];
  for (const peer of names) {
    sides[peer] =
      peer === 'llama.cpp'
        ? openNative()
        : await openPage(bench.browser, `${bench.url}page.html?peer=${peer}`);
    const loaded = await sides[peer].call('load', {
      url: `/models/${name}`,
      path,
      threads,
      context,
    });
    if (peer === 'llama.cpp') bench.variant = loaded.variant;
  }
  // Short ones first: code is compiled, pages are touched. Rounds from 0 have prompts of their own.
  const warmUp = quick ? 8 : promptTokens;
  const short = { ...makePrompt(path, warmUp, repetitions), count: 4 };
  for (const peer of names) await sides[peer].call('measure', short);
  const prompts = Array.from({ length: repetitions }, (_, round) =>
    makePrompt(path, promptTokens, round),
  );
  const samples = /** @type {Record<string, Measurement[]>} */ (
    await takeTurns(names, bench.clock, (peer, round) =>
      sides[peer].call('measure', { ...prompts[round], count: newTokens }),
    )
  );
  return names.slice(1).flatMap((peer) =>
    /** @type {const} */ (['prefill', 'decode']).map((phase) =>
      compareSamples({
        row: { model: shape, type, threads, phase, peer, peer_version: bench.versions[peer] },
        ours: samples.wick.map((sample) => sample[phase]),
        theirs: samples[peer].map((sample) => sample[phase]),
        hasInterval: !quick,
      }),
    ),
  );
}

/** @param {Bench} bench @param {Task} task @returns {Promise<Row[]>} */
async function compareCold(bench, { shape, type, threads }) {
  if (!('wllama' in bench.versions)) return [];
  const { name, path } = makeModel(shape, type);
  const { text } = makePrompt(path, COLD_PROMPT_TOKENS, 0);
  const samples = await takeTurns(['wick', 'wllama'], bench.clock, (peer) => {
    const query = new URLSearchParams({
      peer,
      url: `/models/${name}`,
      threads: String(threads),
      context: String(context),
      text,
    });
    return measureCold(bench.browser, `${bench.url}cold.html?${query}`);
  });
  return [
    compareSamples({
      row: {
        model: shape,
        type,
        threads,
        phase: 'cold_ttft',
        peer: 'wllama',
        peer_version: bench.versions.wllama,
      },
      ours: samples.wick,
      theirs: samples.wllama,
      hasInterval: !quick,
    }),
  ];
}

/** @returns {Task[]} those of one thread first */
function listTasks() {
  const threads = options.threads.split(',').map(Number);
  /** @param {string} list @param {Task['phase']} phase @param {number} count */
  const of = (list, phase, count) =>
    list.split(',').flatMap((pair) => {
      const [shape, type] = pair.split(':');
      return type ? [{ shape, type, threads: count, phase }] : [];
    });
  return threads
    .sort((a, b) => a - b)
    .flatMap((count) => [
      ...of(options.models, 'speed', count),
      ...of(options.cold, 'cold', count),
    ]);
}

/**
 * @typedef {{browser: import('playwright-core').Browser, url: string, clock: Clock,
 *   versions: Record<string, string>, variant: string | undefined}} Bench
 */

/** @param {unknown} error @returns {string | undefined} why Wick cannot run a model yet */
function refusal(error) {
  const text = String(error);
  return /UNSUPPORTED|not supported/i.test(text) ? text.split('\n')[0] : undefined;
}

/** @param {Bench} bench @param {Task} task @returns {Promise<Row[]>} */
async function runTask(bench, task) {
  /** @type {Record<string, Peer>} */
  const sides = {};
  try {
    return task.phase === 'cold'
      ? await compareCold(bench, task)
      : await compareSpeed(bench, task, sides);
  } finally {
    for (const side of Object.values(sides)) await side.close();
  }
}

/** @param {Bench} bench */
async function runTasks(bench) {
  /** @type {Row[]} */
  const rows = [];
  /** @type {{model: string, type: string, threads: number, reason: string}[]} */
  const skipped = [];
  const tasks = listTasks();
  for (const [index, task] of tasks.entries()) {
    const { shape, type, threads, phase } = task;
    console.error(`${shape} ${type}, ${threads} thread(s), ${phase}`);
    /** @type {string | undefined} */
    let reason = 'no time is left: this machine is too busy for a quick run of all';
    if (bench.clock.startTask(tasks.length - index)) {
      try {
        rows.push(...(await runTask(bench, task)));
        reason = undefined;
      } catch (error) {
        reason = refusal(error);
        if (reason === undefined) throw error;
      }
      bench.clock.endTask();
    }
    if (reason === undefined) continue;
    console.error(`  skipped: ${reason}`);
    skipped.push({ model: shape, type, threads, reason });
  }
  return { rows, skipped };
}

/** @param {object} result @param {Row[]} rows @param {ReturnType<typeof describeEnvironment>} env */
function writeResults(result, rows, env) {
  const out = resolve(root, options.out);
  mkdirSync(resolve(out, '..'), { recursive: true });
  writeFileSync(out, `${JSON.stringify(result, null, 2)}\n`);
  console.error(`written: ${relative(root, out)}`);
  if (!options.document) return;
  writeSection(
    'peers',
    `## Against wllama and native llama.cpp

\`make bench-peers\`: ${environmentLine(env)}. One run, one Chromium, one model and number of threads at
a time, the engines in turns; ${promptTokens} tokens of prompt, ${newTokens} of answer, ${repetitions} rounds,
medians, 95 % bootstrap intervals of the ratio. cold_ttft: from the navigation to the first token of a
${COLD_PROMPT_TOKENS}-token prompt, in a new browser context, the model from loopback. A ratio above 1 means that
Wick is better.

${peersTable(rows)}`,
  );
}

const versions = findPeers();
const server = await serve({
  root: {
    '/': resolve(root, 'tools/bench'),
    '/dist': resolve(root, 'dist'),
    '/models': modelFolder,
    '/wllama': resolve(root, 'node_modules/@wllama/wllama/esm'),
  },
});
const browser = await launchChromium();
try {
  const environment = describeEnvironment();
  const bench = { browser, url: server.url, clock: new Clock(), versions, variant: undefined };
  const { rows, skipped } = await runTasks(bench);
  const described = {
    ...environment,
    browser: `Chromium ${browser.version()}`,
    peers: versions,
    llama_cpp_cpu_variant: bench.variant ?? null,
    prompt_tokens: promptTokens,
    tokens: newTokens,
    repetitions,
    quick,
  };
  if (bench.variant) console.log(`native llama.cpp runs its kernels for ${bench.variant}`);
  console.log(peersTable(rows));
  writeResults({ environment: described, rows, skipped }, rows, environment);
} finally {
  await browser.close();
  await server.close();
}
