// Runs test files with Node's test runner, two at a time. Files in which a test failed run once more, alone.
//
//   node tools/run_tests.mjs FILE...      TAP where CI is set, else the reporter for people
//
// A test that fails twice fails the run. One that fails beside other tests and passes alone is unsteady: the run
// passes and names it, because a browser that was starved of its processor says nothing about the code. More than
// UNSTEADY_FILES_MAX files with failures are no accident, and what a fuzzer or a random test found counts at once:
// then nothing is run again. The last lines are the runner's counts, each test once, with the result that it had
// last; the failed tests stand before them, so that the end of a long log tells what is wrong. Before these stand
// the files that took the longest, so that one sees where the time of CI goes.

import { readFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { finished } from 'node:stream/promises';
import { run } from 'node:test';
import { spec, tap } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

const CONCURRENCY = 2;
const UNSTEADY_FILES_MAX = 6;
const SLOWEST_FILES = 12;
/** What the files of fuzzers name. Other random tests have a seed that only a soak changes. */
const FUZZERS = /build\/test\/fuzz/;
const COUNTS = ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo', 'duration_ms'];
const COUNT_LINE = new RegExp(`^(${COUNTS.join('|')}) ([\\d.]+)$`);

/** @typedef {{file: string, name: string, reason: string}} Failure */
/** @typedef {{counts: Record<string, number>, failures: Failure[], elapsedMs: Map<string, number>}} Outcome */

/**
 * The first line of an error's cause that is not empty, what a browser waited for, and the line of the test.
 * E.g. "locator.click: Timeout 5000ms exceeded. (waiting for getByText('Read'); books.test.mjs:12)".
 * @param {any} details
 * @param {string} [file]
 */
function reasonOf(details, file = '') {
  const error = details?.error?.cause ?? details?.error;
  const told = stripVTControlCharacters(String(error?.message ?? '')).trim();
  const [first, ...rest] = told.split('\n');
  const waited = rest.find((line) => line.includes('waiting for'))?.replace(/^.*?(?=waiting)/, '');
  const name = path.basename(file);
  const lines = String(error?.stack ?? '').split('\n');
  const place = name && lines.find((line) => line.includes(name))?.match(/([^/]+):(\d+):\d+\)?$/);
  const more = [waited, place && `${name}:${place[2]}`].filter(Boolean).join('; ');
  return more ? `${first} (${more})` : first;
}

/** Passes on what the runner tells but its counts: they come last, after what runs again. @param {AsyncIterable<any>} events */
async function* withoutCounts(events) {
  for await (const event of events) {
    const counted = event.type === 'test:diagnostic' && event.data.nesting === 0;
    if (!counted || !COUNT_LINE.test(event.data.message)) yield event;
  }
}

/**
 * Runs files and reports them on standard output.
 * @param {string[]} files
 * @param {number} concurrency
 * @returns {Promise<Outcome>}
 */
async function runFiles(files, concurrency) {
  /** @type {Record<string, number>} */
  const counts = {};
  /** @type {Failure[]} */
  const failures = [];
  /** Of each file as a whole. @type {Map<string, number>} */
  const elapsedMs = new Map();
  /** As much of Node's TestsStream as is used. @type {any} */
  const stream = run({ files, concurrency });
  stream.on('test:diagnostic', (/** @type {any} */ { message, nesting }) => {
    const [, name, value] = (nesting === 0 && COUNT_LINE.exec(message)) || [];
    if (name) counts[name] = Number(value);
  });
  stream.on('test:complete', (/** @type {any} */ { file, nesting, details }) => {
    if (nesting === 0 && file)
      elapsedMs.set(file, (elapsedMs.get(file) ?? 0) + details.duration_ms);
  });
  stream.on('test:fail', (/** @type {any} */ { name, file, details, todo }) => {
    const ofItsParts = details?.error?.failureType === 'subtestsFailed';
    if (todo === undefined && !ofItsParts)
      failures.push({ file, name, reason: reasonOf(details, file) });
  });
  const report = stream.compose(withoutCounts).compose(process.env.CI ? tap : new spec());
  report.pipe(process.stdout, { end: false });
  await finished(report);
  return { counts, failures, elapsedMs };
}

/** Whether all failures are of files whose tests do the same each time. @param {string[]} files */
async function mayRunAgain(files) {
  if (process.env.WICK_SOAK || !files.every(Boolean)) return false;
  if (files.length === 0 || files.length > UNSTEADY_FILES_MAX) return false;
  const sources = files.map((file) => readFile(file, 'utf8').catch(() => undefined));
  return (await Promise.all(sources)).every((one) => one !== undefined && !FUZZERS.test(one));
}

/** @param {Failure} failure */
const lineOf = ({ file, name, reason }) =>
  `# ${path.relative(process.cwd(), file ?? '')}: ${name}: ${reason}\n`;

/** E.g. "# slowest files: 210 s tests/pages/page.test.mjs, 90 s tests/engine/cli.test.mjs". @param {Map<string, number>} elapsedMs */
function slowestOf(elapsedMs) {
  const sorted = [...elapsedMs].sort(([, a], [, b]) => b - a).slice(0, SLOWEST_FILES);
  const told = sorted.map(
    ([file, ms]) => `${Math.round(ms / 1000)} s ${path.relative(process.cwd(), file)}`,
  );
  return `# slowest files: ${told.join(', ')}\n`;
}

/** The counts of all tests, those of the files that ran again as they ended the second time. @param {Outcome} first @param {Outcome | undefined} second */
function sum(first, second) {
  if (!second) return first.counts;
  const failed = first.counts.fail + first.counts.cancelled;
  /** @type {Record<string, number>} */
  const counts = { ...first.counts, fail: second.counts.fail, cancelled: second.counts.cancelled };
  counts.pass += failed - second.counts.fail - second.counts.cancelled;
  counts.duration_ms += second.counts.duration_ms;
  return counts;
}

/** Runs `files`, and those that failed once more. Gives the process's exit code. @param {string[]} files */
export async function runTests(files) {
  const first = await runFiles(files, CONCURRENCY);
  const again = [...new Set(first.failures.map(({ file }) => file))];
  const rerun = await mayRunAgain(again);
  const second = rerun ? await runFiles(again, 1) : undefined;
  const left = (second ?? first).failures;
  process.stdout.write(slowestOf(first.elapsedMs));
  if (rerun) process.stdout.write('# failed beside other tests, so that its file ran again:\n');
  if (rerun) for (const failure of first.failures) process.stdout.write(lineOf(failure));
  if (left.length > 0) process.stdout.write('# failed:\n');
  for (const failure of left) process.stdout.write(lineOf(failure));
  const counts = sum(first, second);
  for (const name of COUNTS) process.stdout.write(`# ${name} ${counts[name]}\n`);
  return counts.fail > 0 || counts.cancelled > 0 || left.length > 0 ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await runTests(process.argv.slice(2).map((file) => path.resolve(file)));
}
