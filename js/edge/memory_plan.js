// js/edge/memory_plan.js — the engine's share of a host's memory limit. Such a limit applies to the
// total memory of an isolate: the linear memory and the JavaScript heap.

import { WickError } from '../base/errors.js';
import { checkNumber } from '../page/option_checks.js';

/** Stack and data of the module, which the engine's budget does not count. */
const MODULE_BYTES = 1 << 20;
/** The buffer in linear memory through which pieces of the model pass. */
const STAGING_BYTES = 1 << 18;
/** The memory that JavaScript uses: the package's code, the engine's compiled WebAssembly, requests and their text. */
const SCRIPT_BYTES = 19 << 20;

/**
 * @param {import('../edge.js').EdgeOptions} options
 * @param {number} heldBytes bytes of the model that stay in JavaScript's memory
 * @returns {number} the engine's budget; 0: the maximum of WebAssembly's memory
 */
export function memoryLimitOf({ isolateBytes, memoryLimit = 0 }, heldBytes) {
  const asked = checkNumber('memoryLimit', memoryLimit, { min: 0, whole: true });
  if (isolateBytes === undefined || isolateBytes === null) return asked;
  const all = checkNumber('isolateBytes', isolateBytes, { min: 1, whole: true });
  const left = all - reserveOf(heldBytes);
  if (left <= 0) {
    const words = `isolateBytes is ${all}, but JavaScript needs ${reserveOf(heldBytes)} of them`;
    throw new WickError('NOMEM', `${words}: no memory is left for a model`);
  }
  return asked === 0 ? left : Math.min(asked, left);
}

/** @param {number} heldBytes */
const reserveOf = (heldBytes) => MODULE_BYTES + STAGING_BYTES + SCRIPT_BYTES + heldBytes;

/**
 * @param {unknown} error of loading
 * @param {number | null | undefined} isolateBytes
 * @param {number} heldBytes
 * @returns {unknown} the same error; its message mentions isolateBytes if that is the reason
 */
export function inWords(error, isolateBytes, heldBytes) {
  const isRefused = error instanceof WickError && error.code === 'NOMEM';
  if (!isRefused || !isolateBytes) return error;
  const words = `${error.message} (isolateBytes is ${isolateBytes}, of which JavaScript and the module need ${reserveOf(heldBytes)})`;
  return new WickError('NOMEM', words, error.cause);
}
