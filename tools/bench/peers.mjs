// Measures Wick and its peers with the same files, in one run, alternately: wllama in the same
// Chromium, native llama.cpp in a separate process.
//   node tools/bench/peers.mjs [--models shape:type,...] [--threads 1,2] [--prompt 128] [--tokens 32]
//     [--repetitions 7] [--minutes 8] [--cold shape:type,...] [--peers wllama,llama.cpp]
//     [--out build/bench/peers.json] [--append] [--section peers]
// --models people: shapes of popular models, --models real: real weights (models.mjs). --append:
// keeps the rows of other models in --out, because this is a part of a longer run. --section people:
// the section of the document to write. QUICK=1: 64 + 16 tokens, up to 3 repetitions, no
// intervals, within 8 minutes. A full run repeats each comparison for at most --minutes, but at
// least 3 times. After each comparison it writes build/bench/peers.json, and peers.details.json
// next to it (environment, samples, and the skipped measurements with their reasons). A full run,
// or one with --document, ends by writing its section of docs/benchmarks.md and the chart there.

import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { launchChromium } from '../../tests/support/browsers.mjs';
import { root } from '../../tests/support/locate.mjs';
import { serve } from '../serve.mjs';
import { measureCold, openPage } from './browser_peer.mjs';
import { environmentLine, readSection, writeSection } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { makeModel, modelFolder, peopleModels, realModels } from './models.mjs';
import { nativeVersion, openNative } from './native_peer.mjs';
import { writePeersPicture } from './peers_picture.mjs';
import { phaseTables, ratioLines, readPhaseTables } from './peers_tables.mjs';
import { makePrompt } from './prompts.mjs';
import { compareSamples, peersFile, peersTable } from './rows.mjs';
import { closeAll, doEach, LATE, takeTurns, withinLimit } from './turns.mjs';

const quick = process.env.QUICK === '1';
const everything = ['smollm2-135m', 'qwen2.5-0.5b', 'llama3.2-1b'].flatMap((shape) =>
  ['q4_0', 'q4_k_m', 'q8_0'].map((type) => `${shape}:${type}`),
);
const few = ['smollm2-135m:q8_0', 'qwen2.5-0.5b:q4_0', 'qwen2.5-0.5b:q4_k_m', 'qwen2.5-0.5b:q8_0'];
const { values: options } = parseArgs({
  options: {
    models: { type: 'string', default: (quick ? few : everything).join(',') },
    cold: { type: 'string', default: 'qwen2.5-0.5b:q4_0' },
    threads: { type: 'string', default: '1,2' },
    prompt: { type: 'string', default: quick ? '64' : '128' },
    tokens: { type: 'string', default: quick ? '16' : '32' },
    repetitions: { type: 'string', default: quick ? '3' : '7' },
    minutes: { type: 'string', default: '8' },
    peers: { type: 'string', default: 'wllama,llama.cpp' },
    out: { type: 'string', default: 'build/bench/peers.json' },
    append: { type: 'boolean', default: false },
    section: { type: 'string', default: 'peers' },
    document: { type: 'boolean', default: !quick },
  },
  allowNegative: true,
});
if (options.models === 'people') options.models = peopleModels;
if (options.models === 'real') options.models = realModels;
const promptTokens = Number(options.prompt);
const newTokens = Number(options.tokens);
const repetitions = Number(options.repetitions);
const context = 512;
const COLD_PROMPT_TOKENS = 32;
const WARM_UP_TOKENS = 32;
const ROUNDS_MIN = quick ? 1 : 3;
const QUICK_SECONDS = 400;
const QUICK_SECONDS_MAX = 470;
const HOUR_MS = 3_600_000;

/** @typedef {import('./browser_peer.mjs').Peer} Peer */
/** @typedef {import('./rows.mjs').Measurement} Measurement */
/** @typedef {{shape: string, type: string, threads: number, phase: 'speed' | 'cold'}} Task */
/** @typedef {ReturnType<typeof compareSamples>} Row */

/** @returns {Record<string, string>} the peers' versions; ends the run if one is missing */
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
          ? `bench-peers: ${name} is not installed. Run tools/setup.sh core browsers bench`
          : `bench-peers: unknown peer '${name}' (known: ${Object.keys(versions).join(', ')})`,
      );
      process.exit(1);
    }
    found[name] = version;
  }
  return found;
}

/**
 * Divides the remaining time of a quick run between tasks. A task that has started gets at least one
 * round. A task starts only if it would end in time when it takes as long as the longest so far.
 */
class Clock {
  #start = performance.now();
  #taskStart = 0;
  #taskEnd = 0;
  #longestMs = 0;

  /**
   * @param {number} tasksLeft the number of remaining tasks, including the one to start
   * @returns {boolean} whether there is time for it
   */
  startTask(tasksLeft) {
    const now = performance.now();
    const end = this.#start + QUICK_SECONDS * 1000;
    this.#taskStart = now;
    this.#taskEnd = now + (quick ? (end - now) / tasksLeft : Number(options.minutes) * 60_000);
    return !quick || now + this.#longestMs < this.#start + QUICK_SECONDS_MAX * 1000;
  }

  endTask() {
    this.#longestMs = Math.max(this.#longestMs, performance.now() - this.#taskStart);
  }

  /** @param {number} round the next round @param {number} roundMs the duration of the last round */
  hasTimeFor(round, roundMs) {
    return round < ROUNDS_MIN || performance.now() + roundMs <= this.#taskEnd;
  }

  /** Milliseconds after which an engine that does not respond counts as failed. */
  get limitMs() {
    return quick ? this.#start + QUICK_SECONDS_MAX * 1000 - performance.now() : HOUR_MS;
  }
}

/** @typedef {{rows: Row[], failures: Record<string, string>}} Outcome reasons by side */

/**
 * Opens an engine, loads the model and runs a few tokens, so that code is compiled and pages are touched.
 * @param {Bench} bench
 * @param {Task} task
 * @param {string} peer
 * @param {Record<string, Peer>} sides receives the opened side
 */
async function prepare(bench, { shape, type, threads }, peer, sides) {
  const { name, path } = makeModel(shape, type);
  const isNative = peer === 'llama.cpp';
  sides[peer] = isNative
    ? openNative()
    : await openPage(bench.browser, `${bench.url}page.html?peer=${peer}`);
  const wanted = { url: `/models/${name}`, path, threads, context };
  const loaded = await sides[peer].call('load', wanted);
  if (isNative) bench.variant = loaded.variant;
  // the measured rounds, from 0, have different prompts
  const warmUp = quick ? 8 : Math.min(WARM_UP_TOKENS, promptTokens);
  await sides[peer].call('measure', { ...makePrompt(path, warmUp, repetitions), count: 4 });
}

/**
 * @param {Bench} bench
 * @param {Task} task
 * @param {Record<string, Peer>} sides receives the opened sides, so that the caller can close them
 * @returns {Promise<Outcome>}
 */
async function compareSpeed(bench, task, sides) {
  const { shape, type, threads } = task;
  const { path } = makeModel(shape, type);
  const { clock } = bench;
  const names = ['wick', ...Object.keys(bench.versions)];
  /** @type {Record<string, string>} */
  const failures = {};
  await doEach(names, failures, (peer) =>
    withinLimit(prepare(bench, task, peer, sides), clock.limitMs),
  );
  const prompts = Array.from({ length: repetitions }, (_, round) =>
    makePrompt(path, promptTokens, round),
  );
  const samples = /** @type {Record<string, Measurement[]>} */ (
    await takeTurns(names, failures, {
      rounds: repetitions,
      hasTimeFor: (round, roundMs) => clock.hasTimeFor(round, roundMs),
      measure: (peer, round) => {
        const work = { ...prompts[round], count: newTokens };
        return withinLimit(sides[peer].call('measure', work), clock.limitMs);
      },
    })
  );
  const rows = names.slice(1).flatMap((peer) =>
    /** @type {const} */ (['prefill', 'decode']).flatMap((phase) => {
      if (!samples.wick?.length || !samples[peer]?.length) return [];
      return compareSamples({
        row: { model: shape, type, threads, phase, peer, peer_version: bench.versions[peer] },
        ours: samples.wick.map((sample) => sample[phase]),
        theirs: samples[peer].map((sample) => sample[phase]),
        hasInterval: !quick,
      });
    }),
  );
  return { rows, failures };
}

/** @param {Bench} bench @param {Task} task @returns {Promise<Outcome>} */
async function compareCold(bench, { shape, type, threads }) {
  const { clock, versions } = bench;
  /** @type {Record<string, string>} */
  const failures = {};
  if (!('wllama' in versions)) return { rows: [], failures };
  const { name, path } = makeModel(shape, type);
  const { text } = makePrompt(path, COLD_PROMPT_TOKENS, 0);
  const samples = await takeTurns(['wick', 'wllama'], failures, {
    rounds: repetitions,
    hasTimeFor: (round, roundMs) => clock.hasTimeFor(round, roundMs),
    measure: (peer) => {
      const query = new URLSearchParams({
        peer,
        url: `/models/${name}`,
        threads: String(threads),
        context: String(context),
        text,
      });
      const address = `${bench.url}cold.html?${query}`;
      return withinLimit(measureCold(bench.browser, address), clock.limitMs);
    },
  });
  if (Object.keys(failures).length > 0) return { rows: [], failures };
  const key = { model: shape, type, threads, peer: 'wllama', peer_version: versions.wllama };
  const row = compareSamples({
    row: { ...key, phase: 'cold_ttft' },
    ours: samples.wick,
    theirs: samples.wllama,
    hasInterval: !quick,
  });
  return { rows: [row], failures };
}

/** @returns {Task[]} the tasks with one thread first */
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

/** @param {Bench} bench @param {Task} task @returns {Promise<Outcome>} */
async function runTask(bench, task) {
  /** @type {Record<string, Peer>} */
  const sides = {};
  try {
    return task.phase === 'cold'
      ? await compareCold(bench, task)
      : await compareSpeed(bench, task, sides);
  } finally {
    await closeAll(sides);
  }
}

/** @typedef {{model: string, type: string, threads: number, phase: string, side?: string, reason: string}} Gap */

/**
 * Reads the rows of earlier parts of a run, without those of the current models.
 * @param {string} out @param {Task[]} tasks @param {Record<string, string>} versions
 * @returns {Row[]}
 */
function earlierRows(out, tasks, versions) {
  if (!options.append || !existsSync(out)) return [];
  const keyOf = (/** @type {any} */ { model, shape, type, threads }) =>
    [model ?? shape, type, threads].join();
  const now = new Set(tasks.map(keyOf));
  /** @type {Row[]} */
  const rows = JSON.parse(readFileSync(out, 'utf8')).rows;
  return rows
    .filter((row) => !now.has(keyOf(row)))
    .map((row) => ({ ...row, unit: 'tok/s', peer_version: versions[row.peer] }));
}

/** @param {Bench} bench @param {string} out @param {(rows: Row[], skipped: Gap[]) => void} save after each task */
async function runTasks(bench, out, save) {
  /** @type {Gap[]} */
  const skipped = [];
  const tasks = listTasks();
  const rows = earlierRows(out, tasks, bench.versions);
  save(rows, skipped);
  for (const [index, task] of tasks.entries()) {
    const { shape, type, threads, phase } = task;
    const gap = { model: shape, type, threads, phase };
    console.error(`${shape} ${type}, ${threads} thread(s), ${phase}`);
    if (bench.clock.startTask(tasks.length - index)) {
      const { rows: found, failures } = await runTask(bench, task);
      rows.push(...found);
      for (const [side, reason] of Object.entries(failures)) skipped.push({ ...gap, side, reason });
      bench.clock.endTask();
    } else {
      const reason = 'out of time: this machine is too busy for a quick run of all models';
      skipped.push({ ...gap, reason });
    }
    save(rows, skipped);
  }
  for (const { model, type, threads, phase, side, reason } of skipped) {
    const what = `${model} ${type}, ${threads} thread(s), ${phase}`;
    console.error(`skipped: ${what}: ${side ? `${side} failed: ` : ''}${reason}`);
  }
  return { rows, skipped };
}

/**
 * Writes the file atomically: an interrupted run leaves the previous content.
 * @param {string} path
 * @param {object} value
 */
function writeJson(path, value) {
  writeFileSync(`${path}.part`, `${JSON.stringify(value, null, 2)}\n`);
  renameSync(`${path}.part`, path);
}

const parts = `--threads ${options.threads} --cold none --section ${options.section} --append --models`;
/**
 * The beginnings of the document's sections, and the commands that write them.
 * @type {Record<string, {head: string, command: string}>}
 */
const sections = {
  peers: {
    head: `## Against wllama and native llama.cpp

![Decode and prefill speed of Wick, llama.cpp and wllama in tokens per second](benchmarks-peers.svg)`,
    command: 'make bench-peers',
  },
  people: {
    head: '## Models that people run',
    command: `node tools/bench/peers.mjs ${parts} ...`,
  },
  real: {
    head: '## Real weights',
    command: `node tools/bench/peers.mjs ${parts} real`,
  },
};

/** @param {Row[]} rows @param {ReturnType<typeof describeEnvironment>} environment @param {Bench} bench */
function writeDocument(rows, environment, { browser, versions, variant }) {
  // llama.cpp is last, because the text after it describes its kernels
  const last = (/** @type {string} */ peer) => Number(peer === 'llama.cpp');
  const peers = Object.entries(versions)
    .sort(([a], [b]) => last(a) - last(b))
    .map(([peer, version]) =>
      peer === 'llama.cpp' ? `llama.cpp from node-llama-cpp ${version}` : `${peer} ${version}`,
    );
  const rounds = quick
    ? `Medians of up to ${repetitions} rounds.`
    : `Medians of ${ROUNDS_MIN} to ${repetitions} rounds, with 95% bootstrap intervals of the ratio.`;
  const { head, command } = sections[options.section];
  const isMain = options.section === 'peers';
  writeSection(
    options.section,
    `${head}

${ratioLines(rows)}

${promptTokens} prompt tokens and ${newTokens} answer tokens, one run${isMain ? '' : ' for each model'}. ${rounds}

\`${quick ? 'QUICK=1 ' : ''}${command}\`: ${environmentLine(environment)}. Chromium ${browser.version()},
${peers.join(', ')}${variant ? ` with kernels for ${variant}` : ''}.

${phaseTables(rows)}`,
  );
  if (isMain) writePeersPicture(readPhaseTables(readSection('peers')));
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
// exits immediately: the files are complete, exit closes the browser, and llama.cpp's process ends without its parent
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));
try {
  const environment = describeEnvironment();
  /** @type {Bench} */
  const bench = { browser, url: server.url, clock: new Clock(), versions, variant: undefined };
  const out = resolve(root, options.out);
  mkdirSync(resolve(out, '..'), { recursive: true });
  const { rows, skipped } = await runTasks(bench, out, (done, gaps) => {
    writeJson(out, peersFile(done));
    writeJson(out.replace(/(\.json)?$/, '.details.json'), {
      environment: {
        ...environment,
        browser: `Chromium ${browser.version()}`,
        peers: versions,
        llama_cpp_cpu_variant: bench.variant ?? null,
        prompt_tokens: promptTokens,
        tokens: newTokens,
        repetitions,
        quick,
      },
      rows: done,
      skipped: gaps,
    });
  });
  if (bench.variant) console.log(`native llama.cpp uses its kernels for ${bench.variant}`);
  console.log(peersTable(rows));
  console.error(`wrote ${relative(root, out)}`);
  if (options.document) writeDocument(rows, environment, bench);
  // a machine that is too busy for a quick run is reported, but is not a failure
  const isBroken = ({ side = '', reason = '' }) =>
    side === 'wick' && !(quick && reason.startsWith(LATE));
  if (skipped.some(isBroken) || rows.length === 0) process.exitCode = 1;
} finally {
  await browser.close();
  await server.close();
}
