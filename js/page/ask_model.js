// js/page/ask_model.js — sends a question to a model, with or without a chat template.

import { WickError } from '../base/errors.js';

/** @import { Input } from '../connection/messages.js' */

/**
 * Sends the question as a user message or, if the model has no chat template, as text to continue.
 * @template T
 * @param {string} content
 * @param {string} ending the end of that text, after which the answer begins
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
