// js/handler/messages_route.js — POST /v1/messages and /v1/messages/count_tokens, Anthropic's API,
// through a chat completion. Nothing is stored.

import { requestChat, variablesOf } from './chat_route.js';
import {
  assignGiven,
  boolean,
  commonFields,
  effort,
  fieldsOf,
  ignored,
  isOneOf,
  isText,
  must,
  numberIn,
  object,
  objectOf,
  pickFields,
  text,
  toolsOf,
  withAliases,
} from './fields.js';
import { invalidField } from './http_errors.js';
import { MessagesEvents } from './messages_events.js';
import { messagesOfBlocks } from './messages_input.js';
import { begunMessage, messageOf, messagesErrorOf } from './messages_shape.js';
import { namedEvents } from './named_events.js';
import { reportIgnored } from './responses_route.js';

/** @typedef {import('../index.js').Engine} Engine */
/** @typedef {import('./create_handler.js').TextRoute} TextRoute */

/** The fields that are passed to the engine unchanged. */
const effective = { ...commonFields, chat_template_kwargs: object };

const thinking = objectOf({
  type: must(isOneOf('enabled', 'disabled', 'adaptive'), 'enabled, disabled or adaptive'),
  budget_tokens: numberIn({ min: 1, max: 2 ** 32 - 1, whole: true }),
  display: ignored,
});

const format = objectOf({
  type: must(isOneOf('json_schema'), 'json_schema'),
  ...{ schema: object, name: text },
});

/**
 * Returns whether the client defines the tool. Anthropic's own tools have other types, such as
 * bash_20250124.
 * @param {any} tool
 */
const isOwnTool = (tool) => (tool?.type ?? 'custom') === 'custom';

/**
 * Converts each type of tool choice to that of chat completions.
 * @type {Record<string, (name: string) => unknown>}
 */
const choices = {
  auto: () => 'auto',
  any: () => 'required',
  none: () => 'none',
  tool: (name) => ({ type: 'function', function: { name } }),
};

const choiceFields = {
  type: must(isOneOf(...Object.keys(choices)), 'auto, any, tool or none'),
  ...{ name: text, disable_parallel_tool_use: boolean },
};

/** @type {import('./fields.js').Check} */
function checkChoice(value, name) {
  objectOf(choiceFields)(value, name);
  if (!isText(value.type)) throw invalidField(name, `${name} has no type`);
  if (value.type === 'tool' && !isText(value.name)) {
    throw invalidField(`${name}.name`, `${name} has no name`);
  }
}

const countFields = {
  ...fieldsOf('counted'), // messages_input.js checks `system` and `messages`
  tools: toolsOf(
    isOwnTool,
    { name: text, description: text, input_schema: object },
    '{"name", "description", "input_schema"}',
  ),
  ...{ tool_choice: checkChoice, thinking, output_format: format },
  output_config: objectOf({ effort, format }),
};

/** @param {any} tool @returns {object} the tool in the format of chat completions */
const chatToolOf = ({ name, description, input_schema: parameters }) => ({
  type: 'function',
  function: pickFields({ name, description, parameters }, { name, description, parameters }),
});

/**
 * @param {Record<string, any>} body that was checked
 * @returns {Record<string, any>} the body of a chat completion
 */
function chatBodyOf(body) {
  const wanted = /** @type {Record<string, any>} */ (pickFields(body, effective));
  const tools = (body.tools ?? []).filter(isOwnTool);
  const choice = body.tool_choice;
  const shape = body.output_config?.format ?? body.output_format;
  const reasons = body.thinking ? body.thinking.type !== 'disabled' : undefined;
  assignGiven(wanted, {
    messages: messagesOfBlocks(body.system, body.messages),
    stop: body.stop_sequences,
    tools: tools.length > 0 ? tools.map(chatToolOf) : undefined,
    tool_choice: choice && choices[choice.type](choice.name),
    parallel_tool_calls: choice?.disable_parallel_tool_use ? false : undefined,
    thinking_budget_tokens: body.thinking?.budget_tokens,
    reasoning_effort: body.output_config?.effort,
    response_format: shape && { type: 'json_schema', json_schema: { schema: shape.schema } },
    chat_template_kwargs: variablesOf(reasons, body.chat_template_kwargs),
    stream_options: body.stream ? { include_usage: true } : undefined,
  });
  return wanted;
}

/** @param {Engine} engine @param {Record<string, any>} wanted @param {AbortSignal} signal @returns {Promise<number>} */
function countOf(engine, wanted, signal) {
  const {
    messages,
    tools,
    tool_choice,
    reasoning_effort,
    chat_template_kwargs: variables,
  } = wanted;
  const options = { tools, tool_choice, reasoning_effort, variables, signal };
  return engine.countTokens(messages, options);
}

/** @type {TextRoute['answer']} */
async function answerMessages(engine, body, asked) {
  const { model } = asked;
  const wanted = chatBodyOf(body);
  reportIgnored(body.tools, asked.headers, isOwnTool);
  let promptTokens = 0;
  wanted.onPrefill = (/** @type {{total: number}} */ { total }) => {
    promptTokens = total;
  };
  const answer = await requestChat(engine, wanted, asked);
  if (!body.stream) return messageOf(answer, model);
  const events = new MessagesEvents(() => begunMessage(model, promptTokens));
  const ends = { leading: 0, failureOf: messagesErrorOf };
  return namedEvents(answer[Symbol.asyncIterator](), events, ends);
}

/** @type {TextRoute} */
export const messages = {
  fields: withAliases({ ...effective, ...countFields, ...fieldsOf('messages') }),
  answer: answerMessages,
  errorOf: messagesErrorOf,
};

/** @type {TextRoute} */
export const messageCount = {
  fields: countFields,
  answer: async (engine, body, { signal }) => ({
    input_tokens: await countOf(engine, chatBodyOf(body), signal),
  }),
  errorOf: messagesErrorOf,
};
