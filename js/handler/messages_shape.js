// js/handler/messages_shape.js — the response of /v1/messages: the message, its content blocks, and errors.

import { randomName } from './random_name.js';

/** The empty members of each type of block. @type {Record<string, object>} */
const blocks = {
  text: { text: '', citations: null },
  thinking: { thinking: '', signature: '' },
  tool_use: { id: '', name: '', input: {} },
};

/** @param {string} type @param {object} [members] */
export const blockOf = (type, members) => ({ type, ...blocks[type], ...members });

/**
 * @param {string} finish the finish reason of a chat completion
 * @param {string | undefined} stop the stop string that ended it
 */
export const endOf = (finish, stop) => ({
  stop_reason:
    { length: 'max_tokens', tool_calls: 'tool_use' }[finish] ??
    (stop === undefined ? 'end_turn' : 'stop_sequence'),
  stop_sequence: stop ?? null,
});

/** Converts the usage. `input_tokens` does not count cached tokens. @param {any} usage of a chat completion */
export function usageOf({ prompt_tokens, completion_tokens, prompt_tokens_details }) {
  const cached = prompt_tokens_details?.cached_tokens ?? 0;
  return {
    input_tokens: prompt_tokens - cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: completion_tokens,
  };
}

/** @param {string} model @param {number} promptTokens @returns {object} a message before its first block */
export const begunMessage = (model, promptTokens) => ({
  ...{ id: `msg_${randomName()}`, type: 'message', role: 'assistant', model, content: [] },
  ...{ stop_reason: null, stop_sequence: null },
  usage: usageOf({ prompt_tokens: promptTokens, completion_tokens: 0 }),
});

/** @param {string} json that the model wrote; a truncated call has an incomplete object */
function inputOf(json) {
  try {
    return JSON.parse(json);
  } catch {
    return {};
  }
}

/** @param {any} completion @param {string} model */
export function messageOf({ choices: [choice], usage }, model) {
  const { message, finish_reason: finish, stop_reason: stop } = choice;
  const { content: text, reasoning_content: thinking, tool_calls: calls = [] } = message;
  const content = [];
  if (thinking) content.push(blockOf('thinking', { thinking }));
  if (text !== '' || (calls.length === 0 && !thinking)) content.push(blockOf('text', { text }));
  for (const { id, function: made } of calls) {
    content.push(blockOf('tool_use', { id, name: made.name, input: inputOf(made.arguments) }));
  }
  return {
    ...begunMessage(model, 0),
    ...{ content, ...endOf(finish, stop), usage: usageOf(usage) },
  };
}

/** The error types by HTTP status. @type {Record<number, string>} */
const errorTypes = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
};

/** @param {import('./http_errors.js').HttpError} error */
export function messagesErrorOf({ status, message }) {
  const type = errorTypes[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  return { type: 'error', error: { type, message } };
}
