// js/handler/messages_input.js — converts the conversation of a /v1/messages request (Anthropic's format) to chat
// completion messages (https://docs.anthropic.com/en/api/messages).

import { checkDataUrl } from './chat_route.js';
import { checkRequired, isObject, isText, must, object } from './fields.js';
import { invalidField, unsupportedValue } from './http_errors.js';
import { MessageList } from './message_list.js';

/** @typedef {import('./message_list.js').Message} Message */

const string = must(isText, 'a string');

/** @param {any} block @param {string} at */
function unsupported(block, at) {
  const shown = String(block.type).slice(0, 40);
  return unsupportedValue(at, `${at} is of type ${shown}, which is not supported`);
}

/** The required fields of each type of block. @type {Record<string, Record<string, import('./fields.js').Check>>} */
const blockFields = {
  text: { text: string },
  image: { source: object },
  thinking: { thinking: string },
  redacted_thinking: {},
  tool_use: { id: string, name: string, input: object },
  tool_result: { tool_use_id: string },
};

/**
 * Checks the required fields of a block. Other members, such as `cache_control`, are left out.
 * @param {any} block
 * @param {string} at
 */
function checkBlock(block, at) {
  if (!isObject(block) || !isText(block.type)) {
    throw invalidField(at, `${at} must be an object with a type`);
  }
  if (!Object.hasOwn(blockFields, block.type)) throw unsupported(block, at);
  checkRequired(block, blockFields[block.type], at);
}

/**
 * @param {unknown} content a string, or blocks
 * @param {string} at
 * @param {string[]} types of blocks that are allowed here
 * @returns {any[]} blocks
 */
function blocksOf(content, at, types) {
  if (isText(content)) return [{ type: 'text', text: content }];
  if (!Array.isArray(content)) {
    throw invalidField(at, `${at} must be a string or an array of blocks`);
  }
  for (const [index, block] of content.entries()) {
    const here = `${at}[${index}]`;
    checkBlock(block, here);
    if (!types.includes(block.type)) throw unsupported(block, here);
  }
  return content;
}

/** @param {any} source of an image @param {string} at @returns {string} a data URL */
function urlOf({ type, media_type: media, data, url }, at) {
  if (type === 'base64' && isText(media) && isText(data)) return `data:${media};base64,${data}`;
  if (type === 'url') checkDataUrl(url, at, `${at}.source`);
  else throw invalidField(`${at}.source`, `${at}.source must have a media_type and base64 data`);
  return url;
}

/** @param {any[]} blocks @param {string} type */
const ofType = (blocks, type) => blocks.filter((block) => block.type === type);

/** @param {any[]} blocks @returns {string} the text of its text blocks */
const textOf = (blocks) =>
  ofType(blocks, 'text')
    .map(({ text }) => text)
    .join('\n');

/** @param {any[]} blocks @param {string} at @returns {Message['content']} parts if there are images */
function contentOf(blocks, at) {
  if (ofType(blocks, 'image').length === 0) return textOf(blocks);
  /** @type {import('./message_list.js').Part[]} of texts and images, in order */
  const parts = [];
  for (const [index, { type, text, source }] of blocks.entries()) {
    if (type === 'text') parts.push({ type, text });
    if (type !== 'image') continue;
    parts.push({ type: 'image_url', image_url: { url: urlOf(source, `${at}[${index}]`) } });
  }
  return parts;
}

/** @param {unknown} content @param {string} at @param {MessageList} list */
function takeAssistant(content, at, list) {
  const types = ['text', 'thinking', 'redacted_thinking', 'tool_use'];
  const blocks = blocksOf(content, at, types);
  for (const { thinking } of ofType(blocks, 'thinking')) list.think(thinking);
  list.say('assistant', textOf(blocks));
  for (const { id, name, input } of ofType(blocks, 'tool_use')) {
    list.call(id, name, JSON.stringify(input));
  }
}

/** Results come before the text of the same message, because they must follow the assistant's calls. */
function takeUser(
  /** @type {unknown} */ content,
  /** @type {string} */ at,
  /** @type {MessageList} */ list,
) {
  const blocks = blocksOf(content, at, ['text', 'image', 'tool_result']);
  for (const [index, block] of blocks.entries()) {
    if (block.type !== 'tool_result') continue;
    const inside = `${at}[${index}].content`;
    const result = blocksOf(block.content ?? '', inside, ['text', 'image']);
    list.answer(block.tool_use_id, contentOf(result, inside));
  }
  if (blocks.some(({ type }) => type !== 'tool_result')) list.say('user', contentOf(blocks, at));
}

/** @type {Record<string, typeof takeUser>} */
const takers = { user: takeUser, assistant: takeAssistant };

/**
 * @param {unknown} system a string, or blocks of text
 * @param {unknown} messages
 * @returns {(Message & {prefix?: true})[]} the messages; a last message from the assistant is
 * continued
 */
export function messagesOfBlocks(system, messages) {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw invalidField('messages', 'messages must be an array of at least one message');
  }
  const list = new MessageList();
  if ((system ?? undefined) !== undefined) {
    list.say('system', textOf(blocksOf(system, 'system', ['text'])));
  }
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`;
    if (!isObject(message)) throw invalidField(at, `${at} must be an object`);
    if (!Object.hasOwn(takers, message.role)) {
      throw invalidField(`${at}.role`, `${at}.role must be one of user, assistant`);
    }
    takers[message.role](message.content, `${at}.content`, list);
  }
  const found = list.messages;
  const last = found.at(-1);
  if (last?.role !== 'assistant' || last.tool_calls) return found;
  return [...found.slice(0, -1), { ...last, prefix: true }];
}
