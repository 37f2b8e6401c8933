// Which lines of the engine each C test runs (clang's source-based coverage), so that a mutant's time goes to the tests
// that can see it. Tests of Node run everything, as far as this file knows.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { run } from '../../tests/support/process.mjs';
import { isOfNode, root } from './trial.mjs';

const programs = join(root, 'build/test/coverage');
const llvm = process.env.LLVM ?? '19';

/**
 * The lines of a source that have code, and whether they ran.
 * @typedef {Record<string, Record<number, boolean>>} Lines by file
 */

/**
 * @param {string} text as `llvm-cov export -format=lcov` prints it: "SF:" and a file, then "DA:line,count" of each line
 * @returns {Lines} of src/
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

/** What is known of the tests: kept for the next run with the same programs. */
export class Reach {
  #folder;
  #path;
  #stamp;
  /** @type {Map<string, Lines>} */
  #tests = new Map();

  /** @param {string} folder where it is kept */
  constructor(folder) {
    this.#folder = join(folder, 'profiles');
    this.#path = join(folder, 'reach.json');
    const archive = join(root, 'build/test/native-coverage/libwick.a');
    const bytes = existsSync(archive) ? readFileSync(archive) : '';
    this.#stamp = createHash('sha256').update(bytes).digest('hex');
    if (!existsSync(this.#path)) return;
    const { stamp, tests } = JSON.parse(readFileSync(this.#path, 'utf8'));
    if (stamp === this.#stamp) this.#tests = new Map(tests);
  }

  /** @param {string[]} tests as rooms.json has them @param {number} jobs side by side */
  async measure(tests, jobs) {
    const left = [...new Set(tests)].filter((test) => !isOfNode(test) && !this.#tests.has(test));
    mkdirSync(this.#folder, { recursive: true });
    const take = async (/** @type {number} */ job) => {
      for (let test = left.shift(); test; test = left.shift()) {
        this.#tests.set(test, await this.#measureOne(test, join(this.#folder, `${job}`)));
      }
    };
    await Promise.all(Array.from({ length: jobs }, (_, job) => take(job)));
    writeFileSync(this.#path, JSON.stringify({ stamp: this.#stamp, tests: [...this.#tests] }));
  }

  /** @param {string} test @param {string} folder of this run alone @returns {Promise<Lines>} */
  async #measureOne(test, folder) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
    const [name, ...words] = test.split(' ');
    const program = join(programs, name);
    const env = {
      WICK_ROOT: root,
      WICK_TMP: folder,
      WICK_SHARED: process.env.WICK_SHARED ?? resolve(root, '../shared'),
      LLVM_PROFILE_FILE: join(folder, '%p.profraw'),
    };
    await run(program, words, { env });
    const raw = readdirSync(folder).filter((each) => each.endsWith('.profraw'));
    if (raw.length === 0) return {};
    const merged = join(folder, 'merged.profdata');
    const paths = raw.map((each) => join(folder, each));
    execFileSync(`llvm-profdata-${llvm}`, ['merge', '-sparse', ...paths, '-o', merged]);
    const args = ['export', '-format=lcov', `-instr-profile=${merged}`, program];
    return linesOf(
      execFileSync(`llvm-cov-${llvm}`, args, { maxBuffer: 1 << 28, encoding: 'utf8' }),
    );
  }

  /**
   * Whether a test may see a fault of a line: it runs it, or nothing is known (of a table's line, of a test of Node).
   * @param {string} test
   * @param {string} file
   * @param {number} line
   */
  mayRun(test, file, line) {
    const files = this.#tests.get(test);
    if (!files || Object.keys(files).length === 0) return true;
    return file in files && (files[file][line] ?? true);
  }
}
