// Runs the command line in all its builds: native, and as WASI modules in a runtime.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { built, locate, root } from './locate.mjs';
import { run, runWasi, wasiRuntimes } from './process.mjs';

/** @returns {string} a folder that is removed after the tests of this file */
export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'wick-cli-'));
  after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/**
 * Where the command line runs: natively, or a module in a runtime of process.mjs.
 * @typedef {object} Host
 * @property {string} name
 * @property {string} program below build/
 * @property {string} [runtime]
 * @property {string | false} skip
 */

/** @param {string} runtime @param {string} program @returns {Host} */
function wasiHost(runtime, program) {
  const kind = program.includes('relaxed') ? 'relaxed SIMD' : 'plain SIMD';
  return {
    name: `WASI, ${kind}, ${runtime}`,
    program,
    runtime,
    skip: wasiRuntimes[runtime].find().skip,
  };
}

/** @type {Host} */
export const native = { name: 'native', program: 'native/wick', skip: false };
/** The module that runs everywhere, in each runtime. */
export const plainHosts = Object.keys(wasiRuntimes).map((r) => wasiHost(r, 'wasi/wick.wasm'));
/** The faster module, in the runtimes that take it. */
export const relaxedHosts = Object.keys(wasiRuntimes)
  .filter((runtime) => wasiRuntimes[runtime].relaxed)
  .map((runtime) => wasiHost(runtime, 'wasi/wick-relaxed.wasm'));

/**
 * Runs `wick ...args`. Modules see the repository, the shared folder and `folders` under the paths
 * that they have on this machine.
 * @param {Host} host
 * @param {string[]} args
 * @param {{folders?: string[], input?: string | Uint8Array, cwd?: string,
 *   timeoutMs?: number}} [options]
 */
export function wick(host, args, { folders = [], ...options } = {}) {
  const program = built(host.program);
  if (host.runtime === undefined) return run(program, args, options);
  const shared = locate('shared');
  const seen = [root, ...(shared.skip ? [] : [shared.path]), ...folders];
  return runWasi(host.runtime, program, args, {
    ...options,
    folders: Object.fromEntries(seen.map((path) => [path, path])),
  });
}
