// js/prompt_api/prompts.js — checks prompts by the rules of the Prompt API and converts them to chat
// completion messages.

import { domError } from './dom_errors.js';
import { isMedia, joinedContent, mediaPart } from './prompt_media.js';
import {
  LanguageModelToolCall,
  LanguageModelToolError,
  LanguageModelToolSuccess,
} from './tool_parts.js';

/** @import { ChatMessage } from '../index.js' */

const roles = ['system', 'user', 'assistant'];

/**
 * @param {string} what the name of the value for errors
 * @param {unknown} value
 * @returns {string} its JSON; throws a DataError if it cannot be converted
 */
function jsonOf(what, value) {
  try {
    const isPlain = typeof value !== 'object' || /Object|Array|Null/.test(tagOf(value));
    const json = isPlain ? JSON.stringify(value) : undefined;
    if (json !== undefined) return json;
  } catch {
    // the value is circular or contains a bigint
  }
  throw domError('DataError', `${what} must have a JSON representation`);
}

/** @param {unknown} value */
const tagOf = (value) => Object.prototype.toString.call(value);

/** @param {{type: string, value: any}} part of a result @returns {string} */
function textOfResult({ type, value }) {
  if (isMedia(type)) {
    throw domError('NotSupportedError', `A tool result cannot have a part of type ${type}`);
  }
  if (type !== 'text' && type !== 'object') {
    throw new TypeError(`A tool result cannot have a part of type ${type}`);
  }
  return typeof value === 'string' && type === 'text' ? value : jsonOf("A tool's result", value);
}

/** @param {LanguageModelToolSuccess | LanguageModelToolError} response @returns {ChatMessage} */
const toolMessage = (response) => ({
  role: 'tool',
  tool_call_id: response.callID,
  name: response.name,
  content:
    response instanceof LanguageModelToolError
      ? response.errorMessage
      : response.result.map(textOfResult).join('\n'),
});

/** @param {LanguageModelToolCall} call */
function callOf({ callID, name, arguments: given }) {
  const json = jsonOf("A call's arguments", given);
  if (!json.startsWith('{')) throw domError('DataError', "A call's arguments must be an object");
  const type = /** @type {const} */ ('function');
  return { id: callID, type, function: { name, arguments: json } };
}

/**
 * @param {any} part
 * @param {string} role
 * @param {{parts: any[], calls: ReturnType<typeof callOf>[], responses: ChatMessage[]}} into
 * @param {string[]} inputs the types of expectedInputs
 */
function readPart(part, role, into, inputs) {
  const { type, value } = part ?? {};
  if (isMedia(type) && role === 'assistant') {
    throw domError('NotSupportedError', `A message from the assistant cannot contain ${type}`);
  }
  if (type === 'tool-call' || type === 'tool-response' || isMedia(type)) {
    checkExpected(type, inputs);
  }
  if (type === 'text') {
    if (typeof value !== 'string') throw new TypeError('The value of a text part must be a string');
    into.parts.push({ type, text: value });
  } else if (type === 'tool-call') {
    if (role !== 'assistant' || !(value instanceof LanguageModelToolCall)) {
      throw new TypeError(
        'A tool-call must be a LanguageModelToolCall in a message from the assistant',
      );
    }
    into.calls.push(callOf(value));
  } else if (type === 'tool-response') {
    const isResponse =
      value instanceof LanguageModelToolSuccess || value instanceof LanguageModelToolError;
    if (role !== 'user' || !isResponse) {
      throw new TypeError(
        'A tool-response must be a LanguageModelToolSuccess or -Error in a message from the user',
      );
    }
    into.responses.push(toolMessage(value));
  } else if (isMedia(type)) into.parts.push(mediaPart(type, value));
  else throw new TypeError(`A message cannot have a part of type ${type}`);
}

/** @param {string} type @param {string[]} inputs */
function checkExpected(type, inputs) {
  if (inputs.includes(type)) return;
  throw domError('NotSupportedError', `expectedInputs of this session does not include ${type}`);
}

/** @param {any[]} parts @returns {any} a string, or parts if not all of them are text */
const contentOf = (parts) =>
  parts.some(({ type }) => isMedia(type)) ? parts : parts.map(({ text }) => text).join('');

/**
 * @param {any} message
 * @param {string[]} inputs
 * @returns {ChatMessage[]} the messages; tool results are separate messages
 */
function messagesOf(message, inputs) {
  const { role, content } = message;
  const into = /** @type {Parameters<typeof readPart>[2]} */ ({
    parts: [],
    calls: [],
    responses: [],
  });
  if (typeof content === 'string') into.parts.push({ type: 'text', text: content });
  else if (!Array.isArray(content)) throw new TypeError('content must be a string or an array');
  else for (const part of content) readPart(part, role, into, inputs);
  const said = contentOf(into.parts);
  if (into.responses.length > 0 && said === '') return into.responses;
  /** @type {ChatMessage} */
  const own = { role, content: said };
  if (into.calls.length > 0) own.tool_calls = into.calls;
  if (message.prefix === true) own.prefix = true;
  return [...into.responses, own];
}

/**
 * @param {unknown} input
 * @param {{isFirst: boolean, mayPrefix: boolean, inputs: string[]}} place `isFirst`: whether it is
 * the first message of a session, which may be a system prompt; `inputs`: the types that the
 * session expects
 * @returns {ChatMessage[]}
 */
export function readPrompt(input, { isFirst, mayPrefix, inputs }) {
  if (!Array.isArray(input)) return [{ role: 'user', content: String(input) }];
  for (const [index, message] of input.entries()) {
    if (typeof message !== 'object' || message === null || !roles.includes(message.role)) {
      throw new TypeError(`A message must have one of the roles ${roles.join(', ')}`);
    }
    if (message.role === 'system' && (!isFirst || index > 0)) {
      throw new TypeError('A system prompt can only be the first message of a session');
    }
    if (message.prefix === true) {
      const isLast = index === input.length - 1;
      if (!mayPrefix || !isLast || message.role !== 'assistant') {
        throw domError(
          'SyntaxError',
          'prefix is allowed only in a last message from the assistant',
        );
      }
    }
  }
  return input.flatMap((message) => messagesOf(message, inputs));
}

/** @param {object} wanted @returns {object} a copy */
function schemaOf(wanted) {
  try {
    return JSON.parse(JSON.stringify(wanted));
  } catch (error) {
    throw domError(
      'NotSupportedError',
      'responseConstraint must have a JSON representation',
      error,
    );
  }
}

/**
 * Returns the text that is appended to a prompt if the answer must match a JSON schema.
 * @param {object} schema
 */
const schemaWords = (schema) => `\n\nAnswer with JSON of this schema: ${JSON.stringify(schema)}`;

/**
 * @param {{responseConstraint?: any, omitResponseConstraintInput?: boolean}} options
 * @returns {{fields: object, words: string}} fields of a chat completion, and the instructions to
 * the model
 */
export function readConstraint({ responseConstraint: wanted, omitResponseConstraintInput: omit }) {
  if (wanted === undefined || wanted === null) {
    if (omit) throw new TypeError('omitResponseConstraintInput needs a responseConstraint');
    return { fields: {}, words: '' };
  }
  if (wanted instanceof RegExp) return { fields: { regex: wanted }, words: '' };
  if (typeof wanted !== 'object' || Array.isArray(wanted)) {
    throw new TypeError('responseConstraint must be a JSON schema or a RegExp');
  }
  const schema = schemaOf(wanted);
  const json_schema = { name: 'answer', schema };
  const words = omit ? '' : schemaWords(schema);
  return { fields: { response_format: { type: 'json_schema', json_schema } }, words };
}

/**
 * @param {ChatMessage[]} messages
 * @param {string} words
 * @returns {ChatMessage[]} the messages, with the instructions appended to the user's last one
 */
export function withWords(messages, words) {
  const at = words === '' ? -1 : messages.findLastIndex(({ role }) => role === 'user');
  if (at < 0) return messages;
  const changed = { ...messages[at], content: joinedContent(messages[at].content, words, '') };
  return [...messages.slice(0, at), changed, ...messages.slice(at + 1)];
}
