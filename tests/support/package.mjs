// The npm package as published (dist/, or the build in $WICK_DIST), and helpers for its tests: models,
// engines that are closed after the test, and waiting.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { built, root } from './locate.mjs';
import { run } from './process.mjs';

export const dist = resolve(root, process.env.WICK_DIST ?? 'dist');
if (!existsSync(dist)) throw new Error(`${dist} is missing: run make`);

/** @type {typeof import('../../js/index.js')} */
const entry = await import(pathToFileURL(join(dist, 'index.js')).href);
export const { WickError } = entry;

/** Set by tests/package/js_high.test.mjs: engines use 64-bit addresses above 4 GiB. */
export const isHigh = process.env.WICK_HIGH === '1';
const highWorker = new URL('high/worker.mjs', import.meta.url);

/**
 * Creates an engine with plain SIMD, which is bit-identical to the native build.
 * @param {any} options of createEngine
 */
function createHigh(options) {
  const build = `simd128-${options?.threads === 1 ? 'single' : 'threads'}`;
  const wasm = pathToFileURL(join(dist, `wasm/wick-${build}.wasm`));
  return entry.createEngine({ memoryLimit: 12 * 2 ** 30, worker: highWorker, wasm, ...options });
}

/** @type {typeof entry.createEngine} */
export const createEngine = isHigh ? createHigh : entry.createEngine;

/** `wick-llm-demo-model`. */
export const modelFolder = resolve(root, 'examples/models');
export const modelPath = join(modelFolder, 'wick-2.6m-q8_0.gguf');

/** Options of createEngine, whose source may be missing. */
/** @typedef {import('../../js/index.js').EngineSettings & import('../../js/index.js').ModelSource} EngineOptions */

/**
 * Opens an engine that is closed when the test ends, even after a failure.
 * @param {import('node:test').TestContext} t
 * @param {EngineOptions} [options] default: the demo model, with one thread
 */
export async function openEngine(t, options = { file: modelPath }) {
  const engine = await createEngine(/** @type {any} */ ({ threads: 1, ...options }));
  t.after(() => engine.close());
  return engine;
}

/**
 * Opens an engine that accepts requests, but has no weights until `release` is called. All requests
 * sent before then are queued in order when the first pass starts.
 * @param {import('node:test').TestContext} t
 * @param {Partial<EngineOptions>} [options]
 */
export async function openHeldEngine(t, options = {}) {
  const bytes = readFileSync(modelPath);
  const half = bytes.length >> 1;
  const release = new AbortController();
  async function* stream() {
    yield bytes.subarray(0, half);
    if (!release.signal.aborted) await once(release.signal, 'abort');
    yield bytes.subarray(half);
  }
  const engine = await openEngine(t, { ...options, stream: stream(), eager: true });
  return { engine, release: () => release.abort() };
}

/** @returns {string} a folder that is removed after the tests of this file */
export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'wick-js-'));
  after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/**
 * Writes a model with random weights.
 * @param {string} shape
 * @param {string} type
 * @param {string} path
 */
export async function synthesize(shape, type, path) {
  const { code, stderr } = await run(built('native/wick'), ['synth', shape, type, path]);
  if (code !== 0) throw new Error(stderr);
}

/** @param {number} ms */
export const sleep = (ms) => new Promise((settle) => setTimeout(settle, ms));

/** The time limit for waits that would never end, even on a busy machine. */
const PATIENCE_MS = 300_000;

/**
 * @param {() => boolean | Promise<boolean>} condition
 * @param {string} what the expected event, for the error message
 * @param {number} [intervalMs] between two checks
 * @param {number} [longestMs] limit up to which the interval grows
 */
export async function waitUntil(condition, what, intervalMs = 5, longestMs = intervalMs) {
  let pauseMs = intervalMs;
  for (const end = Date.now() + PATIENCE_MS; !(await condition()); await sleep(pauseMs)) {
    if (Date.now() > end) throw new Error(`timed out waiting for: ${what}`);
    pauseMs = Math.min(longestMs, pauseMs * 1.5);
  }
}

/**
 * Evaluating in a page takes milliseconds of CPU time in four processes, which other tests need, so the page is checked less
 * often the longer a wait lasts.
 * @param {() => boolean | Promise<boolean>} condition @param {string} what the expected event, for the error message
 */
export const waitForPage = (condition, what) => waitUntil(condition, what, 10, 100);

/**
 * Like page.waitForFunction, but does not poll with `eval` in the page, which the pages' policies
 * forbid, and does not treat a promise as true.
 * @param {{evaluate: (condition: string) => Promise<any>}} page
 * @param {string} condition
 */
export const untilTrue = (page, condition) =>
  waitForPage(() => page.evaluate(condition), condition);

/** @param {import('../../js/index.js').Generation} generation */
export function resultOf(generation) {
  const { result } = generation;
  if (!result) throw new Error('the generation has not ended');
  return result;
}

/** @param {import('../../js/index.js').Engine} engine */
export async function assertSpeaks(engine) {
  const text = await engine
    .generate('Hello', { temperature: 0, maxTokens: 4, ignoreEnd: true })
    .text();
  assert.ok(text.length > 0);
}

/** @param {string} code @returns {(error: any) => boolean} a check for assert.rejects */
export const hasCode = (code) => (error) => {
  if (error instanceof WickError && error.code === code) return true;
  throw new Error(`expected ${code}, got ${error?.code ?? error?.name}: ${error?.message}`);
};

/** @param {any} error */
export const isAbort = (error) => error?.name === 'AbortError';

/** Creates a function for createEngine's `worker` option that records the workers it creates. */
export function keepWorkers() {
  /** @type {Worker[]} */
  const workers = [];
  const worker = () => {
    const made = new Worker(isHigh ? highWorker : join(dist, 'worker.js'));
    workers.push(made);
    return made;
  };
  return { workers, worker };
}
