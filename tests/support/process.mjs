// Starts programs and WASI modules for tests and collects their output.

import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { locate, locateRelaxedNode, root } from './locate.mjs';

/**
 * The time limit for programs that would never exit, even on a busy machine. It does not test
 * speed.
 */
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
    child.stdin.on('error', () => {}); // the program may exit without reading all input
    child.stdin.end(input ?? '');
  });
}

/**
 * @typedef {object} WasiCall
 * @property {Record<string, string>} folders maps the module's paths to this machine's
 * @property {Record<string, string | undefined>} env the module's environment variables
 * @property {string} module
 * @property {string[]} args
 */

/**
 * @typedef {object} WasiRuntime
 * @property {boolean} relaxed whether it supports relaxed SIMD
 * @property {boolean} [isExtra] whether only tests of the `wick` command run there
 * @property {() => ReturnType<typeof locate>} find
 * @property {(call: WasiCall) => string[]} argumentsOf
 */

/** @param {string[]} flags @param {string} script @returns {WasiRuntime['argumentsOf']} */
const byScript =
  (flags, script) =>
  ({ folders, module, args }) => {
    const path = resolve(root, 'tests/support', script);
    return [...flags, path, JSON.stringify(folders), module, ...args];
  };

/**
 * Returns the flags for a runtime's command line.
 * @param {WasiCall} call
 * @param {(guest: string, host: string) => string[]} folderOf
 * @param {(name: string, value: string) => string[]} variableOf
 */
const flagsOf = ({ folders, env }, folderOf, variableOf) => [
  ...Object.entries(folders).flatMap(([guest, host]) => folderOf(guest, host)),
  ...Object.entries(env).flatMap(([name, value]) => (value ? variableOf(name, value) : [])),
];

/** The WASI runtimes of the tests. @type {Record<string, WasiRuntime>} */
export const wasiRuntimes = {
  node: {
    relaxed: false,
    find: () => ({ path: process.execPath, skip: false }),
    argumentsOf: byScript(['--no-warnings'], 'run_wasi.mjs'),
  },
  node24: {
    relaxed: true,
    find: locateRelaxedNode,
    argumentsOf: byScript(['--no-warnings'], 'run_wasi.mjs'),
  },
  deno: {
    relaxed: true,
    find: () => locate('deno'),
    argumentsOf: byScript(['run', '--quiet', '-A'], 'run_wasi.mjs'),
  },
  wasmtime: {
    relaxed: true,
    find: () => locate('wasmtime'),
    argumentsOf: byScript([], 'run_wasi.py'),
  },
  bun: {
    ...{ relaxed: true, isExtra: true },
    find: () => locate('bun'),
    argumentsOf: byScript([], 'run_wasi.mjs'),
  },
  'wasmtime run': {
    ...{ relaxed: true, isExtra: true },
    find: () => locate('wasmtimeCommand'),
    argumentsOf: (call) => [
      'run',
      ...flagsOf(
        call,
        (guest, host) => ['--dir', `${host}::${guest}`],
        (name, value) => ['--env', `${name}=${value}`],
      ),
      ...[call.module, ...call.args],
    ],
  },
  wazero: {
    ...{ relaxed: false, isExtra: true },
    find: () => locate('wazero'),
    argumentsOf: (call) => [
      'run',
      ...flagsOf(
        call,
        (guest, host) => [`-mount=${host}:${guest}`],
        (name, value) => [`-env=${name}=${value}`],
      ),
      ...[call.module, ...call.args],
    ],
  },
  wasmedge: {
    ...{ relaxed: true, isExtra: true },
    find: () => locate('wasmedge'),
    argumentsOf: (call) => [
      ...(call.module.includes('relaxed') ? ['--enable-relaxed-simd'] : []),
      ...flagsOf(
        call,
        (guest, host) => ['--dir', `${guest}:${host}`],
        (name, value) => ['--env', `${name}=${value}`],
      ),
      ...[call.module, ...call.args],
    ],
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
  const { find, argumentsOf } = wasiRuntimes[runtime];
  const { path, skip } = find();
  if (skip) throw new Error(skip);
  return run(path, argumentsOf({ folders, env: options.env ?? {}, module, args }), options);
}
