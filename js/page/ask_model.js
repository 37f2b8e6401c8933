// js/page/ask_model.js — a question to a model, whether it has a chat template or not.

import { WickError } from '../base/errors.js';

/** @typedef {import('../connection/messages.js').Input} Input */

/**
 * Asks a user's message; of a model without a chat template the text that continues after it.
 * @template T
 * @param {string} content
 * @param {string} ending of the text, after which the answer begins
 * @param {(input: Input) => Promise<T>} ask
 * @returns {Promise<T>}
 */
export async function askModel(content, ending, ask) {
  try {
    return await ask({
      messages: [{ role: 'user', content }],
      variables: { enable_thinking: false },
    });
  } catch (error) {
    if (!(error instanceof WickError) || error.code !== 'NO_TEMPLATE') throw error;
    return ask({ prompt: `${content}${ending}` });
  }
}
