// Starts programs and WASI modules for tests and gathers what they print.

import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { locate, locateRelaxedNode, root } from './locate.mjs';

/** Ends a program that hangs, on a machine however busy: nothing is shown by it. */
const TIMEOUT_MS = 600_000;

/**
 * @typedef {object} Result
 * @property {number | null} code the exit status, null when a signal ended the program
 * @property {string | null} signal
 * @property {Buffer} stdout
 * @property {string} stderr
 */

/**
 * @param {string} program
 * @param {string[]} args
 * @param {{env?: Record<string, string | undefined>, input?: string | Uint8Array | undefined,
 *   cwd?: string, timeoutMs?: number}} [options] with no input, standard input is empty
 * @returns {Promise<Result>}
 */
export function run(program, args, { env, input, cwd = root, timeoutMs = TIMEOUT_MS } = {}) {
  return new Promise((settle, fail) => {
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, ...env },
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    });
    /** @type {Buffer[]} */
    const out = [];
    /** @type {Buffer[]} */
    const err = [];
    child.stdout.on('data', (bytes) => out.push(bytes));
    child.stderr.on('data', (bytes) => err.push(bytes));
    child.on('error', fail);
    child.on('close', (code, signal) =>
      settle({ code, signal, stdout: Buffer.concat(out), stderr: Buffer.concat(err).toString() }),
    );
    child.stdin.on('error', () => {}); // the program may end without reading all of it
    child.stdin.end(input ?? '');
  });
}

/**
 * The WASI runtimes of the tests: `relaxed` says whether one takes relaxed SIMD.
 * @type {Record<string, {relaxed: boolean, find: () => ReturnType<typeof locate>,
 *   command: string[]}>}
 */
export const wasiRuntimes = {
  node: {
    relaxed: false,
    find: () => ({ path: process.execPath, skip: false }),
    command: ['--no-warnings', resolve(root, 'tests/support/run_wasi.mjs')],
  },
  node24: {
    relaxed: true,
    find: locateRelaxedNode,
    command: ['--no-warnings', resolve(root, 'tests/support/run_wasi.mjs')],
  },
  deno: {
    relaxed: true,
    find: () => locate('deno'),
    command: ['run', '--quiet', '-A', resolve(root, 'tests/support/run_wasi.mjs')],
  },
  wasmtime: {
    relaxed: true,
    find: () => locate('wasmtime'),
    command: [resolve(root, 'tests/support/run_wasi.py')],
  },
};

/**
 * Runs a WASI module in a runtime of the list above.
 * @param {string} runtime
 * @param {string} module
 * @param {string[]} args
 * @param {Parameters<typeof run>[2] & {folders?: Record<string, string>}} [options] `folders` maps
 *   the module's paths to this machine's
 * @returns {Promise<Result>}
 */
export function runWasi(runtime, module, args, { folders = {}, ...options } = {}) {
  const { find, command } = wasiRuntimes[runtime];
  const { path, skip } = find();
  if (skip) throw new Error(skip);
  return run(path, [...command, JSON.stringify(folders), module, ...args], options);
}
