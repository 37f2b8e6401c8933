// Runs many calls of WASI modules in one process of a runtime: each module is compiled once, and each call runs an instance
// in a thread. Tests import this file, which also contains the code of the process and its threads:
//
//   const pool = openPool('node24');
//   after(pool.close);
//   const { code, stdout } = await pool.run(module, ['--version'], { folders: { '/guest': '/host' } });

import { fork } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { WASI } from 'node:wasi';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { followMemory } from '../../js/cli/wasi_memory.js';
import { locate } from './locate.mjs';
import { wasiRuntimes } from './process.mjs';

const file = fileURLToPath(import.meta.url);
/** The number of compiled modules to keep; a file with many calls uses one or two. */
const MODULES_MAX = 4;

/** @typedef {{file: string, args: string[], folders: Record<string, string>, env: Record<string, string>}} Call */
/** @typedef {import('./process.mjs').Result} Result */

// ---- for tests ----

/**
 * @param {'node' | 'node24' | 'nodeArm'} runtime
 * @param {{env?: Record<string, string>, flags?: string[]}} [options] options of the process
 */
export function openPool(runtime, { env: ofProcess = {}, flags = [] } = {}) {
  const { path, skip } = runtime === 'nodeArm' ? locate(runtime) : wasiRuntimes[runtime].find();
  /** @type {Map<number, {settle: (result: Result) => void, fail: (error: Error) => void}>} */
  const pending = new Map();
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let child;
  let calls = 0;
  const start = () => {
    if (skip) throw new Error(skip);
    const made = fork(file, ['pool'], {
      ...{ execPath: path, execArgv: ['--no-warnings', ...flags], serialization: 'advanced' },
      env: { ...process.env, ...ofProcess },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    made.on('message', (/** @type {any} */ { id, result }) => {
      pending.get(id)?.settle({ ...result, stdout: Buffer.from(result.stdout) });
      pending.delete(id);
    });
    made.on('exit', (code, signal) => {
      for (const { fail } of pending.values()) fail(new Error(`pool ended: ${signal ?? code}`));
      pending.clear();
      child = undefined;
    });
    return made;
  };
  return {
    /**
     * @param {string} module
     * @param {string[]} args
     * @param {{folders?: Record<string, string>, env?: Record<string, string | undefined>}} [options]
     * @returns {Promise<Result>}
     */
    run: (module, args, { folders = {}, env = {} } = {}) =>
      new Promise((settle, fail) => {
        child ??= start();
        const id = calls++;
        pending.set(id, { settle, fail });
        const given = Object.entries({ ...process.env, ...env }).filter(([, value]) => value);
        child.send({ id, call: { file: module, args, folders, env: Object.fromEntries(given) } });
      }),
    close: () => void child?.disconnect(),
  };
}

// ---- the process ----

function serve() {
  /** @type {Map<string, Promise<WebAssembly.Module>>} */
  const modules = new Map();
  /** @type {{id: number, call: Call}[]} */
  const waiting = [];
  /** @type {Worker[]} */
  const idle = [];

  const moduleOf = (/** @type {string} */ path) => {
    const module = modules.get(path) ?? WebAssembly.compile(readFileSync(path));
    modules.delete(path);
    modules.set(path, module);
    for (const oldest of modules.keys()) if (modules.size > MODULES_MAX) modules.delete(oldest);
    return module;
  };
  const give = async () => {
    if (idle.length === 0 || waiting.length === 0) return;
    const worker = /** @type {Worker} */ (idle.pop());
    const { id, call } = /** @type {{id: number, call: Call}} */ (waiting.shift());
    worker.once('message', (result) => {
      process.send?.({ id, result });
      idle.push(worker);
      give();
    });
    worker.postMessage({ call, module: await moduleOf(call.file) });
  };

  const folder = mkdtempSync(join(tmpdir(), 'wick-pool-'));
  for (let i = 0; i < availableParallelism(); i++) {
    const wasiFolder = join(folder, String(i));
    mkdirSync(wasiFolder);
    idle.push(new Worker(file, { workerData: { wasiFolder } }));
  }
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  process.on('message', (/** @type {{id: number, call: Call}} */ asked) => {
    waiting.push(asked);
    give();
  });
  process.on('disconnect', () => process.exit());
}

// ---- threads of the process ----

/** @param {Call} call @param {WebAssembly.Module} module @param {string} folder receives its output */
async function runCall({ file, args, folders, env }, module, folder) {
  const names = [join(folder, 'stdout'), join(folder, 'stderr')];
  const [stdout, stderr] = names.map((name) => openSync(name, 'w'));
  let code = 0;
  let trap = '';
  try {
    const wasi = new WASI({
      ...{ version: 'preview1', args: [file, ...args], env, preopens: folders },
      ...{ returnOnExit: true, stdout, stderr },
    });
    const setMemory = followMemory(wasi);
    const imports = /** @type {WebAssembly.Imports} */ (wasi.getImportObject());
    const instance = await WebAssembly.instantiate(module, imports);
    setMemory(/** @type {WebAssembly.Memory} */ (instance.exports.memory));
    code = wasi.start(instance);
  } catch (error) {
    code = 1;
    trap = `${/** @type {Error} */ (error).stack}\n`;
  }
  closeSync(stdout);
  closeSync(stderr);
  const [out, err] = names.map((name) => readFileSync(name));
  return { code, signal: null, stdout: out, stderr: `${err}${trap}` };
}

/** @param {string} folder receives the output of programs */
function work(folder) {
  parentPort?.on('message', async ({ call, module }) => {
    parentPort?.postMessage(await runCall(call, module, folder));
  });
}

if (!isMainThread && workerData?.wasiFolder) work(workerData.wasiFolder);
else if (process.argv[1] === file && process.argv[2] === 'pool') serve();
