// js/page/logits_hook.js — calls the caller's hook with a copy of the logits, and checks the
// changed values.

import { argumentError, WickError, wordsOf } from '../base/errors.js';

/**
 * @param {import('../index.js').LogitsHook} hook
 * @param {import('../connection/messages.js').Asked} asked
 * @returns {Float32Array}
 */
export function callHook(hook, { logits, tokens }) {
  const vocab = logits.length;
  /** @type {unknown} */
  let made;
  try {
    made = hook(logits, { position: tokens.length, tokens }) ?? logits;
  } catch (error) {
    throw new WickError('HOOK', `logitsHook threw: ${wordsOf(error)}`, error);
  }
  if (!(made instanceof Float32Array) || made.length !== vocab) {
    throw argumentError(`logitsHook must return nothing, or a Float32Array of ${vocab} logits`);
  }
  const at = made.findIndex((logit) => !(logit < Number.POSITIVE_INFINITY));
  if (at >= 0)
    throw new WickError('NONFINITE', `logitsHook: the logit of token ${at} is ${made[at]}`);
  return made;
}
