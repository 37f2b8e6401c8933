// Runs test files with Node's test runner, several at a time, and ends with the runner's counts.
//
//   node tools/run_tests.mjs FILE...          runs these files completely
//   node tools/run_tests.mjs --level main     what `make test` runs
//   node tools/run_tests.mjs --level all      what `make test-all` runs; --group NAME limits it to a folder of tests/
//   node tools/run_tests.mjs --level changed  `make test`, and all tests of groups with changes since the last full run;
//                                             --list prints these groups instead
//
// The report is TAP if CI is set, otherwise Node's spec format. As many CPU-bound files run in parallel as the machine has
// cores. Some files that open browsers run at the same time, and more of these once the CPU-bound files have ended. Files
// that measure time or memory run one at a time at the end. tests/plan.mjs defines the kind of each file. The longest
// files start first.
//
// A failing test fails the run. Only `--level all` reruns browser files with failures, one at a time:
// a test that then passes is reported as unsteady. If more than UNSTEADY_FILES_MAX files failed, no
// file is rerun. The last lines are the counts, with each test counted once; before them come the
// failed tests, the slowest files, and the durations of setup, build and tests.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { run } from 'node:test';
import { spec, tap } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { parseArgs, stripVTControlCharacters } from 'node:util';
import { nameOf, planOf, root } from '../tests/plan.mjs';
import { changedGroups, findTestFiles, recordFullRun } from './changed_tests.mjs';

/**
 * The number of files of a queue that run at the same time. A browser file uses a third to all of a
 * core, so the `cpu` files and half as many browser files keep the cores busy. With more, tests would
 * only wait longer for each other while pages poll.
 */
export const CONCURRENCY = {
  cpu: availableParallelism(),
  browserNextToCpu: Math.min(8, Math.ceil(1.5 * availableParallelism())),
  browser: Math.min(8, 3 * availableParallelism()),
  alone: 1,
};
/**
 * Ends a file that hangs, so that the report contains it. Next to other files, a file takes up to
 * eight times as long as without them.
 */
const FILE_TIMEOUT_MS = 45 * 60_000;
const UNSTEADY_FILES_MAX = 8;
const SLOWEST_FILES = 20;
const DURATIONS = path.join(root, 'build/test/durations.json');
const COUNTS = ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo', 'duration_ms'];
const COUNT_LINE = new RegExp(`^(${COUNTS.join('|')}) ([\\d.]+)$`);

/** @typedef {{name: string, reason: string}} Failure */
/** @typedef {{counts: Record<string, number>, failures: Failure[], elapsedMs: number}} Outcome */
/** @typedef {{level: 'main' | 'all' | undefined, files: string[]}} Phase files that run at one level */

/**
 * Returns the first non-empty line of an error's cause, the condition that a browser waited for, and
 * the line of the test. For example "locator.click: Timeout 5000ms exceeded. (waiting for
 * getByText('Read'); books.test.mjs:12)".
 * @param {any} details
 * @param {string} [file]
 */
function reasonOf(details, file = '') {
  const error = details?.error?.cause ?? details?.error;
  const message = stripVTControlCharacters(String(error?.message ?? '')).trim();
  const [first, ...rest] = message.split('\n');
  const waited = rest.find((line) => line.includes('waiting for'))?.replace(/^.*?(?=waiting)/, '');
  const name = path.basename(file);
  const lines = String(error?.stack ?? '').split('\n');
  const place = name && lines.find((line) => line.includes(name))?.match(/([^/]+):(\d+):\d+\)?$/);
  const more = [waited, place && `${name}:${place[2]}`].filter(Boolean).join('; ');
  return more ? `${first} (${more})` : first;
}

/** Prints the events of all files as one report. */
class Report {
  #events = new PassThrough({ objectMode: true });
  #printed;
  #tests = 0;

  constructor() {
    const report = /** @type {any} */ (this.#events).compose(process.env.CI ? tap : new spec());
    report.pipe(process.stdout, { end: false });
    this.#printed = finished(report);
  }

  /** Adds the events of a whole file, without its own plan and counts. @param {any[]} events */
  add(events) {
    for (const { type, data } of events) {
      const ofFile = data?.nesting === 0;
      if (ofFile && type === 'test:plan') continue;
      if (ofFile && type === 'test:diagnostic' && COUNT_LINE.test(data.message)) continue;
      const isResult = ofFile && (type === 'test:pass' || type === 'test:fail');
      this.#events.write({ type, data: isResult ? { ...data, testNumber: ++this.#tests } : data });
    }
  }

  async end() {
    this.#events.end({ type: 'test:plan', data: { nesting: 0, count: this.#tests } });
    await this.#printed;
  }
}

/**
 * Runs a file and reports it when it has ended.
 * @param {string} file
 * @param {Report} report
 * @param {number} timeout
 * @returns {Promise<Outcome>}
 */
async function runFile(file, report, timeout) {
  const begun = performance.now();
  /** @type {Record<string, number>} */
  const counts = {};
  /** @type {Failure[]} */
  const failures = [];
  /** @type {any[]} */
  const events = [];
  /** Node's TestsStream. @type {AsyncIterable<any>} */
  const stream = run({ files: [file], concurrency: 1, timeout });
  for await (const event of stream) {
    const { type, data } = event;
    events.push(event);
    if (type === 'test:diagnostic') {
      const [, name, value] = (data.nesting === 0 && COUNT_LINE.exec(data.message)) || [];
      if (name) counts[name] = Number(value);
    }
    const ofItsParts = data?.details?.error?.failureType === 'subtestsFailed';
    if (type === 'test:fail' && data.todo === undefined && !ofItsParts)
      failures.push({ name: data.name, reason: reasonOf(data.details, file) });
  }
  report.add(events);
  return { counts, failures, elapsedMs: performance.now() - begun };
}

/**
 * @returns {Promise<Record<string, number>>} the time in milliseconds that each file took in the
 * last run
 */
async function readDurations() {
  try {
    return JSON.parse(await readFile(DURATIONS, 'utf8'));
  } catch {
    return {};
  }
}

/** @param {Map<string, Outcome>} outcomes */
async function writeDurations(outcomes) {
  const durations = await readDurations();
  for (const [file, { elapsedMs }] of outcomes) durations[nameOf(file)] = Math.round(elapsedMs);
  await mkdir(path.dirname(DURATIONS), { recursive: true });
  await writeFile(DURATIONS, `${JSON.stringify(durations, undefined, 1)}\n`);
}

/**
 * Sorts the files by their time in the last run, the longest first; without a last run, keeps the plan's order.
 * @param {string[]} files
 * @param {Record<string, number>} durations
 */
const sorted = (files, durations) =>
  files.toSorted((a, b) => {
    const [first, second] = [durations[nameOf(a)], durations[nameOf(b)]];
    if (first !== undefined && second !== undefined) return second - first;
    return planOf(a).rank - planOf(b).rank;
  });

/** Runs files and removes them from the list, which several calls may share. @param {string[]} left @param {number} concurrency @param {(file: string) => Promise<void>} runOne */
async function drain(left, concurrency, runOne) {
  const work = async () => {
    for (let file = left.shift(); file !== undefined; file = left.shift()) await runOne(file);
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}

/**
 * Runs the files of a phase by their queues.
 * @param {Phase} phase
 * @param {Report} report
 * @param {Map<string, Outcome>} outcomes
 */
async function runPhase({ level, files }, report, outcomes) {
  process.env.WICK_TEST_LEVEL = level;
  if (level === undefined) delete process.env.WICK_TEST_LEVEL;
  const timeout = level === undefined ? Number.POSITIVE_INFINITY : FILE_TIMEOUT_MS;
  const ordered = sorted(files, await readDurations());
  const of = (/** @type {import('../tests/plan.mjs').Queue} */ queue) =>
    ordered.filter((file) => planOf(file).queue === queue);
  const runSome = (/** @type {string[]} */ left, /** @type {number} */ concurrency) =>
    drain(left, concurrency, async (file) => {
      outcomes.set(file, await runFile(file, report, timeout));
    });
  const { cpu, browserNextToCpu, browser, alone } = CONCURRENCY;
  const browserFiles = of('browser');
  await Promise.all([
    runSome(browserFiles, browserNextToCpu),
    runSome(of('cpu'), cpu).then(() => runSome(browserFiles, browser - browserNextToCpu)),
  ]);
  await runSome(of('alone'), alone);
}

/** @param {Outcome} outcome */
const hasFailed = ({ counts, failures }) =>
  counts.fail > 0 || counts.cancelled > 0 || failures.length > 0;

/**
 * Reruns a phase's failed browser files, one at a time.
 * @param {Phase} phase
 * @param {Report} report
 * @param {Map<string, Outcome>} outcomes receives the second results
 * @returns {Promise<string[]>} lines about the first failures
 */
async function runAgain({ level, files }, report, outcomes) {
  const failed = [...outcomes].filter(([, outcome]) => hasFailed(outcome));
  if (level !== 'all' || failed.length > UNSTEADY_FILES_MAX) return [];
  const again = failed.filter(([file]) => files.includes(file) && planOf(file).usesBrowser);
  for (const [file] of again) outcomes.set(file, await runFile(file, report, FILE_TIMEOUT_MS));
  return again.flatMap(([file, { failures }]) => failures.map((one) => lineOf(file, one)));
}

/** @param {string} file @param {Failure} failure */
const lineOf = (file, { name, reason }) =>
  `# ${path.relative(process.cwd(), file)}: ${name}: ${reason}\n`;

/** E.g. "# slowest files: 210 s tests/pages/page.test.mjs, 90 s tests/engine/cli.test.mjs". @param {Map<string, Outcome>} outcomes */
function slowestOf(outcomes) {
  const slowest = [...outcomes]
    .sort(([, a], [, b]) => b.elapsedMs - a.elapsedMs)
    .slice(0, SLOWEST_FILES)
    .map(([file, { elapsedMs }]) => {
      return `${Math.round(elapsedMs / 1000)} s ${path.relative(process.cwd(), file)}`;
    });
  return `# slowest files: ${slowest.join(', ')}\n`;
}

/**
 * @param {number} elapsedMs of the tests
 * @param {string} times when setup began, setup ended and the build ended, in seconds
 */
function timesOf(elapsedMs, times) {
  const [begun, ready, built] = times.split(/\s+/).map(Number);
  const before = built > 0 ? `setup ${ready - begun} s, build ${built - ready} s, ` : '';
  return `# ${before}tests ${Math.round(elapsedMs / 1000)} s\n`;
}

/** Runs the phases, one after the other, and reports them. @param {Phase[]} phases */
async function runTests(phases) {
  const begun = performance.now();
  const report = new Report();
  /** @type {Map<string, Outcome>} */
  const outcomes = new Map();
  /** @type {string[]} */
  const unsteady = [];
  process.setMaxListeners(0); // each run listens for uncaught errors
  for (const phase of phases) await runPhase(phase, report, outcomes);
  for (const phase of phases) unsteady.push(...(await runAgain(phase, report, outcomes)));
  await report.end();
  const elapsedMs = performance.now() - begun;
  const print = (/** @type {string} */ line) => process.stdout.write(line);
  print(slowestOf(outcomes));
  print(timesOf(elapsedMs, process.env.WICK_TEST_TIMES ?? ''));
  if (unsteady.length > 0) print('# failed next to other tests, so the file was rerun:\n');
  for (const line of unsteady) print(line);
  const failed = [...outcomes].filter(([, outcome]) => hasFailed(outcome));
  if (failed.length > 0) print('# failed:\n');
  for (const [file, { failures }] of failed)
    for (const failure of failures) print(lineOf(file, failure));
  const sum = (/** @type {string} */ name) =>
    [...outcomes.values()].reduce((total, { counts }) => total + (counts[name] ?? 0), 0);
  for (const name of COUNTS)
    print(`# ${name} ${name === 'duration_ms' ? elapsedMs.toFixed(3) : sum(name)}\n`);
  return outcomes;
}

/** @param {string | undefined} level @param {string[]} files @returns {Promise<Phase[]>} */
async function phasesOf(level, files) {
  if (level === undefined || level === 'all') return [{ level, files }];
  const whole = level === 'changed' ? await changedGroups() : [];
  const isWhole = (/** @type {string} */ file) => whole.includes(planOf(file).group);
  return [
    { level: 'main', files: files.filter((file) => planOf(file).isMain && !isWhole(file)) },
    { level: 'all', files: files.filter(isWhole) },
  ];
}

/** Loaded only when needed, because --list runs before the packages are installed. */
const startServers = async () =>
  (await import('../tests/support/browser_server.mjs')).startBrowserServers();

/** @param {string[]} args @returns {Promise<number>} the exit code */
async function main(args) {
  const { values, positionals } = parseArgs({
    args,
    options: { level: { type: 'string' }, group: { type: 'string' }, list: { type: 'boolean' } },
    allowPositionals: true,
  });
  const { level, group, list } = values;
  if (list) {
    console.log((await changedGroups()).join(' '));
    return 0;
  }
  const named = positionals.map((file) => path.resolve(file));
  const all = named.length > 0 ? named : await findTestFiles();
  const files = all.filter((file) => !group || planOf(file).group === group);
  const phases = await phasesOf(level, files);
  const needsBrowser = named.length === 0 && files.some((file) => planOf(file).usesBrowser);
  const servers = needsBrowser ? await startServers() : undefined;
  Object.assign(process.env, servers?.env); // for the test files
  const outcomes = await runTests(phases);
  await servers?.close();
  const passed = outcomes.size > 0 && ![...outcomes.values()].some(hasFailed);
  if (named.length === 0) await writeDurations(outcomes);
  if (named.length === 0 && passed && level === 'all' && !group) await recordFullRun();
  return passed ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.exitCode = await main(process.argv.slice(2));
