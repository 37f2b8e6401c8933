// Runs the command-line program in all its builds: natively, and as WASI modules in a runtime.

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
 * A host of the command-line program: native, or a module in a WASI runtime of process.mjs.
 * @typedef {object} Host
 * @property {string} name
 * @property {string} program path in build/
 * @property {string} [runtime]
 * @property {string | false} skip
 */

/** @param {string} runtime @param {string} program @returns {Host} */
function wasiHost(runtime, program) {
  const kind = program.includes('relaxed') ? 'relaxed SIMD' : 'plain SIMD';
  return {
    name: `WASI, ${program.includes('full') ? '' : 'small, '}${kind}, ${runtime}`,
    program,
    runtime,
    skip: wasiRuntimes[runtime].find().skip,
  };
}

/** @type {Host} */
export const native = { name: 'native', program: 'native/wick', skip: false };
/** @type {Host} */
export const lab = { name: 'wick-lab', program: 'native/wick-lab', skip: false };
/**
 * @param {string} program
 * @param {boolean} isExtra
 * @returns {Host[]} the program in the runtimes that support it
 */
const wasiHosts = (program, isExtra) =>
  Object.entries(wasiRuntimes)
    .filter(([, one]) => (one.isExtra ?? false) === isExtra)
    .filter(([, one]) => one.relaxed || !program.includes('relaxed'))
    .map(([runtime]) => wasiHost(runtime, `wasi/${program}.wasm`));

/** The full module with plain SIMD, in each of the default runtimes. */
export const plainHosts = wasiHosts('wick-full', false);
/** The full module with relaxed SIMD, in runtimes that support it. */
export const relaxedHosts = wasiHosts('wick-full-relaxed', false);
/** The small variants of both modules, with only the common models and commands. */
export const smallHosts = [...wasiHosts('wick', false), ...wasiHosts('wick-relaxed', false)];
/** The small variants in the other runtimes. */
export const extraHosts = [...wasiHosts('wick', true), ...wasiHosts('wick-relaxed', true)];

/**
 * Runs `wick ...args`. Modules see the repository, the shared folder and `folders` under their
 * paths on this machine.
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
