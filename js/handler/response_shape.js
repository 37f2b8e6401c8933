// js/handler/response_shape.js — the response of /v1/responses: the object, and the items of its
// output.

import { randomName } from './random_name.js';

/** @typedef {'in_progress' | 'completed' | 'incomplete'} ItemStatus */
/** @typedef {{type: string, id: string, status: ItemStatus} & Record<string, any>} Item */

/** @param {string} text @param {object[]} [logprobs] the logprobs of its tokens */
export const textPart = (text, logprobs = []) => ({
  ...{ type: 'output_text', text, annotations: [], logprobs },
});
/** @param {string} text */
export const reasoningPart = (text) => ({ type: 'reasoning_text', text });

/** @param {object[]} content @param {ItemStatus} status @returns {Item} */
export const messageItem = (content, status) => ({
  ...{ type: 'message', id: `msg_${randomName()}`, status, role: 'assistant', content },
});
/** @param {object[]} content @param {ItemStatus} status @returns {Item} */
export const reasoningItem = (content, status) => ({
  ...{ type: 'reasoning', id: `rs_${randomName()}`, status, summary: [], content },
});
/** @param {string} callId @param {string} name @param {string} args @param {ItemStatus} status @returns {Item} */
export const callItem = (callId, name, args, status) => ({
  ...{ type: 'function_call', id: `fc_${randomName()}`, status },
  ...{ call_id: callId, name, arguments: args },
});

/** @param {any} message of a chat completion @param {ItemStatus} status of the last part @returns {Item[]} */
export function itemsOf({ content, reasoning_content: reasoning, tool_calls: calls = [] }, status) {
  /** @type {Item[]} */
  const items = [];
  if (reasoning) items.push(reasoningItem([reasoningPart(reasoning)], 'completed'));
  if (content !== '' || calls.length === 0) {
    items.push(messageItem([textPart(content)], calls.length > 0 ? 'completed' : status));
  }
  for (const call of calls) {
    items.push(callItem(call.id, call.function.name, call.function.arguments, 'completed'));
  }
  return items;
}

/** @param {any} usage of a chat completion */
const usageOf = ({ prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details }) => ({
  input_tokens: prompt_tokens,
  input_tokens_details: { cached_tokens: prompt_tokens_details.cached_tokens },
  output_tokens: completion_tokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens,
});

/**
 * Returns the fields that are the same from the first event to the last.
 * @param {Record<string, any>} body the request's body
 * @param {string} model
 */
export function headOf(body, model) {
  return {
    id: `resp_${randomName()}`,
    object: 'response',
    created_at: Math.floor(Date.now() / 1000),
    model,
    background: false,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    metadata: body.metadata ?? {},
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: false, // responses are not stored
    temperature: body.temperature ?? null,
    text: { format: body.text?.format ?? { type: 'text' } },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? null,
    truncation: 'disabled',
    user: body.user ?? null,
  };
}

/**
 * @param {object} head
 * @param {'in_progress' | 'completed' | 'incomplete' | 'failed'} status
 * @param {Item[]} output
 * @param {{usage?: any, message?: string}} [end] the usage of the chat completion, or the message of
 * a failure
 */
export const responseOf = (head, status, output, { usage, message } = {}) => ({
  ...{ ...head, status, error: message === undefined ? null : { code: 'server_error', message } },
  incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
  ...{ output, usage: usage ? usageOf(usage) : null },
});
