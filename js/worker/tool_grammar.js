// js/worker/tool_grammar.js — the grammar of a reply that may call tools, and what becomes of it where the engine refuses it.

import { WickError } from '../base/errors.js';
import { GRAMMAR_TOOLS } from '../wasm/layout.js';

/** @typedef {import('../wasm/engine_records.js').NativeRequest['grammar']} Grammar wick_grammar */

/** @param {string} words */
const refuse = (words) =>
  new WickError('ARG', `tool_choice asks for a call, and ${words}`, { option: 'tool_choice' });

/**
 * @param {import('../connection/messages.js').Input} input of a conversation
 * @param {string} ending what the template wrote behind the last message, and the prefix of the reply
 * @param {Grammar} other what the caller wants the text to be
 * @returns {Grammar} undefined: the tools ask for none
 */
export function toolGrammar(input, ending, other) {
  if (!('messages' in input) || !input.tools || !input.toolChoice) return undefined;
  const { tools, toolChoice, prefix } = input;
  const isOptional = toolChoice.tool_choice === 'auto' && toolChoice.parallel_tool_calls;
  if (prefix || other) {
    if (isOptional) return undefined;
    throw refuse(prefix ? 'a prefix begins with content' : 'the text is to be something else');
  }
  const text = JSON.stringify({ tools, ...toolChoice, ending });
  return { kind: GRAMMAR_TOOLS, text, isOptional };
}

/**
 * Submits a request. A model that need not call a tool runs without a grammar where its form of calls or a schema
 * cannot be honoured.
 * @param {import('../wasm/native_engine.js').NativeEngine} native
 * @param {import('../wasm/engine_records.js').NativeRequest} request
 * @returns {number} what the engine numbers it
 */
export function submitWithTools(native, request) {
  try {
    return native.submit(request);
  } catch (error) {
    const { grammar } = request;
    if (!(error instanceof WickError) || grammar?.kind !== GRAMMAR_TOOLS) throw error;
    const { code, message, cause } = error;
    const isOfGrammar = /\bgrammar\b/.test(/** @type {any} */ (cause)?.option);
    if (!isOfGrammar || code === 'NOMEM') throw error;
    if (!grammar.isOptional) throw new WickError(code, message, { option: 'tool_choice' });
    request.grammar = undefined;
    return native.submit(request);
  }
}
