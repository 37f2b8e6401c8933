// js/worker/chat_template.js — converts conversations to prompts with the model's own template or
// the `chatTemplate` option. The engine renders the template (src/template/), with limits on time
// and memory.

import { WickError } from '../base/errors.js';

/** @import { PlainMessage } from '../connection/messages.js' */
/** @import { NativeChat } from '../wasm/engine_records.js' */
/** @import { NativeEngine } from '../wasm/native_engine.js' */
/** @typedef {Extract<import('../connection/messages.js').Input, {messages: any}>} Conversation */

export class ChatTemplate {
  #native;

  /**
   * @param {NativeEngine} native
   * @param {string} [source] Jinja, or the name of a built-in template, in place of the model's own
   */
  constructor(native, source) {
    this.#native = native;
    if (source !== undefined) this.#inWords(() => native.setChatTemplate(source));
  }

  /**
   * @param {PlainMessage[]} messages
   * @param {Record<string, unknown>} [variables] additional template variables
   * @returns {string}
   */
  render(messages, variables) {
    const json = JSON.stringify({ ...variables, messages });
    return this.#inWords(() => this.#native.renderChat({ json, nowS: localSeconds() }));
  }

  /**
   * Returns a conversation in the form that the engine renders. Contents with media are strings
   * with markers, or lists of parts if the template ignores strings (as SmolVLM's does).
   * @param {Conversation} input
   * @param {number[]} [media] numbers of the images and recordings whose markers are in the messages
   * @returns {NativeChat}
   */
  chatOf(input, media) {
    const { messages, variables, parseSpecial, tools, prefix, marker = '' } = input;
    const seen = tools ? { ...variables, tools } : variables;
    const how = { nowS: localSeconds(), parseSpecial: parseSpecial === true, prefix };
    if (!media) return { json: JSON.stringify({ ...seen, messages }), ...how };
    const [plain, listed] = [asTexts, asLists].map((form) =>
      JSON.stringify({ ...seen, messages: messages.map((message) => form(message, marker)) }),
    );
    const text = this.#inWords(() => this.#native.renderChat({ json: plain, ...how }));
    return { json: text.split(marker).length - 1 === media.length ? plain : listed, ...how };
  }

  /**
   * Returns the prompt's tokens. Control tokens in the template keep their meaning; those in
   * messages are treated as text unless `parseSpecial` is set.
   * @param {Conversation} input
   * @param {number[]} [media] numbers of the images and recordings whose markers are in the messages
   * @param {NativeChat} [chat] the result of chatOf for the input
   * @returns {Int32Array}
   */
  prompt(input, media, chat = this.chatOf(input, media)) {
    return this.#inWords(() =>
      media
        ? this.#native.media.tokenize(chat, input.marker ?? '', media)
        : this.#native.tokenizeChat(chat),
    );
  }

  /** @template T @param {() => T} action @returns {T} */
  #inWords(action) {
    try {
      return action();
    } catch (error) {
      throw inTemplateWords(error);
    }
  }
}

/**
 * @param {PlainMessage} message
 * @param {string} marker
 * @returns {PlainMessage} the message with a string as its content; only adjacent texts are
 * separated by a line break
 */
function asTexts(message, marker) {
  if (!Array.isArray(message.content)) return message;
  const content = message.content.reduce((text, part, index, parts) => {
    const isBetweenTexts = index > 0 && part.text !== marker && parts[index - 1].text !== marker;
    return text + (isBetweenTexts ? '\n' : '') + part.text;
  }, '');
  return { ...message, content };
}

/**
 * Returns the message with a list as its content. The last part, which templates ignore, prevents
 * the engine from joining the list.
 * @param {PlainMessage} message
 * @returns {PlainMessage}
 */
function asLists(message) {
  const { content } = message;
  const parts = Array.isArray(content) ? content : [{ type: 'text', text: content ?? '' }];
  return /** @type {any} */ ({ ...message, content: [...parts, { type: 'none' }] });
}

/** @returns {number} the local time in seconds since 1970, for templates that write a date */
function localSeconds() {
  const now = new Date();
  return Math.floor(now.getTime() / 1000) - now.getTimezoneOffset() * 60;
}

/**
 * @param {unknown} error
 * @returns {unknown} the engine's error about the template, worded for users of the package
 */
export function inTemplateWords(error) {
  if (!(error instanceof WickError) || error.code === 'NOMEM') return error;
  if (/** @type {any} */ (error.cause)?.subject !== 'template') return error;
  if (error.code === 'NODATA') return noTemplate();
  return new WickError('TEMPLATE', error.message.replace(/^the/, 'The'), error);
}

function noTemplate() {
  return new WickError(
    'NO_TEMPLATE',
    'chat template: the model has none, so it was not made for conversations. Use generate(), or pass ' +
      "chatTemplate (Jinja text or 'chatml') to createEngine",
  );
}
