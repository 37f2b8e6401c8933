// js/handler/chat_route.js — POST /v1/chat/completions: checks the body's fields and messages, and
// passes them to the engine.

import { fieldWords } from '../base/option_table.js';
import { VERSION } from '../base/version.js';
import { adaptersOf, lora } from './adapter_fields.js';
import {
  assignGiven,
  boolean,
  checkArray,
  checkKnown,
  checkTogether,
  commonFields,
  fieldsOf,
  isObject,
  isText,
  missing,
  must,
  object,
  objectOf,
  pickFields,
  text,
  withAliases,
} from './fields.js';
import { invalidField, refusal, unsupportedValue } from './http_errors.js';
import { saltWithin } from './keys.js';
import { addTimings, timedReader } from './native_timings.js';

/** @typedef {import('../index.js').Engine} Engine */
/** @typedef {import('./create_handler.js').TextRoute} TextRoute */

/** Identifies the version: one version gives the same answers for the same model and seed. */
export const FINGERPRINT = `wick-${VERSION}`;

/** The field that turns reasoning on and off at Z.ai, Moonshot and DeepSeek. */
const thinking = must(
  (value) => isObject(value) && ['enabled', 'disabled'].includes(value.type),
  fieldWords.thinking,
);

/** The fields that are passed to the engine. */
const effective = {
  ...commonFields,
  ...fieldsOf('chat_used'),
  messages: checkMessages,
  lora,
  response_format: checkFormat,
  tools: checkTools,
  tool_choice: chatToolChoice,
};
const fields = withAliases({
  ...effective,
  ...fieldsOf('every', 'chat_idle'),
  thinking,
  ...{ continue_final_message: boolean, add_generation_prompt: boolean },
});

const roles = ['system', 'developer', 'user', 'assistant', 'tool'];

/** The types of a format. The engine rejects other types. @type {Record<string, import('./fields.js').Check>} */
const formats = {
  text: objectOf(fieldsOf('text_format')),
  json_object: objectOf(fieldsOf('object_format')),
  json_schema: objectOf(fieldsOf('schema_format')),
};

/** @type {import('./fields.js').Check} */
function checkFormat(value, name) {
  object(value, name);
  if (Object.hasOwn(formats, value.type)) formats[value.type](value, name);
}

/** @type {import('./fields.js').Check} */
export function checkTools(tools, name) {
  checkArray(tools, name);
  for (const [index, tool] of tools.entries()) {
    const isFunction = tool?.type === 'function' && isText(tool.function?.name);
    const at = `${name}[${index}]`;
    if (isFunction && tool.function.name !== '') {
      const { parameters, description } = tool.function;
      if ((parameters ?? undefined) !== undefined) object(parameters, `${at}.function.parameters`);
      if ((description ?? undefined) !== undefined) text(description, `${at}.function.description`);
      continue;
    }
    throw invalidField(at, `${at} must be ${fieldWords.tool}`);
  }
}

/** @type {import('./fields.js').Check} */
export function chatToolChoice(choice, name) {
  const isWord = ['none', 'auto', 'required'].includes(choice);
  if (isWord || (choice?.type === 'function' && isText(choice.function?.name))) return;
  throw invalidField(name, `${name} must be ${fieldWords.tool_choice}`);
}

/** @type {import('./fields.js').Check} */
function checkCalls(calls, name) {
  checkArray(calls, name);
  for (const [index, call] of calls.entries()) {
    const args = call?.function?.arguments; // Ollama clients send objects
    if (isText(call?.function?.name) && (isText(args) || isObject(args))) continue;
    const at = `${name}[${index}]`;
    throw invalidField(at, `${at} must be ${fieldWords.call}`);
  }
}

/** @type {import('./fields.js').Check} */
export function checkMessages(messages, name) {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw invalidField(name, `${name} must be ${fieldWords.messages}`);
  }
  for (const [index, message] of messages.entries()) checkMessage(message, `${name}[${index}]`);
}

/** The checked members of a message. Clients also send other members that they store in messages. */
const messageFields = {
  ...fieldsOf('message'),
  ...{ role: checkRole, content: checkContent, tool_calls: checkCalls },
};

/** @param {any} message @param {string} at */
function checkMessage(message, at) {
  if (!isObject(message)) throw invalidField(at, `${at} must be an object`);
  checkKnown(message, messageFields, `${at}.`);
  // a reply with only reasoning or calls is sent back without content, and so is an empty result
  const mayBeEmpty = ['assistant', 'tool'].includes(message.role);
  for (const name of mayBeEmpty ? ['role'] : ['role', 'content']) {
    if (message[name] === undefined || message[name] === null) {
      throw invalidField(`${at}.${name}`, `${at} has no ${name}`);
    }
  }
}

/** @type {import('./fields.js').Check} */
function checkRole(role, name) {
  if (roles.includes(role)) return;
  if (role === 'function') return missing()(role, name);
  throw invalidField(name, `${name} must be ${fieldWords.role}`);
}

/**
 * Checks that a URL is a data URL: a server must not fetch URLs that its clients choose.
 * @param {unknown} url
 * @param {string} at
 * @param {string} name
 */
export function checkDataUrl(url, at, name) {
  if (typeof url !== 'string') throw invalidField(name, `${at} must have a url`);
  if (/^data:/i.test(url)) return;
  throw unsupportedValue(name, `${at} must have a data URL: this server does not fetch URLs`);
}

/** @param {any} part @param {string} at */
function checkMedia({ type, image_url: image, input_audio: audio }, at) {
  if (type === 'input_audio') {
    if (typeof audio?.data === 'string' && typeof audio.format === 'string') return;
    throw invalidField(`${at}.input_audio`, `${at} must have data and a format`);
  }
  checkDataUrl(image?.url ?? image, at, `${at}.image_url`);
}

/** @type {import('./fields.js').Check} */
function checkContent(content, name) {
  if (typeof content === 'string') return;
  if (!Array.isArray(content)) {
    throw invalidField(name, `${name} must be ${fieldWords.content}`);
  }
  for (const [index, part] of content.entries()) {
    const at = `${name}[${index}]`;
    if (part?.type === 'text' && typeof part.text === 'string') continue;
    if (part?.type === 'image_url' || part?.type === 'input_audio') {
      checkMedia(part, at);
      continue;
    }
    if (typeof part?.type !== 'string' || part.type === 'text') {
      throw invalidField(at, `${at} must be a part with a type and a text`);
    }
    const message = `${at} is of type ${part.type.slice(0, 40)}: text, image_url and input_audio are supported`;
    throw unsupportedValue(at, message);
  }
}

/**
 * Returns the template variables. Templates use one of two names for the reasoning switch.
 * @param {boolean | undefined} reasons whether reasoning is on; undefined: the template decides
 * @param {object | null | undefined} own the client's variables
 * @returns {object | undefined}
 */
export const variablesOf = (reasons, own) =>
  reasons === undefined
    ? (own ?? undefined)
    : { enable_thinking: reasons, thinking: reasons, ...own };

/**
 * @param {Engine} engine
 * @param {Record<string, any>} wanted the body of a chat completion
 * @param {import('./create_handler.js').Asked} asked
 * @returns {Promise<any>} the completion, or its chunks
 */
export function requestChat(engine, wanted, { signal, salt, adapters }) {
  const body = { ...(adapters && { adapters }), ...wanted, salt: saltWithin(salt, wanted.salt) };
  return engine.chat.completions.create(/** @type {any} */ (body), { signal });
}

/**
 * Handles vLLM's fields for continuing the last message.
 * @param {Record<string, any>} body that was checked
 * @returns {any[]} its messages
 */
function continued(body) {
  const { messages, continue_final_message: isContinued, add_generation_prompt: isNew } = body;
  if (isNew === false && !isContinued) {
    const message = 'add_generation_prompt: false needs continue_final_message: true';
    throw invalidField('add_generation_prompt', message);
  }
  if (!isContinued) return messages;
  if (isNew) {
    const message = 'continue_final_message needs add_generation_prompt: false';
    throw invalidField('continue_final_message', message);
  }
  if (messages.at(-1).role !== 'assistant') {
    const message = 'continue_final_message needs a last message from the assistant';
    throw invalidField('continue_final_message', message);
  }
  return [...messages.slice(0, -1), { ...messages.at(-1), prefix: true }];
}

/** @type {TextRoute['answer']} */
async function answerChat(engine, body, asked) {
  checkTogether(body, 'messages');
  if (body.top_logprobs && !body.logprobs) {
    throw refusal('no_logprobs', [], { param: 'top_logprobs' });
  }
  const { lora: uses, ...wanted } = /** @type {any} */ (pickFields(body, effective));
  wanted.messages = continued(body);
  if (body.n_probs && !body.top_logprobs) {
    assignGiven(wanted, { logprobs: true, top_logprobs: body.n_probs });
  }
  const { enable_thinking, thinking: switched } = body;
  const reasons = enable_thinking ?? (switched ? switched.type === 'enabled' : undefined);
  wanted.chat_template_kwargs = variablesOf(reasons, body.chat_template_kwargs);
  wanted.adapters = await adaptersOf(engine, uses, asked.adapters);
  const head = { model: asked.model, system_fingerprint: FINGERPRINT };
  if (body.stream) return openChunks(engine, wanted, asked, head);
  const whole = await requestChat(engine, wanted, asked);
  if ((wanted.n ?? 1) === 1) addTimings(whole, whole.usage);
  return Object.assign(whole, head);
}

/** @type {TextRoute} */
export const chat = { fields, answer: answerChat };

/**
 * @param {Engine} engine
 * @param {any} wanted the request
 * @param {import('./create_handler.js').Asked} asked
 * @param {object} head members of each chunk
 * @returns {Promise<import('./event_stream.js').Chunks>}
 */
async function openChunks(engine, wanted, asked, head) {
  const { n: count = 1, stream_options: options } = wanted;
  if (count === 1) wanted.stream_options = { ...options, include_usage: true };
  const answer = await requestChat(engine, wanted, asked);
  const chunks = answer[Symbol.asyncIterator]();
  const wantsUsage = options?.include_usage === true;
  const read = count === 1 ? timedReader(chunks, wantsUsage) : () => chunks.next();
  return {
    leading: count, // one chunk with the role for each choice
    async next() {
      const next = await read();
      if (next.value) Object.assign(next.value, head);
      return next;
    },
    leave: () => void chunks.return(),
  };
}
