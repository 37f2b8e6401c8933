// js/prompt_api/prompt_media.js — images and recordings in prompts of the Prompt API: checks their
// values, and reads their pixels and samples once, when the prompt is passed.

import { domError } from './dom_errors.js';

/** @import { ChatMessage, Engine } from '../index.js' */
/** @typedef {'image' | 'audio'} Kind */
/** @typedef {ChatMessage['content']} Content */

/** The host's classes that each type of part accepts as a value, in addition to Blob and bytes. @type {Record<Kind, string[]>} */
const classes = {
  image: [
    ...['ImageBitmap', 'ImageData', 'HTMLCanvasElement', 'OffscreenCanvas', 'HTMLImageElement'],
    ...['SVGImageElement', 'HTMLVideoElement', 'VideoFrame'],
  ],
  audio: ['AudioBuffer'],
};
/** The error that browsers report if a value cannot be decoded. @type {Record<Kind, string>} */
const undecodable = { image: 'InvalidStateError', audio: 'DataError' };

/** @param {unknown} type @returns {type is Kind} */
export const isMedia = (type) => type === 'image' || type === 'audio';

/** @param {any} value */
const isBytes = (value) => value instanceof ArrayBuffer || ArrayBuffer.isView(value);

/** @param {any} value @param {string} name */
function isOf(value, name) {
  const Class = /** @type {any} */ (globalThis)[name];
  if (typeof Class === 'function') return value instanceof Class;
  return name === 'ImageData' && Number.isInteger(value?.width) && ArrayBuffer.isView(value.data);
}

/**
 * @param {Kind} type
 * @param {any} value
 * @returns {any} a part of a chat completion
 */
export function mediaPart(type, value) {
  const isValue =
    value instanceof Blob || isBytes(value) || classes[type].some((name) => isOf(value, name));
  if (!isValue) throw new TypeError(`The value of a part of type ${type} has the wrong type`);
  return { type, [type]: value };
}

/**
 * @param {Engine} engine
 * @param {any} part
 * @returns {Promise<any>} a copy of the part, which later changes of its value do not affect
 */
async function taken(engine, part) {
  if (!isMedia(part.type)) return part;
  try {
    return await engine.decodeMedia(part);
  } catch (error) {
    const { code, message } = /** @type {any} */ (error);
    if (!['ARG', 'UNSUPPORTED'].includes(code)) throw error;
    throw domError(undecodable[/** @type {Kind} */ (part.type)], message, error);
  }
}

/**
 * @param {Engine} engine
 * @param {ChatMessage[]} messages
 * @returns {Promise<ChatMessage[]>} the messages with decoded images and recordings
 */
export async function takeMedia(engine, messages) {
  if (!messages.some(({ content }) => Array.isArray(content))) return messages;
  return Promise.all(
    messages.map(async (message) => {
      const { content } = message;
      if (!Array.isArray(content)) return message;
      return { ...message, content: await Promise.all(content.map((one) => taken(engine, one))) };
    }),
  );
}

/** @param {Content} content @returns {any[]} */
const partsOf = (content) =>
  Array.isArray(content) ? content : [{ type: 'text', text: content ?? '' }];

/**
 * @param {Content} before
 * @param {string} between
 * @param {Content} after
 * @returns {any} both contents combined
 */
export function joinedContent(before, between, after) {
  if (!Array.isArray(before) && !Array.isArray(after)) {
    return `${before ?? ''}${between}${after ?? ''}`;
  }
  const middle = between === '' ? [] : [{ type: 'text', text: between }];
  return [...partsOf(before), ...middle, ...partsOf(after)];
}
