// Manages the directory in which a worker tries mutants: a copy of the sources and tests in
// build/mutants/, with links to the unchanged files. A mutant is built there, and the tests of its
// folder run until one of them fails.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
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
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** @param {string} file @returns {string} the hash of the file's content */
export const hashOf = (file) =>
  existsSync(file) ? createHash('sha256').update(readFileSync(file)).digest('hex') : 'none';

/** Reads a compiler setting from the Makefile: programs, flags or objects, separated by spaces. */
const given = (/** @type {string} */ name) =>
  (process.env[name] ?? '').split(' ').filter((word) => word !== '');

const sanitizers = {
  ASAN_OPTIONS: 'detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=1',
};

/**
 * The time of a test and its child processes: `cpuMs` of CPU time, and `idleMs` without any work to
 * do. Other load on the machine does not increase either of them.
 * @typedef {{cpuMs: number, idleMs: number}} Times
 */
/** @typedef {Times & {status: 'passed' | 'failed' | 'overdue', skipped?: number}} Ended `skipped` tests, which detect nothing */
/** The native programs, and the variable that lists the objects of each. */
const PROGRAMS = { wick: 'MUTANTS_WICK_OBJECTS', 'wick-lab': 'MUTANTS_WICK_LAB_OBJECTS' };
/**
 * Because of other load on the machine, a test may take up to this multiple of its CPU time.
 */
const WAIT_TIMES = 30;
const LOOK_MS = 500;
/**
 * A test that uses a smaller share of a processor than this is only polling with a timer.
 */
const IDLE_SHARE = 0.1;
/** Runs "$@" for at most $0 seconds of CPU time and prints how many it used. */
const LIMITED = 'ulimit -t "$0"; TIMEFORMAT="cpu %U %S"; time "$@" 2>/dev/null';

/**
 * @param {string} path
 * @returns {string[]} the fields starting with the state, because the name before it may contain anything
 */
function statOf(path) {
  const stat = readFileSync(`${path}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** @param {number} pid @returns {number[]} a process and all its descendants */
function treeOf(pid) {
  /** @type {Map<number, number[]>} */
  const children = new Map();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const parent = Number(statOf(`/proc/${name}`)[1]);
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {} // it has ended
  }
  const all = [pid];
  for (let i = 0; i < all.length; i++) all.push(...(children.get(all[i]) ?? []));
  return all;
}

/** Ends a process and all its descendants, including browsers in separate groups. @param {number} pid */
function endTree(pid) {
  for (const each of treeOf(pid)) {
    try {
      process.kill(each, 'SIGKILL');
    } catch {} // it has ended
  }
}

/**
 * @param {number} pid
 * @returns {{cpuMs: number, isReady: boolean}} the CPU time of a process tree, and whether one of its
 * threads has work to do
 */
function workOf(pid) {
  let ticks = 0;
  let isReady = false;
  for (const each of treeOf(pid)) {
    try {
      const times = statOf(`/proc/${each}`).slice(11, 15); // CPU times of the process and of its ended children
      ticks += times.reduce((sum, time) => sum + Number(time), 0);
      const threads = readdirSync(`/proc/${each}/task`);
      isReady ||= threads.some((id) => /[RD]/.test(statOf(`/proc/${each}/task/${id}`)[0]));
    } catch {} // it has ended
  }
  return { cpuMs: 10 * ticks, isReady };
}

/**
 * Polls whether a process tree has work to do.
 * @param {number} pid
 * @param {(idleMs: number) => void} take receives the time without work so far
 * @returns {() => void} stops polling
 */
function watchIdle(pid, take) {
  let last = { cpuMs: 0, atMs: performance.now() };
  let idleMs = 0;
  const timer = setInterval(() => {
    const { cpuMs, isReady } = workOf(pid);
    const atMs = performance.now();
    const passedMs = atMs - last.atMs;
    // a late poll may have missed the end of the tree
    const isLate = passedMs > 2 * LOOK_MS;
    if (!isLate && !isReady && cpuMs - last.cpuMs < IDLE_SHARE * passedMs) idleMs += passedMs;
    last = { cpuMs, atMs };
    take(idleMs);
  }, LOOK_MS);
  return () => clearInterval(timer);
}

/**
 * Runs a test file until it ends, one of its tests fails, or it exceeds its limits.
 * @param {string} program
 * @param {string[]} args
 * @param {{cwd: string, env: Record<string, string>, limits: Times}} options
 * @returns {Promise<Ended>}
 */
export function runUntilFailure(program, args, { cwd, env, limits }) {
  return new Promise((settle) => {
    const cpuSeconds = String(Math.ceil(limits.cpuMs / 1000));
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
    const longestMs = WAIT_TIMES * limits.cpuMs + limits.idleMs;
    const timer = setTimeout(() => end('overdue'), longestMs);
    let idleMs = 0;
    const unwatch = watchIdle(child.pid ?? 0, (passedMs) => {
      idleMs = passedMs;
      if (idleMs > limits.idleMs) end('overdue');
    });
    let line = '';
    let skipped = 0;
    child.stdout.on('data', (bytes) => {
      const lines = `${line}${bytes}`.split('\n');
      line = lines.pop() ?? '';
      skipped += lines.filter((text) => /^\s*ok .*# SKIP(?! test name)/.test(text)).length;
      if (lines.some((text) => /^\s*not ok/.test(text) && !/# TODO/.test(text))) end('failed');
    });
    let errors = '';
    child.stderr.on('data', (bytes) => {
      errors += bytes;
    });
    child.on('error', () => end('failed'));
    child.on('exit', async (code) => {
      clearTimeout(timer);
      unwatch();
      child.stdout.destroy();
      await new Promise((done) => setTimeout(done, 1)); // waits for its last output
      child.stderr.destroy();
      const [, user, system] = /cpu ([\d.]+) ([\d.]+)/.exec(errors) ?? [];
      const cpuMs = 1000 * (Number(user ?? 0) + Number(system ?? 0));
      // SIGKILL or SIGXCPU: bash reports signals as 128 and more
      const isOverdue = code === 128 + 9 || code === 128 + 24;
      status ??= code === 0 ? 'passed' : isOverdue ? 'overdue' : 'failed';
      settle({ status, cpuMs, idleMs, skipped });
    });
  });
}

/**
 * Runs a tool asynchronously, so that other mutants' tests continue and are watched.
 * @param {string} program
 * @param {string[]} args
 * @param {string} [cwd]
 * @returns {Promise<{status: number | null, stderr: string}>}
 */
function runTool(program, args, cwd = root) {
  return new Promise((settle, fail) => {
    const child = spawn(program, args, { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
    let stderr = '';
    child.stderr.on('data', (bytes) => {
      stderr += bytes;
    });
    child.on('error', fail);
    child.on('close', (status) => settle({ status, stderr }));
  });
}

/** @param {string} file @param {string} source its path @param {string[]} flags @param {string} out */
async function compile(file, source, flags, out) {
  const [compiler] = given('MUTANTS_CC');
  const args = [
    ...flags,
    '-Wno-everything',
    '-Werror=incompatible-pointer-types',
    '-Werror=int-conversion',
    `-I${dirname(file)}`,
  ];
  return (await runTool(compiler, [...args, '-c', source, '-o', out])).status === 0;
}

/** @param {string} test */
export const isOfNode = (test) => /\.mjs( |$)/.test(test);

/** The CPU time limit for all tests of a mutant together. */
export const BUDGET_MS = Number(process.env.MUTANTS_BUDGET_MS || 20_000);

/**
 * Returns the time limit of a test with a mutant.
 * @param {Times} usual the times without a mutant
 * @returns {Times}
 */
export const limitsOf = ({ cpuMs, idleMs }) => ({
  cpuMs: 3 * cpuMs + 2000,
  idleMs: 2 * idleMs + 6000,
});

/**
 * Runs tests until one fails or their CPU time is used up.
 * @param {Pick<Place, 'runTest'>} place
 * @param {string[]} tests in the order in which they run
 * @param {(test: string) => Times} usual returns the times of a test without a mutant
 * @param {string} object
 * @returns {Promise<{outcome: 'killed' | 'timeout' | 'survived', by: string}>}
 */
export async function tryTests(place, tests, usual, object) {
  let leftMs = BUDGET_MS;
  for (const test of tests) {
    if (leftMs <= 0) return { outcome: 'survived', by: `no time for ${test}` };
    let ended = await place.runTest(test, limitsOf(usual(test)), object);
    // retried, because a test that was overdue because of other load does not detect the mutant
    if (ended.status === 'overdue')
      ended = await place.runTest(test, limitsOf(usual(test)), object);
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
    /** The source of a mutant that is not linked into the command yet. */
    this.mutantOf = '';
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(folder, 'temporary'), { recursive: true });
    mkdirSync(this.out);
    this.#copyTree();
  }

  #copyTree() {
    // a command that runs in examples/ prints its path with links resolved
    const copied = ['js', 'component', 'tests', 'tools', 'examples', 'package.json'];
    const options = { recursive: true, preserveTimestamps: true };
    mkdirSync(join(this.tree, 'build/native'), { recursive: true });
    for (const name of readdirSync(root)) {
      if (/^(build|dist|\.git)$/.test(name)) continue;
      const to = join(this.tree, name);
      if (copied.includes(name)) cpSync(join(root, name), to, options);
      else symlinkSync(join(root, name), to);
    }
    for (const name of readdirSync(join(root, 'build'))) {
      if (/^(native|mutants|edge|obj)$/.test(name)) continue;
      symlinkSync(join(root, 'build', name), join(this.tree, 'build', name));
    }
    // the objects of components, with their times, which make compares
    mkdirSync(join(this.tree, 'build/obj'));
    for (const name of readdirSync(join(root, 'build/obj'))) {
      const [from, to] = [join(root, 'build/obj', name), join(this.tree, 'build/obj', name)];
      if (name === 'wasi') cpSync(from, to, options);
      else symlinkSync(from, to);
    }
    const edge = join(root, 'build/edge');
    if (existsSync(edge)) cpSync(edge, join(this.tree, 'build/edge'), options);
    this.#copyPrograms();
    cpSync(join(root, 'dist'), join(this.tree, 'dist'), { recursive: true });
  }

  #copyPrograms() {
    for (const name of Object.keys(PROGRAMS))
      cpSync(join(root, 'build/native', name), join(this.tree, 'build/native', name));
  }

  /** The environment, with a separate folder for temporary files. */
  get #env() {
    const temporary = join(this.folder, 'temporary');
    const shared = process.env.WICK_SHARED ?? resolve(root, '../shared');
    return { WICK_ROOT: root, WICK_TMP: temporary, WICK_SHARED: shared, ...sanitizers };
  }

  /**
   * @param {string} test the name of a C test and the parts to run, or a file below tests/ and the
   * suites to run
   * @param {Times} limits
   * @param {string} [object] the mutant's archive, which C tests link before the engine's
   * @returns {Promise<Ended>}
   */
  async runTest(test, limits, object) {
    const options = { env: this.#env, limits };
    const [file, ...words] = test.split(' ');
    if (isOfNode(test)) {
      await this.#linkPrograms();
      const only = words.length === 0 ? [] : [`--test-name-pattern=${words.join(' ')}`];
      const args = ['--test-reporter=tap', ...only, join(this.tree, file)];
      return runUntilFailure(process.execPath, args, { ...options, cwd: this.tree });
    }
    const built = join(root, 'build/test/native', file);
    if (!object) return runUntilFailure(built, words, { ...options, cwd: root });
    const program = join(this.out, 'test');
    const inputs = [`build/obj/asan/units/${file}.o`, object, 'build/test/native-asan/libwick.a'];
    const [compiler] = given('MUTANTS_CC');
    const linked = await runTool(compiler, [
      ...inputs,
      ...given('MUTANTS_TEST_LINK'),
      '-o',
      program,
    ]);
    if (linked.status !== 0) throw new Error(`${test} does not link: ${linked.stderr}`);
    return runUntilFailure(program, words, { ...options, cwd: root });
  }

  /** Links the command with the mutant instead of the source's object, for the first test that runs it. */
  async #linkPrograms() {
    if (!this.mutantOf) return;
    const own = `build/obj/native/${this.mutantOf.replace(/\.c$/, '.o')}`;
    const [compiler] = given('MUTANTS_CC');
    for (const [program, variable] of Object.entries(PROGRAMS)) {
      const objects = given(variable);
      if (!objects.includes(own)) continue;
      objects[objects.indexOf(own)] = join(this.out, 'changed.o');
      const out = ['-o', join(this.tree, 'build/native', program)];
      const args = [...objects, ...given('MUTANTS_NATIVE_LINK'), ...out];
      const linked = await runTool(compiler, args);
      if (linked.status !== 0) throw new Error(`${program} does not link: ${linked.stderr}`);
    }
    this.mutantOf = '';
  }

  /** Returns the object file of a source without a mutant. @param {string} file @returns {Promise<Buffer>} */
  async #unchanged(file) {
    const built = join(root, `build/obj/native/${file.replace(/\.c$/, '.o')}`);
    if (existsSync(built)) return readFileSync(built);
    const own = join(this.out, 'unchanged.o');
    await compile(file, join(root, file), given('MUTANTS_PLAIN_FLAGS'), own);
    return readFileSync(own);
  }

  /**
   * @param {string} file
   * @param {string} text
   * @returns {Promise<'uncompilable' | 'equivalent' | {object: string}>}
   */
  async buildC(file, text) {
    const source = join(this.out, basename(file)); // object files contain this name
    writeFileSync(source, text);
    const changed = join(this.out, 'changed.o');
    if (!(await compile(file, source, given('MUTANTS_PLAIN_FLAGS'), changed)))
      return 'uncompilable';
    if ((await this.#unchanged(file)).equals(readFileSync(changed))) return 'equivalent';
    this.mutantOf = file;
    if (file.startsWith('src/cli/')) return { object: '' };
    const object = join(this.out, 'mutant.o');
    if (!(await compile(file, source, given('MUTANTS_TEST_FLAGS'), object))) return 'uncompilable';
    // linked before the engine's archive, and as an archive, too, because tests may have a
    // replacement for a source
    const archive = join(this.out, 'mutant.a');
    rmSync(archive, { force: true });
    const [archiver] = given('MUTANTS_AR');
    const archived = await runTool(archiver, ['rcs', archive, object]);
    if (archived.status !== 0) throw new Error('the archive could not be created');
    return { object: archive };
  }

  /**
   * Builds the component to which a source of `component/` belongs, in the copy.
   * @param {string} file
   * @param {string} source
   * @returns {Promise<'uncompilable' | 'equivalent' | {object: ''}>}
   */
  async buildComponent(file, source) {
    writeFileSync(join(this.tree, file), source);
    const object = `build/obj/wasi/${file.replace(/\.c$/, '.o')}`;
    const name = /_p2\.c$/.test(file) ? 'p2' : basename(file).startsWith('llm') ? 'llm' : 'p3';
    // no optimizer, which takes most of the time
    const settings = ['WASM_OPT=', `C_FLAGS=${process.env.MUTANTS_COMPONENT_FLAGS}`];
    const make = (/** @type {string} */ target) =>
      runTool('make', [...settings, target], this.tree);
    if ((await make(object)).status !== 0) return 'uncompilable';
    const [a, b] = [join(root, object), join(this.tree, object)];
    if (existsSync(a) && readFileSync(a).equals(readFileSync(b))) return 'equivalent';
    const made = await make(`build/edge/wick-${name}.wasm`);
    return made.status === 0 ? { object: '' } : 'uncompilable';
  }

  /**
   * @param {string} file
   * @param {string} source
   * @returns {Promise<'uncompilable' | 'equivalent' | {object: ''}>}
   */
  async buildJs(file, source) {
    writeFileSync(join(this.tree, file), source);
    const bundle = join(this.tree, 'tools/build/bundle.mjs');
    const made = await runTool(process.execPath, [bundle], this.tree);
    if (made.status !== 0) return 'uncompilable';
    const isSame = (/** @type {string} */ name) => {
      const [a, b] = [join(root, 'dist', name), join(this.tree, 'dist', name)];
      return existsSync(a) && readFileSync(a).equals(readFileSync(b));
    };
    const names = readdirSync(join(root, 'dist')).filter((name) => name.endsWith('.js'));
    return names.every(isSame) ? 'equivalent' : { object: '' };
  }

  /** @param {string} file */
  #restoreComponent(file) {
    const options = { recursive: true, preserveTimestamps: true };
    const object = `build/obj/wasi/${file.replace(/\.c$/, '.o')}`;
    for (const path of [file, object, 'build/edge']) {
      cpSync(join(root, path), join(this.tree, path), options);
    }
    for (const name of readdirSync(join(root, 'build/obj/wasi'))) {
      const path = `build/obj/wasi/${name}`;
      if (/^component_/.test(name)) cpSync(join(root, path), join(this.tree, path), options);
    }
  }

  /** Reverts a mutant. @param {string} file */
  restore(file) {
    if (file.endsWith('.js')) cpSync(join(root, file), join(this.tree, file));
    else if (file.startsWith('component/')) this.#restoreComponent(file);
    else this.#copyPrograms();
    this.mutantOf = '';
  }
}
