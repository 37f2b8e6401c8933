// Runs the 80 cases of the seed systems' specification: the C tests whose names begin with a case's
// id (PK-23: `TEST(pk_23_...)`), in a native build with sanitizers. Prints one line per case, ordered
// by id, and then the numbers of passed and failed cases. A case fails if it has no test or its test
// was skipped. `make conformance` builds the tests first.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { built, locate, root } from '../tests/support/locate.mjs';
import { run } from '../tests/support/process.mjs';

/** The number of cases in each part. */
const parts = { PX: 10, KQ: 12, PK: 31, SC: 6, FL: 3, DM: 4, TN: 7, BN: 7 };
const ids = Object.entries(parts).flatMap(([part, count]) =>
  Array.from({ length: count }, (_, i) => `${part}-${String(i + 1).padStart(2, '0')}`),
);

/** @typedef {{name: string, verdict: 'ok' | 'failed' | 'skipped', notes: string[]}} Outcome */

/**
 * @param {string} report output of a test program
 * @returns {Map<string, Outcome[]>} the outcomes by case id
 */
function readOutcomes(report) {
  /** @type {Map<string, Outcome[]>} */
  const outcomes = new Map();
  /** @type {string[]} */
  let notes = [];
  for (const line of report.split('\n')) {
    const test = /^(not )?ok \d+ (\w+)(?: # SKIP (.*))?$/.exec(line);
    if (!test) {
      if (line.startsWith('#   ')) notes.push(line.slice(4));
      continue;
    }
    const [, failed, name, reason] = test;
    const [, part, number, words] = /^([a-z]{2})_(\d\d)_(\w+)$/.exec(name) ?? [];
    if (part) {
      const id = `${part.toUpperCase()}-${number}`;
      const verdict = failed ? 'failed' : reason === undefined ? 'ok' : 'skipped';
      if (reason !== undefined) notes.push(reason);
      const outcome = { name: words.replaceAll('_', ' '), verdict, notes };
      outcomes.set(id, [...(outcomes.get(id) ?? []), /** @type {Outcome} */ (outcome)]);
    }
    notes = [];
  }
  return outcomes;
}

/**
 * @param {string} folder for the tests' files
 * @returns {Promise<{outcomes: Map<string, Outcome[]>, faults: string[]}>} the outcomes, and a
 * message for each program that failed
 */
async function runPrograms(folder) {
  const programs = readdirSync(join(root, 'tests/c/conformance'))
    .filter((file) => /^conformance_\w+_test\.c$/.test(file))
    .map((file) => file.slice(0, -2));
  const env = { WICK_SHARED: locate('shared').path, WICK_ROOT: root, WICK_TMP: folder };
  const outcomes = new Map();
  const faults = [];
  for (const program of programs) {
    const result = await run(built(`test/native/${program}`), [], { env });
    const found = readOutcomes(result.stdout.toString());
    for (const [id, tests] of found) outcomes.set(id, [...(outcomes.get(id) ?? []), ...tests]);
    const allOk = [...found.values()].flat().every(({ verdict }) => verdict !== 'failed');
    if (result.signal || (result.code !== 0 && allOk)) {
      faults.push(`${program}: ${result.signal ?? `status ${result.code}`}\n${result.stderr}`);
    }
  }
  return { outcomes, faults };
}

/** @param {string} id @param {Outcome[] | undefined} tests @returns {boolean} whether it passed */
function printCase(id, tests) {
  const worst = tests?.find(({ verdict }) => verdict !== 'ok');
  const names = tests?.map(({ name }) => name).join('; ');
  console.log(tests ? `${id} ${worst?.verdict ?? 'ok'} ${names}` : `${id} missing`);
  for (const note of tests?.flatMap(({ notes }) => notes) ?? []) console.log(`  ${note}`);
  return tests !== undefined && worst === undefined;
}

const folder = mkdtempSync(join(tmpdir(), 'wick-conformance-'));
const { outcomes, faults } = await runPrograms(folder);
rmSync(folder, { recursive: true });
const passed = ids.filter((id) => printCase(id, outcomes.get(id))).length;
const unknown = [...outcomes.keys()].filter((id) => !ids.includes(id));
if (unknown.length > 0) console.log(`unknown ids: ${unknown.join(', ')}`);
for (const fault of faults) console.log(fault.trim());
console.log(`${passed} passed, ${ids.length - passed} failed`);
process.exitCode = passed === ids.length && faults.length + unknown.length === 0 ? 0 : 1;
