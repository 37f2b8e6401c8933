// js/handler/messages_route.js — POST /v1/messages and /v1/messages/count_tokens, Anthropic's API,
// through a chat completion. Nothing is stored.

import {
  assignGiven,
  boolean,
  checkBody,
  checkFields,
  commonFields,
  effort,
  ignored,
  isObject,
  isOneOf,
  isText,
  missing,
  must,
  numberIn,
  object,
  pickFields,
  text,
  tokensLimit,
  withAliases,
} from './fields.js';
import { invalidField } from './http_errors.js';
import { saltWithin } from './keys.js';
import { MessagesEvents } from './messages_events.js';
import { messagesOfBlocks } from './messages_input.js';
import { begunMessage, messageOf, messagesErrorOf } from './messages_shape.js';
import { namedEvents } from './named_events.js';
import { reportIgnored } from './responses_route.js';

/** @typedef {import('../index.js').Engine} Engine */
/** @typedef {import('./event_stream.js').Chunks} Chunks */

const { n, stop, stream_options, ...shared } = commonFields;

/** The fields that are passed to the engine unchanged. @type {Record<string, import('./fields.js').Check>} */
const effective = { ...shared, chat_template_kwargs: object };

const stops = must((value) => Array.isArray(value) && value.every(isText), 'an array of strings');

/** @type {Record<string, import('./fields.js').Check>} */
const countFields = {
  ...{ model: text, system: ignored, messages: ignored }, // messages_input.js checks them
  ...{ tools: checkTools, tool_choice: checkChoice, thinking: checkThinking },
  ...{ cache_control: ignored, output_config: checkOutput, output_format: checkFormat },
  ...{ context_management: ignored, mcp_servers: missing(isEmptyList), speed: ignored },
};

/** @type {Record<string, import('./fields.js').Check>} */
const fields = withAliases({
  ...effective,
  ...countFields,
  max_tokens: tokensLimit,
  stop_sequences: stops,
  ...{ metadata: ignored, service_tier: ignored, container: missing(), betas: ignored },
  inference_geo: ignored,
});

export const messagesFields = new Set(Object.keys(fields));

/** @param {unknown} value */
function isEmptyList(value) {
  return Array.isArray(value) && value.length === 0;
}

/** @type {import('./fields.js').Check} */
function checkThinking(value, name) {
  object(value, name);
  const type = must(isOneOf('enabled', 'disabled', 'adaptive'), 'enabled, disabled or adaptive');
  const budget_tokens = numberIn({ min: 1, max: 2 ** 32 - 1, whole: true });
  checkFields(value, { type, budget_tokens, display: ignored }, `${name}.`);
}

/** @type {import('./fields.js').Check} */
function checkFormat(value, name) {
  object(value, name);
  const type = must(isOneOf('json_schema'), 'json_schema');
  checkFields(value, { type, schema: object, name: text }, `${name}.`);
}

/** @type {import('./fields.js').Check} */
function checkOutput(value, name) {
  object(value, name);
  checkFields(value, { effort, format: checkFormat }, `${name}.`);
}

/**
 * Returns whether the client defines the tool. Anthropic's own tools have other types, such as
 * bash_20250124.
 * @param {any} tool
 */
const isOwnTool = (tool) => (tool?.type ?? 'custom') === 'custom';

/** Other members of a tool, such as `cache_control`, are left out. */
const toolFields = { name: text, description: text, input_schema: object };

/** @type {import('./fields.js').Check} */
function checkTools(tools, name) {
  if (!Array.isArray(tools)) throw invalidField(name, `${name} must be an array`);
  for (const [index, tool] of tools.entries()) {
    const at = `${name}[${index}]`;
    if (isText(tool?.type) && !isOwnTool(tool)) continue;
    if (!isObject(tool) || !isText(tool.name) || tool.name === '') {
      throw invalidField(at, `${at} must be {"name", "description", "input_schema"}`);
    }
    checkFields(pickFields(tool, toolFields), toolFields, `${at}.`);
  }
}

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

/** @type {import('./fields.js').Check} */
function checkChoice(value, name) {
  object(value, name);
  const type = must(isOneOf(...Object.keys(choices)), 'auto, any, tool or none');
  checkFields(value, { type, name: text, disable_parallel_tool_use: boolean }, `${name}.`);
  if (!isText(value.type)) throw invalidField(name, `${name} has no type`);
  if (value.type === 'tool' && !isText(value.name)) {
    throw invalidField(`${name}.name`, `${name} has no name`);
  }
}

/** @param {any} tool @returns {object} the tool in the format of chat completions */
const chatToolOf = ({ name, description, input_schema: parameters }) => ({
  type: 'function',
  function: pickFields({ name, description, parameters }, { name, description, parameters }),
});

/**
 * Returns the template variables. Templates use one of two names for the reasoning switch.
 * @param {Record<string, any>} body
 */
function variablesOf({ thinking, chat_template_kwargs: own }) {
  if (!thinking) return own ?? undefined;
  const isOn = thinking.type !== 'disabled';
  return { enable_thinking: isOn, thinking: isOn, ...own };
}

/**
 * @param {Record<string, any>} body that was checked
 * @returns {Record<string, any>} the body of a chat completion
 */
function chatBodyOf(body) {
  const wanted = /** @type {Record<string, any>} */ (pickFields(body, effective));
  const tools = (body.tools ?? []).filter(isOwnTool);
  const choice = body.tool_choice;
  const format = body.output_config?.format ?? body.output_format;
  assignGiven(wanted, {
    messages: messagesOfBlocks(body.system, body.messages),
    stop: body.stop_sequences,
    tools: tools.length > 0 ? tools.map(chatToolOf) : undefined,
    tool_choice: choice && choices[choice.type](choice.name),
    parallel_tool_calls: choice?.disable_parallel_tool_use ? false : undefined,
    thinking_budget_tokens: body.thinking?.budget_tokens,
    reasoning_effort: body.output_config?.effort,
    response_format: format && { type: 'json_schema', json_schema: { schema: format.schema } },
    chat_template_kwargs: variablesOf(body),
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

/**
 * @param {Engine} engine
 * @param {Record<string, any>} body
 * @param {import('./create_handler.js').Asked} asked
 * @returns {Promise<object | Chunks>} a message, or with `stream: true` its events
 */
export async function answerMessages(engine, body, { signal, salt, model, headers, adapters }) {
  checkBody(body, fields);
  const wanted = chatBodyOf(body);
  reportIgnored(body.tools, headers, isOwnTool);
  wanted.salt = saltWithin(salt, body.salt);
  if (adapters) wanted.adapters = adapters;
  let promptTokens = 0;
  wanted.onPrefill = (/** @type {{total: number}} */ { total }) => {
    promptTokens = total;
  };
  const create = /** @type {any} */ (engine.chat.completions);
  const answer = await create.create(wanted, { signal });
  if (!body.stream) return messageOf(answer, model);
  const events = new MessagesEvents(() => begunMessage(model, promptTokens));
  const ends = { leading: 0, failureOf: messagesErrorOf };
  return namedEvents(answer[Symbol.asyncIterator](), events, ends);
}

/**
 * @param {Engine} engine
 * @param {Record<string, any>} body
 * @param {import('./create_handler.js').Asked} asked
 * @returns {Promise<object>}
 */
export async function countMessages(engine, body, { signal }) {
  checkFields(body, countFields);
  return { input_tokens: await countOf(engine, chatBodyOf(body), signal) };
}

export const countedFields = new Set(Object.keys(countFields));
