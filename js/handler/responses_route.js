// js/handler/responses_route.js — POST /v1/responses: text and tools, through a chat completion.
// Nothing is stored, so each request contains its whole conversation.

import { chatToolChoice, requestChat } from './chat_route.js';
import {
  assignGiven,
  boolean,
  checkTogether,
  commonFields,
  fieldsOf,
  isText,
  missing,
  object,
  objectOf,
  pickFields,
  toolsOf,
  withAliases,
} from './fields.js';
import { invalidField } from './http_errors.js';
import { namedEvents } from './named_events.js';
import { ResponseEvents } from './response_events.js';
import { messagesOfInput } from './response_input.js';
import { headOf, itemsOf, responseOf } from './response_shape.js';

/** @typedef {import('./create_handler.js').TextRoute} TextRoute */

const LOGPROBS = 'message.output_text.logprobs';

/**
 * Reasoning is returned in plain text, so encrypted reasoning is not needed. Tools of other types
 * and their calls are left out.
 */
const isKnownInclude = (/** @type {any} */ list) =>
  Array.isArray(list) &&
  list.every(
    (one) =>
      one === 'reasoning.encrypted_content' || one === LOGPROBS || /^[a-z_]+_call\./.test(one),
  );

/** The fields that are passed to the engine under their own names. */
const effective = { ...commonFields, parallel_tool_calls: boolean, chat_template_kwargs: object };

/** @type {Record<string, import('./fields.js').Check>} */
const formats = {
  text: objectOf(fieldsOf('text_format')),
  json_object: objectOf(fieldsOf('text_format')),
  json_schema: objectOf(fieldsOf('response_format')),
};

/** @type {import('./fields.js').Check} */
function checkFormat(value, name) {
  const type = value.type ?? '';
  if (!Object.hasOwn(formats, type)) {
    throw invalidField(name, `${name}.type must be one of ${Object.keys(formats).join(', ')}`);
  }
  formats[type](value, name);
  if (type === 'json_schema') object(value.schema, `${name}.schema`);
}

const toolFields = fieldsOf('response_tool');

/** @param {any} tool */
const isFunction = (tool) => tool?.type === 'function';

const fields = withAliases({
  ...commonFields,
  ...fieldsOf('every', 'response'), // response_input.js checks the input
  text: objectOf({ ...fieldsOf('response_text'), format: checkFormat }),
  tools: toolsOf(isFunction, toolFields, '{"type": "function", "name", ...}'),
  tool_choice: (value, name) => chatToolChoice(chatChoiceOf(value), name),
  include: missing(isKnownInclude),
});

/** @param {any} choice @returns {unknown} the choice in the format of chat completions */
const chatChoiceOf = (choice) =>
  choice?.type === 'function' && isText(choice.name)
    ? { type: 'function', function: { name: choice.name } }
    : choice;

/** @param {any} tool @returns {object} the tool in the format of chat completions */
const chatToolOf = (tool) => ({ type: tool.type, function: pickFields(tool, toolFields) });

/**
 * Lists the tools of other types, which are left out, in a response header.
 * @param {any[] | null | undefined} tools
 * @param {Headers} headers
 * @param {(tool: any) => boolean} isKnown
 */
export function reportIgnored(tools, headers, isKnown = isFunction) {
  const ignored = [...(tools ?? []).entries()]
    .filter(([, tool]) => !isKnown(tool))
    .map(([index, { type }]) => `tools[${index}]=${/^[!-~]{1,40}$/.test(type) ? type : '?'}`);
  if (ignored.length > 0) headers.set('X-Wick-Ignored', ignored.join(', '));
}

/** @param {any} format @returns {object | undefined} the format as in chat completions */
function chatFormatOf(format) {
  if (!format || format.type === 'text') return undefined;
  const { type, ...own } = format;
  return type === 'json_schema' ? { type, json_schema: own } : { type };
}

/** @param {Record<string, any>} body that was checked */
const wantsLogprobs = ({ include, top_logprobs: top }) => include?.includes(LOGPROBS) || top > 0;

/**
 * @param {Record<string, any>} body that was checked
 * @returns {Record<string, any>} the body of a chat completion
 */
function chatBodyOf(body) {
  const wanted = /** @type {Record<string, any>} */ (pickFields(body, effective));
  wanted.messages = messagesOfInput(body.instructions, body.input);
  const functions = (body.tools ?? []).filter(isFunction);
  assignGiven(wanted, {
    max_completion_tokens: body.max_output_tokens,
    tools: functions.length > 0 ? functions.map(chatToolOf) : undefined,
    tool_choice: chatChoiceOf(body.tool_choice),
    response_format: chatFormatOf(body.text?.format),
    reasoning_effort: body.reasoning?.effort,
    ...(wantsLogprobs(body) && { logprobs: true, top_logprobs: body.top_logprobs, stream: true }),
    stream_options: body.stream || wantsLogprobs(body) ? { include_usage: true } : undefined,
  });
  return wanted;
}

/**
 * Returns the response for a stream. The chunks show which tokens belong to the text, to reasoning or to
 * calls.
 * @param {AsyncIterable<any>} chunks of the chat completion
 * @param {ResponseEvents} events
 * @returns {Promise<object>}
 */
async function wholeOf(chunks, events) {
  for await (const chunk of chunks) events.add(chunk);
  return /** @type {any} */ (events.take().at(-1)).response;
}

/** @type {TextRoute['answer']} */
async function answerResponse(engine, body, asked) {
  checkTogether({ ...body, stream_options: undefined }, 'input');
  const wanted = chatBodyOf(body);
  reportIgnored(body.tools, asked.headers);
  const answer = await requestChat(engine, wanted, asked);
  const head = headOf(body, asked.model);
  if (body.stream) {
    const events = new ResponseEvents(head);
    events.begin();
    const failureOf = (/** @type {Error} */ { message }) => events.failure(message);
    // two leading events: created and in progress
    return namedEvents(answer[Symbol.asyncIterator](), events, { leading: 2, failureOf });
  }
  if (wanted.stream) return wholeOf(answer, new ResponseEvents(head));
  const [{ message, finish_reason: finish }] = answer.choices;
  const status = finish === 'length' ? 'incomplete' : 'completed';
  return responseOf(head, status, itemsOf(message, status), { usage: answer.usage });
}

/** @type {TextRoute} */
export const responses = { fields, answer: answerResponse };
