// js/worker/reply_grammar.js — the grammar of a reply: reasoning, then the calls of tools that may come and what is wanted
// of the content; and what becomes of it where the engine refuses it.

import { WickError } from '../base/errors.js';
import { GRAMMAR_TOOLS } from '../wasm/layout.js';

/** @typedef {import('../wasm/engine_records.js').NativeRequest['grammar']} Grammar wick_grammar */

/**
 * The settings of the engine's reader of replies and its grammar.
 * @param {import('../connection/messages.js').Input} input of a conversation
 * @param {string} ending the template's text after the last message, and the prefix of the
 * reply
 * @param {Grammar} content the form that the caller requires
 * @returns {{reply: {tools: string, ending: string}, grammar: Grammar}} a grammar where something is requested
 */
export function replyWish(input, ending, content) {
  const { tools, toolChoice, prefix } = /** @type {import('./chat_template.js').Conversation} */ (
    input
  );
  const told = {
    tools,
    has_begun: Boolean(prefix),
    content: content?.isWhole ? undefined : content,
  };
  const reply = { tools: JSON.stringify(told), ending };
  if (content?.isWhole || (!content && !toolChoice)) return { reply, grammar: content };
  const text = JSON.stringify({ ...told, ...toolChoice, ending });
  const isFree = toolChoice?.tool_choice === 'auto' && toolChoice.parallel_tool_calls;
  // required calls follow the prefix
  const begun = content && (!toolChoice || toolChoice.tool_choice === 'auto') ? prefix : '';
  const isOptional = isFree && !content;
  return { reply, grammar: { kind: GRAMMAR_TOOLS, text, begun, isOptional, isOfTools: !content } };
}

/** @param {Grammar} content @param {string | undefined} prefix @returns {Grammar} of a reply that is content alone */
export function behindPrefix(content, prefix) {
  if (!content || content.isWhole || !prefix) return content;
  const { kind, text } = content;
  return { kind, text, begun: prefix };
}

/** @param {string} message @returns {string | undefined} the option, where it is one of tools */
function optionOfTools(message) {
  if (/^(the tool |tools)/.test(message)) return 'tools';
  return /^(tool_choice|the model's form)/i.test(message) ? 'tool_choice' : undefined;
}

/**
 * Submits a request. A model that need not call a tool runs without a grammar where its form of calls or a schema
 * cannot be honoured.
 * @param {import('../wasm/native_engine.js').NativeEngine} native
 * @param {import('../wasm/engine_records.js').NativeRequest} request
 * @returns {number} its number in the engine
 */
export function submitReply(native, request) {
  try {
    return native.submit(request);
  } catch (error) {
    const { grammar } = request;
    if (!(error instanceof WickError) || grammar?.kind !== GRAMMAR_TOOLS) throw error;
    const { code, message, cause } = error;
    const isOfGrammar = /\bgrammar\b/.test(/** @type {any} */ (cause)?.option);
    if (!isOfGrammar || code === 'NOMEM') throw error;
    if (!grammar.isOptional) {
      const option = optionOfTools(message) ?? (grammar.isOfTools ? 'tools' : undefined);
      const words = message.replace(/ \(options [^)]*\)$/, '');
      throw option ? new WickError(code, `${words} (option ${option})`, { option }) : error;
    }
    request.grammar = undefined;
    return native.submit(request);
  }
}
