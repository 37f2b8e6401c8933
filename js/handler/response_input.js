// js/handler/response_input.js — converts the input of /v1/responses, a string or items, to messages of a
// conversation.

import { checkDataUrl } from './chat_route.js';
import { checkRequired, isObject, isText, must } from './fields.js';
import { invalidField, unsupportedValue } from './http_errors.js';
import { MessageList } from './message_list.js';

/** @typedef {import('./message_list.js').Message} Message */

const string = must(isText, 'a string');
const roles = ['system', 'developer', 'user', 'assistant'];
/** The types of parts that contain text. */
const textParts = ['input_text', 'output_text', 'text', 'summary_text', 'reasoning_text'];

/** @param {unknown} parts a string, or parts @param {string} at @returns {string} */
function textOf(parts, at) {
  if (typeof parts === 'string') return parts;
  if (!Array.isArray(parts)) throw invalidField(at, `${at} must be a string or an array of parts`);
  const texts = parts.map((part, index) => {
    const here = `${at}[${index}]`;
    if (textParts.includes(part?.type) && typeof part.text === 'string') return part.text;
    if (part?.type === 'refusal' && typeof part.refusal === 'string') return part.refusal;
    if (typeof part?.type !== 'string' || textParts.includes(part.type)) {
      throw invalidField(here, `${here} must be a part with a type and a text`);
    }
    const shown = part.type.slice(0, 40);
    throw unsupportedValue(here, `${here} is of type ${shown}: only text is supported`);
  });
  return texts.join('\n');
}

/** @param {any} part @returns {boolean} */
const isImage = (part) => part?.type === 'input_image' && isText(part.image_url);

/**
 * @param {unknown} parts as in textOf, but also images
 * @param {string} at
 * @returns {Message['content']}
 */
function contentOf(parts, at) {
  if (!Array.isArray(parts) || !parts.some(isImage)) return textOf(parts, at);
  return parts.map((part, index) => {
    if (!isImage(part)) return { type: 'text', text: textOf([part], at) };
    checkDataUrl(part.image_url, `${at}[${index}]`, `${at}[${index}]`);
    return { type: 'image_url', image_url: { url: part.image_url } };
  });
}

/** @type {Record<string, (item: any, at: string, conversation: MessageList) => void>} */
const takers = {
  message(item, at, conversation) {
    if (!roles.includes(item.role)) {
      throw invalidField(`${at}.role`, `${at}.role must be one of ${roles.join(', ')}`);
    }
    conversation.say(item.role, contentOf(item.content, `${at}.content`));
  },
  reasoning(item, at, conversation) {
    const { content, summary } = item;
    const parts = Array.isArray(content) && content.length > 0 ? content : (summary ?? []);
    conversation.think(textOf(parts, `${at}.${parts === content ? 'content' : 'summary'}`));
  },
  function_call(item, at, conversation) {
    checkItem(item, ['call_id', 'name', 'arguments'], at);
    conversation.call(item.call_id, item.name, item.arguments);
  },
  function_call_output(item, at, conversation) {
    checkItem(item, ['call_id'], at);
    if ((item.output ?? undefined) === undefined) {
      throw invalidField(`${at}.output`, `${at} has no output`);
    }
    conversation.answer(item.call_id, contentOf(item.output, `${at}.output`));
  },
  // A tool of this type is left out; its earlier calls become calls of a function that takes a
  // string.
  custom_tool_call(item, at, conversation) {
    checkItem(item, ['call_id', 'name', 'input'], at);
    conversation.call(item.call_id, item.name, JSON.stringify({ input: item.input }));
  },
  custom_tool_call_output(item, at, conversation) {
    takers.function_call_output(item, at, conversation);
  },
  local_shell_call(item, at, conversation) {
    checkItem(item, ['call_id'], at);
    conversation.call(item.call_id, 'local_shell', JSON.stringify(item.action ?? {}));
  },
};

/**
 * Converts calls of other tools that the client runs, such as a shell, to calls of functions. Tools that
 * OpenAI's server runs have no call_id, and their items contain nothing that a model can read.
 * @param {any} item
 * @param {string} at
 * @param {MessageList} conversation
 * @returns {boolean} whether the item was handled
 */
function takeOther(item, at, conversation) {
  const [, name, isOutput] = /^([a-z_]+)_call(_output)?$/.exec(String(item.type)) ?? [];
  if (!name || (isOutput && name === 'computer')) return false; // the output is a screenshot
  const { type, id, status, call_id: call, output, ...own } = item;
  if (isOutput) {
    checkItem({ call_id: call ?? id }, ['call_id'], at);
    const text = isText(output) ? output : JSON.stringify(output ?? null);
    conversation.answer(call ?? id, text);
  } else if (isText(call)) {
    conversation.call(call, name, JSON.stringify(own));
  }
  return true;
}

/**
 * Checks the required members of an item. Other members are left out.
 * @param {any} item
 * @param {string[]} names of the members that must be strings
 * @param {string} at
 */
function checkItem(item, names, at) {
  checkRequired(item, Object.fromEntries(names.map((name) => [name, string])), at);
}

/**
 * @param {unknown} instructions
 * @param {unknown} input
 * @returns {Message[]}
 */
export function messagesOfInput(instructions, input) {
  const conversation = new MessageList();
  if (typeof instructions === 'string') conversation.say('system', instructions);
  if (typeof input === 'string') {
    conversation.say('user', input);
    return conversation.messages;
  }
  if (!Array.isArray(input) || input.length === 0) {
    throw invalidField('input', 'input must be a string or an array of at least one item');
  }
  for (const [index, item] of input.entries()) {
    const at = `input[${index}]`;
    if (!isObject(item)) throw invalidField(at, `${at} must be an object`);
    const type = item.type ?? 'message';
    if (Object.hasOwn(takers, type)) {
      takers[type](item, at, conversation);
    } else if (!takeOther(item, at, conversation)) {
      const shown = String(type).slice(0, 40);
      throw unsupportedValue(at, `${at} is of type ${shown}, which is not supported`);
    }
  }
  const { messages } = conversation;
  if (messages.length > 0) return messages;
  throw invalidField('input', 'input has no item that a model can read');
}
