// js/worker/wide_engine.js — restarts the engine for models that need more than 4 GiB, with the module
// for 64-bit addresses.

import { WickError } from '../base/errors.js';
import { compileModule } from '../wasm/wasm_module.js';
import { isWide } from '../wasm/wide_calls.js';

/** @import { InitMessage } from '../connection/messages.js' */

/** The largest memory with 32-bit addresses, in bytes. */
const NARROW_BYTES = 2 ** 32;
/** The largest memory with 64-bit addresses that hosts grant, in bytes. */
export const WIDE_BYTES = 2 ** 34;

/**
 * @param {WickError} error
 * @returns {number[] | undefined} the numbers of a plan: the required bytes, the limit, and the
 * context size in tokens
 */
const numbersOf = ({ cause }) => /** @type {{numbers?: number[]} | undefined} */ (cause)?.numbers;

/**
 * @param {unknown} error of loading
 * @param {InitMessage} message
 * @returns {error is WickError} whether the model needs more memory than 32-bit addresses can
 * reach, and the caller allows it
 */
export function isTooLarge(error, { module, config: { memoryLimit } }) {
  if (!(error instanceof WickError) || error.code !== 'NOMEM') return false;
  if (memoryLimit > 0 && memoryLimit <= NARROW_BYTES) return false;
  const [needed, limit, contextTokens] = numbersOf(error) ?? [0, 0, 0];
  return contextTokens > 0 && needed > limit && !isWide(module);
}

/**
 * @param {unknown} error
 * @returns {error is WickError} whether the host could not provide the memory itself
 */
export const isRefused = (error) =>
  error instanceof WickError && error.code === 'NOMEM' && numbersOf(error) === undefined;

/**
 * @param {WickError} refusal of a plan
 * @param {string} why
 * @returns {WickError} the same error with the reason for the limit
 */
export const withReason = ({ message, cause }, why) =>
  new WickError('NOMEM', `${message}. More than 4 GiB cannot be used: ${why}`, cause);

/**
 * @param {InitMessage} message
 * @param {boolean} isLoading whether the model is being loaded, and not a later file
 * @returns {string | undefined} why the engine cannot start again with 64-bit addresses; undefined if it can
 */
function whyNot({ wide, source }, isLoading) {
  if (wide === '')
    return 'this host does not support WebAssembly memory with 64-bit addresses (memory64)';
  if (!wide) return 'the wasm option has 32-bit addresses';
  const remedy = 'Set memoryLimit above 4 GiB to start with 64-bit addresses';
  if (isLoading) return `the model is already in a memory with 32-bit addresses. ${remedy}`;
  if (source.kind !== 'page' || source.canSeek) return undefined;
  return `a stream can be read only once. ${remedy}`;
}

/** @param {InitMessage} message @returns {boolean} whether the limit requires the module for 64-bit addresses from the start */
export const isWanted = ({ wide, module, config: { memoryLimit } }) =>
  Boolean(wide) && memoryLimit > NARROW_BYTES && !isWide(module);

/**
 * @param {InitMessage} message
 * @param {{error: WickError, isLoading: boolean}} [refusal] the error about the model with 32-bit
 * addresses
 * @returns {Promise<InitMessage>} the same options with the module for 64-bit addresses, which has
 * no secondary modules; throws the error with the reason if that module is missing
 */
export async function widened(message, refusal) {
  const why = refusal && whyNot(message, refusal.isLoading);
  if (why) throw withReason(refusal.error, why);
  const module = await compileModule(/** @type {string} */ (message.wide)).catch((error) => {
    throw refusal ? withReason(refusal.error, error.message) : error;
  });
  return { ...message, module, grammar: undefined, extras: undefined, media: undefined };
}
