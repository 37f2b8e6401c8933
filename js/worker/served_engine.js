// js/worker/served_engine.js — the calls that reach an engine, in a worker or in the caller's own thread: requests, whose
// conversations become prompts here, and calls. It knows neither messages nor turns of the event loop.

import { callNamed, calls, usesSession } from '../connection/calls.js';
import { STEP_WAIT_BYTES, TOKENIZE_ADD_SPECIAL, TOKENIZE_PARSE_SPECIAL } from '../wasm/layout.js';
import { answerCall } from './answers.js';
import { ChatTemplate, prefixOf } from './chat_template.js';
import { Embedder } from './embedder.js';
import { MediaDesk } from './media_desk.js';
import { behindPrefix, replyWish } from './reply_grammar.js';
import { RequestTable } from './request_table.js';

/** @typedef {import('../wasm/native_engine.js').NativeEngine} NativeEngine */
/** @typedef {import('../connection/messages.js').GenerateMessage} GenerateMessage */

/**
 * @typedef {object} Serving
 * @property {number | undefined} queueLimit the most requests that may run and wait
 * @property {string | undefined} chatTemplate in place of the model's
 * @property {() => void} [wake] there is something to do without a message
 * @property {() => number} step one step of the engine, whose results are heard; STEP_*
 * @property {import('./embedder.js').Host} embedding
 */

export class ServedEngine {
  #native;
  #serving;
  #embedder;
  #media;
  /** The requests whose images are being encoded, by their first number: how many of each still run. @type {Map<number, Set<number>>} */
  #encoding = new Map();
  /** @type {ChatTemplate | undefined} */
  #template;

  /** @param {NativeEngine} native @param {Serving} serving */
  constructor(native, serving) {
    this.#native = native;
    this.#serving = serving;
    this.#embedder = new Embedder(native, serving.embedding);
    this.#media = new MediaDesk(native, serving.embedding);
    this.requests = new RequestTable(native, serving.queueLimit, serving.wake);
  }

  /**
   * @param {Omit<GenerateMessage, 'type'>} message whose settings become the request
   * @returns {Promise<void> | undefined} settles when its images and recordings are encoded and it is submitted
   */
  submit(message) {
    if (message.input.media?.length) return this.#submitWithMedia(message, message.input.media);
    this.#submit(message);
    return undefined;
  }

  /** @param {Omit<GenerateMessage, 'type'>} message @param {import('../wasm/media_table.js').Medium[]} media */
  async #submitWithMedia(message, media) {
    const { id, completions } = message;
    const ids = new Set(Array.from({ length: completions }, (_, index) => id + index));
    this.#encoding.set(id, ids);
    const numbers = this.#media.add(media);
    try {
      await this.#media.encode(numbers, () => ids.size === 0);
      if (ids.size === 0) return;
      this.#submit(message, numbers);
      for (let one = id; one < id + completions; one++) {
        if (!ids.has(one)) this.requests.cancel(one);
      }
    } finally {
      this.#encoding.delete(id);
      this.#media.remove(numbers);
    }
  }

  /** @param {number} id a completion of a request */
  cancel(id) {
    for (const ids of this.#encoding.values()) ids.delete(id);
    this.requests.cancel(id);
  }

  /** @param {Omit<GenerateMessage, 'type'>} message @param {number[]} [media] */
  #submit({ id, completions, input, settings, wantsTokens }, media) {
    this.#finishCancelled(settings.session);
    // not a spread: V8 makes a hidden class of each copy by spreading, which keeps the request alive for a while
    const request = Object.assign(settings, this.#prompt(input, settings, media), {
      completions,
      passesWaited: 0,
    });
    this.requests.add(id, request, wantsTokens);
  }

  /** @param {string} method @param {unknown[]} args @returns {unknown} a promise only of what waits */
  call(method, args) {
    if (usesSession(callNamed(method))) this.#finishCancelled(args[0]);
    return answerCall(method, args, {
      native: this.#native,
      requests: this.requests,
      chat: () => this.#chat(),
      media: this.#media,
      embedder: this.#embedder,
    });
  }

  #chat() {
    this.#template ??= new ChatTemplate(this.#native, this.#serving.chatTemplate);
    return this.#template;
  }

  /**
   * @param {import('../connection/messages.js').Input} input
   * @param {import('../connection/messages.js').Settings} settings
   * @param {number[]} [media] numbers of the input's images and recordings
   */
  #prompt(input, { session, grammar, thinkingBudgetTokens }, media) {
    const all = TOKENIZE_ADD_SPECIAL | TOKENIZE_PARSE_SPECIAL;
    if ('prompt' in input) {
      const prompt = media ? this.#tokensOf(input, media) : input.prompt;
      const isLimited = thinkingBudgetTokens !== undefined && thinkingBudgetTokens >= 0;
      if (!isLimited) return { prompt, tokenizeFlags: all };
      return { prompt, tokenizeFlags: all, reasoningEnding: this.#textOf(prompt) };
    }
    const { tools } = input;
    const whole = this.#chat().prompt(input, media);
    const ending = this.#native.chatEnding();
    const prompt = session ? this.#newOf(whole, session) : whole;
    if (!tools && !ending.hasReasoning) {
      const held = behindPrefix(grammar, input.prefix);
      return { prompt, tokenizeFlags: all, thinkingBudgetTokens: -1, grammar: held };
    }
    const text = ending.text + prefixOf(input, ending.text);
    const wish = replyWish(input, text, grammar);
    return {
      prompt,
      tokenizeFlags: all,
      reply: wish.reply,
      reasoningEnding: text,
      printSpecial: tools !== undefined || ending.needsSpecial,
      grammar: wish.grammar,
    };
  }

  /** @param {import('../connection/messages.js').Input} input a text with markers @param {number[]} media */
  #tokensOf(input, media) {
    const text = 'prompt' in input ? String(input.prompt) : '';
    const whole = { text, isChat: false, parseSpecial: true, nowS: 0 };
    return this.#native.media.tokenize(whole, input.marker ?? '', media);
  }

  /** @param {string | ArrayLike<number>} prompt */
  #textOf(prompt) {
    if (typeof prompt === 'string') return prompt;
    const tokens = Array.from(prompt).filter((token) => token >= 0); // those of images have no text
    return this.#native.detokenize(tokens, { whole: true, special: true });
  }

  /**
   * Makes a session that conversation: what both begin with stays, and the rest of the session is dropped.
   * @param {Int32Array} prompt the tokens of the conversation
   * @param {number} session
   * @returns {Int32Array} those that the session lacks; there is always one, whose logits the reply needs
   */
  #newOf(prompt, session) {
    const native = this.#native;
    const had = /** @type {number[]} */ (native.call(calls.sessionTokens, [session]));
    const most = Math.min(had.length, prompt.length - 1);
    let same = 0;
    while (same < most && had[same] === prompt[same]) same++;
    // an image stays whole
    if (same < had.length && had[same] < 0) while (same > 0 && had[same - 1] < 0) same--;
    if (prompt[same] < 0) while (same > 0 && prompt[same - 1] < 0) same--;
    if (same < had.length) native.call(calls.truncateSession, [session, same]);
    return prompt.subarray(same);
  }

  /** A cancelled request stays on its session until the next step. @param {unknown} session */
  #finishCancelled(session) {
    while (typeof session === 'number' && this.requests.isLeaving(session)) {
      // the step needs bytes of the model, which come as messages
      if (this.#serving.step() === STEP_WAIT_BYTES) return;
    }
  }
}
