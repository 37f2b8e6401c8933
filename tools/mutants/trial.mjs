// One worker's place to try mutants in: a copy of the sources and tests below build/mutants/, with links to
// what is not changed. A mutant is built there and its room's tests run until one of them fails.

import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** What the Makefile says of compilers: programs, flags and objects, between spaces. */
const given = (/** @type {string} */ name) =>
  (process.env[name] ?? '').split(' ').filter((word) => word !== '');

const sanitizers = {
  ASAN_OPTIONS: 'detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=1',
};

/**
 * `cpuMs` is the processor time of the test and of what it waited for: other work of the machine makes it no longer.
 * @typedef {{status: 'passed' | 'failed' | 'overdue', cpuMs: number}} Ended
 */
/** No test of CPU seconds waits so much longer for others, on a machine with much other work. */
const WAIT_TIMES = 12;
const WAIT_MS = 10_000;
/** Runs "$@" for $0 seconds of processor time and prints how many it took. */
const LIMITED = 'ulimit -t "$0"; TIMEFORMAT="cpu %U %S"; time "$@" 2>/dev/null';

/** @returns {Map<number, number[]>} the children of every process */
function childrenOfAll() {
  /** @type {Map<number, number[]>} */
  const children = new Map();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {} // it has ended
  }
  return children;
}

/** Ends a process and all that it has started, browsers in groups of their own, too. @param {number} pid */
function endTree(pid) {
  const children = childrenOfAll();
  const all = [pid];
  for (let i = 0; i < all.length; i++) all.push(...(children.get(all[i]) ?? []));
  for (const each of all) {
    try {
      process.kill(each, 'SIGKILL');
    } catch {} // it has ended
  }
}

/**
 * Runs a test until it ends, a test of it fails, or it is overdue.
 * @param {string} program
 * @param {string[]} args
 * @param {{cwd: string, env: Record<string, string>, limitMs: number}} options of processor time
 * @returns {Promise<Ended>}
 */
export function runUntilFailure(program, args, { cwd, env, limitMs }) {
  return new Promise((settle) => {
    const cpuSeconds = String(Math.ceil(limitMs / 1000));
    const child = spawn('bash', ['-c', LIMITED, cpuSeconds, program, ...args], {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    /** @type {Ended['status'] | undefined} */
    let status;
    const end = (/** @type {Ended['status']} */ why) => {
      status ??= why;
      if (child.pid) endTree(child.pid);
    };
    const timer = setTimeout(() => end('overdue'), limitMs * WAIT_TIMES + WAIT_MS);
    let line = '';
    child.stdout.on('data', (bytes) => {
      const lines = `${line}${bytes}`.split('\n');
      line = lines.pop() ?? '';
      if (lines.some((text) => /^\s*not ok/.test(text) && !/# TODO/.test(text))) end('failed');
    });
    let errors = '';
    child.stderr.on('data', (bytes) => {
      errors += bytes;
    });
    child.on('error', () => end('failed'));
    child.on('exit', async (code) => {
      clearTimeout(timer);
      child.stdout.destroy();
      await new Promise((done) => setTimeout(done, 1)); // what it printed last
      child.stderr.destroy();
      const [, user, system] = /cpu ([\d.]+) ([\d.]+)/.exec(errors) ?? [];
      const cpuMs = 1000 * (Number(user ?? 0) + Number(system ?? 0));
      // SIGKILL or SIGXCPU: bash tells of signals as 128 and more
      const isOverdue = code === 128 + 9 || code === 128 + 24;
      status ??= code === 0 ? 'passed' : isOverdue ? 'overdue' : 'failed';
      settle({ status, cpuMs });
    });
  });
}

/** @param {string} program @param {string[]} args @param {string} [input] */
function runTool(program, args, input) {
  return spawnSync(program, args, { cwd: root, input, maxBuffer: 1 << 28 });
}

/** @param {string} file @param {string} source @param {string[]} flags @param {string} out */
function compile(file, source, flags, out) {
  const [compiler] = given('MUTANTS_CC');
  const args = [
    ...flags,
    '-Wno-everything',
    '-Werror=incompatible-pointer-types',
    `-I${dirname(file)}`,
  ];
  return runTool(compiler, [...args, '-x', 'c', '-c', '-', '-o', out], source).status === 0;
}

/** @param {string} test */
export const isOfNode = (test) => /\.mjs( |$)/.test(test);

/** A mutant's tests together, in processor time. */
export const BUDGET_MS = 20_000;

/**
 * Runs tests until one does not pass. What is only slow, beside other work of the machine, ends within twice the time:
 * a test that is overdue counts when it is overdue again.
 * @param {Pick<Place, 'runTest'>} place
 * @param {string[]} tests in their order
 * @param {(test: string) => number} usualMs how long a test takes without a mutant, in processor time
 * @param {string} object
 * @returns {Promise<{outcome: 'killed' | 'timeout' | 'survived', by: string}>}
 */
export async function tryTests(place, tests, usualMs, object) {
  let leftMs = BUDGET_MS;
  for (const test of tests) {
    if (leftMs <= 0) return { outcome: 'survived', by: `no time for ${test}` };
    const limitMs = 3 * usualMs(test) + 2000;
    let ended = await place.runTest(test, limitMs, object);
    if (ended.status === 'overdue') ended = await place.runTest(test, 2 * limitMs, object);
    if (ended.status === 'failed') return { outcome: 'killed', by: test };
    if (ended.status === 'overdue') return { outcome: 'timeout', by: test };
    leftMs -= ended.cpuMs;
  }
  return { outcome: 'survived', by: '' };
}

export class Place {
  /** @param {string} folder */
  constructor(folder) {
    this.folder = folder;
    this.tree = join(folder, 'tree');
    this.out = join(folder, 'out');
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(folder, 'temporary'), { recursive: true });
    mkdirSync(this.out);
    this.#copyTree();
  }

  #copyTree() {
    const copied = ['js', 'tests', 'tools', 'package.json'];
    mkdirSync(join(this.tree, 'build/native'), { recursive: true });
    for (const name of readdirSync(root)) {
      if (/^(build|dist|\.git)$/.test(name)) continue;
      const to = join(this.tree, name);
      if (copied.includes(name)) cpSync(join(root, name), to, { recursive: true });
      else symlinkSync(join(root, name), to);
    }
    for (const name of readdirSync(join(root, 'build'))) {
      if (/^(native|mutants)$/.test(name)) continue;
      symlinkSync(join(root, 'build', name), join(this.tree, 'build', name));
    }
    cpSync(join(root, 'build/native/wick'), join(this.tree, 'build/native/wick'));
    cpSync(join(root, 'dist'), join(this.tree, 'dist'), { recursive: true });
  }

  /** Where the host's own temporary files go. */
  get #env() {
    const temporary = join(this.folder, 'temporary');
    const shared = process.env.WICK_SHARED ?? resolve(root, '../shared');
    return { WICK_ROOT: root, WICK_TMP: temporary, WICK_SHARED: shared, ...sanitizers };
  }

  /**
   * @param {string} test the name of a C test and which parts of it, or a file below tests/ and which of its suites
   * @param {number} limitMs of processor time
   * @param {string} [object] the mutant's archive: C tests are linked with it before the engine's
   * @returns {Promise<Ended>}
   */
  async runTest(test, limitMs, object) {
    const options = { env: this.#env, limitMs };
    const [file, ...words] = test.split(' ');
    if (isOfNode(test)) {
      const only = words.length === 0 ? [] : [`--test-name-pattern=${words.join(' ')}`];
      const args = ['--test-reporter=tap', ...only, join(this.tree, file)];
      return runUntilFailure(process.execPath, args, { ...options, cwd: this.tree });
    }
    const built = join(root, 'build/test/native', file);
    if (!object) return runUntilFailure(built, words, { ...options, cwd: root });
    const program = join(this.out, 'test');
    const inputs = [`build/obj/asan/tests/c/${file}.o`, object, 'build/test/native-asan/libwick.a'];
    const [compiler] = given('MUTANTS_CC');
    const linked = runTool(compiler, [...inputs, ...given('MUTANTS_TEST_LINK'), '-o', program]);
    if (linked.status !== 0) throw new Error(`${test} does not link: ${linked.stderr}`);
    return runUntilFailure(program, words, { ...options, cwd: root });
  }

  /**
   * @param {string} file
   * @param {string} source
   * @param {boolean} isProgram the command line's tests are among the room's
   * @returns {'uncompilable' | 'equivalent' | {object: string}}
   */
  buildC(file, source, isProgram) {
    const original = readFileSync(join(root, file), 'utf8');
    const plain = given('MUTANTS_PLAIN_FLAGS');
    const unchanged = join(this.out, 'unchanged.o');
    const changed = join(this.out, 'changed.o');
    if (!compile(file, source, plain, changed)) return 'uncompilable';
    compile(file, original, plain, unchanged);
    if (readFileSync(unchanged).equals(readFileSync(changed))) return 'equivalent';
    if (isProgram) {
      const own = `build/obj/native/${file.replace(/\.c$/, '.o')}`;
      const objects = given('MUTANTS_NATIVE_OBJECTS').map((name) =>
        name === own ? changed : name,
      );
      const wick = join(this.tree, 'build/native/wick');
      const [compiler] = given('MUTANTS_CC');
      const linked = runTool(compiler, [...objects, ...given('MUTANTS_NATIVE_LINK'), '-o', wick]);
      if (linked.status !== 0) return 'uncompilable';
    }
    if (file.startsWith('src/cli/')) return { object: '' };
    const object = join(this.out, 'mutant.o');
    if (!compile(file, source, given('MUTANTS_TEST_FLAGS'), object)) return 'uncompilable';
    // before the engine's archive, and an archive, too: tests may have their own in place of a source
    const archive = join(this.out, 'mutant.a');
    rmSync(archive, { force: true });
    const [archiver] = given('MUTANTS_AR');
    if (runTool(archiver, ['rcs', archive, object]).status !== 0) throw new Error('no archive');
    return { object: archive };
  }

  /**
   * @param {string} file
   * @param {string} source
   * @returns {'uncompilable' | 'equivalent' | {object: ''}}
   */
  buildJs(file, source) {
    writeFileSync(join(this.tree, file), source);
    const bundle = join(this.tree, 'tools/build/bundle.mjs');
    const made = spawnSync(process.execPath, [bundle], { cwd: this.tree });
    if (made.status !== 0) return 'uncompilable';
    const isSame = (/** @type {string} */ name) => {
      const [a, b] = [join(root, 'dist', name), join(this.tree, 'dist', name)];
      return existsSync(a) && readFileSync(a).equals(readFileSync(b));
    };
    const names = readdirSync(join(root, 'dist')).filter((name) => name.endsWith('.js'));
    return names.every(isSame) ? 'equivalent' : { object: '' };
  }

  /** Takes a mutant back. @param {string} file */
  restore(file) {
    if (file.endsWith('.js')) cpSync(join(root, file), join(this.tree, file));
    else cpSync(join(root, 'build/native/wick'), join(this.tree, 'build/native/wick'));
  }
}
