// Records which lines of the engine each C test runs (clang's source-based coverage), so that a
// mutant's time is spent on tests that can detect it. Node tests are assumed to run everything.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { exportCounts, programs, runCounted } from '../coverage/profiles.mjs';
import { hashOf, isOfNode, root } from './trial.mjs';

/**
 * The lines with code in each source, and whether they ran.
 * @typedef {Record<string, Record<number, boolean>>} Lines by file
 */

/**
 * @param {string} text output of `llvm-cov export -format=lcov`: "SF:" and a file, then "DA:line,count" for each line
 * @returns {Lines} the lines of sources in src/
 */
export function linesOf(text) {
  /** @type {Lines} */
  const lines = {};
  let file = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('SF:')) file = relative(root, resolve(root, line.slice(3)));
    if (!line.startsWith('DA:') || !file.startsWith('src/')) continue;
    const [number, count] = line.slice(3).split(',').map(Number);
    lines[file] ??= {};
    lines[file][number] = count > 0;
  }
  return lines;
}

/** @param {string} test @returns {string} the name of its program */
const stampOf = (test) => hashOf(join(programs, test.split(' ')[0]));

/**
 * The coverage of the tests. It is stored for the next run, and reused for tests whose program is
 * unchanged.
 */
export class Reach {
  #folder;
  #path;
  /** @type {Map<string, {stamp: string, lines: Lines}>} */
  #tests = new Map();

  /** @param {string} folder where it is stored */
  constructor(folder) {
    this.#folder = join(folder, 'profiles');
    this.#path = join(folder, 'reach.json');
    if (!existsSync(this.#path)) return;
    const kept = new Map(JSON.parse(readFileSync(this.#path, 'utf8')));
    for (const [test, known] of kept)
      if (known.stamp === stampOf(test)) this.#tests.set(test, known);
  }

  /** @param {string[]} tests as in rooms.json @param {number} jobs number of parallel jobs */
  async measure(tests, jobs) {
    const left = [...new Set(tests)].filter((test) => !isOfNode(test) && !this.#tests.has(test));
    mkdirSync(this.#folder, { recursive: true });
    const take = async (/** @type {number} */ job) => {
      for (let test = left.shift(); test; test = left.shift()) {
        const lines = await this.#measureOne(test, join(this.#folder, `${job}`));
        this.#tests.set(test, { stamp: stampOf(test), lines });
      }
    };
    await Promise.all(Array.from({ length: jobs }, (_, job) => take(job)));
    writeFileSync(this.#path, JSON.stringify([...this.#tests]));
  }

  /**
   * @param {string} test
   * @param {string} folder used only by this run
   * @returns {Promise<Lines>}
   */
  async #measureOne(test, folder) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
    const [name, ...words] = test.split(' ');
    await runCounted(name, words, folder);
    return linesOf(exportCounts(folder, [name], '-format=lcov') ?? '');
  }

  /**
   * Returns whether a test may detect a fault in a line, because it runs the line, or because this is
   * unknown (for a line of a table, or a Node test).
   * @param {string} test
   * @param {string} file
   * @param {number} line
   */
  mayRun(test, file, line) {
    const files = this.#tests.get(test)?.lines;
    if (!files || Object.keys(files).length === 0) return true;
    return file in files && (files[file][line] ?? true);
  }
}
