// js/worker/chat_template.js — conversations become prompts by the model's own template or by the one of the
// option chatTemplate. The engine renders it (src/template/), with limits on time and memory.

import { WickError } from '../base/errors.js';
import { TOKENIZE_PARSE_SPECIAL } from '../wasm/layout.js';

/** @typedef {import('../connection/messages.js').PlainMessage} PlainMessage */
/** @typedef {Extract<import('../connection/messages.js').Input, {messages: any}>} Conversation */
/** @typedef {import('../wasm/native_engine.js').NativeEngine} NativeEngine */

export class ChatTemplate {
  #native;
  #isGiven;

  /**
   * @param {NativeEngine} native
   * @param {string} [source] Jinja, or the name of a built-in template, in place of the model's own
   */
  constructor(native, source) {
    this.#native = native;
    this.#isGiven = Boolean(source);
    if (source !== undefined) this.#inWords(() => native.setChatTemplate(source));
  }

  /**
   * @param {PlainMessage[]} messages
   * @param {Record<string, unknown>} [variables] further variables of the template
   * @returns {string}
   */
  render(messages, variables) {
    const json = JSON.stringify({ ...variables, messages });
    return this.#inWords(() => this.#native.renderChat(json, localSeconds()));
  }

  /**
   * The prompt's tokens: control tokens of the template are control tokens, those in messages are text, unless
   * `parseSpecial` says that they are control tokens, too.
   * @param {Conversation} input
   * @param {number[]} [media] numbers of the images and recordings whose markers are in the messages
   * @returns {Int32Array}
   */
  prompt(input, media) {
    const { messages, variables, parseSpecial, tools, prefix } = input;
    const seen = tools ? { ...variables, tools } : variables;
    const flag = parseSpecial === true;
    const nowS = localSeconds();
    const prompt = this.#inWords(() => {
      if (media) return this.#withMedia(input, seen, media, flag, nowS);
      return this.#native.tokenizeChat(JSON.stringify({ ...seen, messages }), nowS, flag);
    });
    if (!prefix) return prompt;
    const header = headerOf(this.#native.chatEnding().text);
    const begun = this.#native.tokenize(header, TOKENIZE_PARSE_SPECIAL);
    return Int32Array.of(...prompt, ...begun, ...this.#tokensBehind(prefix, flag));
  }

  /**
   * Contents are texts with markers, or lists of parts if the template writes no text of others (SmolVLM's).
   * @param {Conversation} input
   * @param {Record<string, unknown>} variables
   * @param {number[]} media
   * @param {boolean} parseSpecial
   * @param {number} nowS
   */
  #withMedia({ messages, marker = '' }, variables, media, parseSpecial, nowS) {
    const [plain, listed] = [asTexts, asLists].map((form) =>
      JSON.stringify({ ...variables, messages: messages.map((message) => form(message, marker)) }),
    );
    const written = this.#native.renderChat(plain, nowS).split(marker).length - 1;
    const text = written === media.length ? plain : listed;
    return this.#native.media.tokenize({ text, isChat: true, parseSpecial, nowS }, marker, media);
  }

  /**
   * The tokens of a text that follows another: some tokenizers put a space before a text that is
   * alone.
   * @param {string} text
   * @param {boolean} parseSpecial
   */
  #tokensBehind(text, parseSpecial) {
    const flags = parseSpecial ? TOKENIZE_PARSE_SPECIAL : 0;
    const line = this.#native.tokenize('\n', flags);
    const both = this.#native.tokenize(`\n${text}`, flags);
    const isWhole = line.every((token, index) => token === both[index]);
    return isWhole ? both.subarray(line.length) : this.#native.tokenize(text, flags);
  }

  /** @template T @param {() => T} action @returns {T} */
  #inWords(action) {
    try {
      return action();
    } catch (error) {
      if (!(error instanceof WickError) || otherCodes.includes(error.code)) throw error;
      if (error.code === 'NODATA' && !this.#hasTemplate()) throw noTemplate();
      const words = error.message.replace(/^the/, 'The');
      throw new WickError('TEMPLATE', words, error);
    }
  }

  #hasTemplate() {
    return this.#isGiven || (this.#native.info().chat_template ?? undefined) !== undefined;
  }
}

/** @param {PlainMessage} message @param {string} marker @returns {PlainMessage} between two texts alone is a line break */
function asTexts(message, marker) {
  if (!Array.isArray(message.content)) return message;
  const content = message.content.reduce((text, part, index, parts) => {
    const isBetweenTexts = index > 0 && part.text !== marker && parts[index - 1].text !== marker;
    return text + (isBetweenTexts ? '\n' : '') + part.text;
  }, '');
  return { ...message, content };
}

/**
 * The last part, which templates ignore, is why the engine leaves the list as it is.
 * @param {PlainMessage} message
 * @returns {PlainMessage}
 */
function asLists(message) {
  const { content } = message;
  const parts = Array.isArray(content) ? content : [{ type: 'text', text: content ?? '' }];
  return /** @type {any} */ ({ ...message, content: [...parts, { type: 'none' }] });
}

/**
 * The header that the beginning of an answer needs: gpt-oss writes messages with channels.
 * @param {string} ending of a prompt
 */
const headerOf = (ending) =>
  ending.endsWith('<|start|>assistant') ? '<|channel|>final<|message|>' : '';

/** @param {Conversation} input @param {string} ending of its prompt @returns {string} how the reply begins */
export const prefixOf = ({ prefix }, ending) => (prefix ? headerOf(ending) + prefix : '');

/** @returns {number} the local time since 1970, for templates that write a date */
function localSeconds() {
  const now = new Date();
  return Math.floor(now.getTime() / 1000) - now.getTimezoneOffset() * 60;
}

/** Failures that are not the template's. */
const otherCodes = ['NOMEM', 'INTERNAL'];

function noTemplate() {
  return new WickError(
    'NO_TEMPLATE',
    'chat template: the model has none, so it was not made for conversations. Use generate(), or pass ' +
      "createEngine the option chatTemplate: Jinja text, or 'chatml'",
  );
}
