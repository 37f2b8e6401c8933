// js/worker/wide_engine.js — models that need more than 4 GiB: the engine starts again with the module of 64-bit addresses.

import { WickError } from '../base/errors.js';
import { compileModule } from '../wasm/wasm_module.js';
import { isWide } from '../wasm/wide_calls.js';

/** @typedef {import('../connection/messages.js').InitMessage} InitMessage */

/** The most bytes of a memory of 32-bit addresses. */
export const NARROW_BYTES = 2 ** 32;
/** The most bytes that hosts grant of 64-bit addresses. */
export const WIDE_BYTES = 2 ** 34;

/** @param {WickError} error @returns {number[] | undefined} of a plan: what it needs, the limit, tokens of context */
const numbersOf = ({ cause }) => /** @type {{numbers?: number[]} | undefined} */ (cause)?.numbers;

/**
 * @param {unknown} error of loading
 * @param {InitMessage} message
 * @returns {error is WickError} whether the model's plan needs more than a memory of 32-bit addresses has, and the caller allows it
 */
export function isTooLarge(error, { module, config: { memoryLimit } }) {
  if (!(error instanceof WickError) || error.code !== 'NOMEM') return false;
  if (memoryLimit > 0 && memoryLimit <= NARROW_BYTES) return false;
  const [needed, limit, contextTokens] = numbersOf(error) ?? [0, 0, 0];
  return contextTokens > 0 && needed > limit && !isWide(module);
}

/** @param {unknown} error @returns {error is WickError} whether the host refused the memory itself */
export const isRefused = (error) =>
  error instanceof WickError && error.code === 'NOMEM' && numbersOf(error) === undefined;

/** @param {WickError} refusal of a plan @param {string} why @returns {WickError} that also names the reason for the limit */
export const withReason = ({ message, cause }, why) =>
  new WickError('NOMEM', `${message}. More than 4 GiB cannot be used: ${why}`, cause);

/** @param {InitMessage} message @returns {string | undefined} why the engine cannot start again with 64-bit addresses; undefined if it can */
function whyNot({ wide, source }) {
  if (wide === '') return 'this host has no WebAssembly memory with 64-bit addresses (memory64)';
  if (!wide) return 'the given wasm has 32-bit addresses';
  if (source.kind !== 'page' || source.canSeek) return undefined;
  return 'a stream can be read only once. Set memoryLimit above 4 GiB to begin with 64-bit addresses';
}

/**
 * @param {InitMessage} message
 * @param {WickError} [refusal] of the model with 32-bit addresses
 * @returns {Promise<InitMessage>} the same with the module of 64-bit addresses, which has no further modules; throws the refusal
 *   with the reason if there is none
 */
export async function widened(message, refusal) {
  const why = refusal && whyNot(message);
  if (why) throw withReason(refusal, why);
  const module = await compileModule(/** @type {string} */ (message.wide)).catch((error) => {
    throw refusal ? withReason(refusal, error.message) : error;
  });
  return { ...message, module, grammar: undefined, extras: undefined, media: undefined };
}
