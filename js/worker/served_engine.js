// js/worker/served_engine.js — serves an engine, in a worker or in the caller's own thread: submits
// requests, and answers the page's calls (js/connection/calls.js) with a function of web/exports.c or
// with one of the functions below. It depends neither on messages nor on the event loop.

import { WickError } from '../base/errors.js';
import { callNamed, usesSession } from '../connection/calls.js';
import { storageError, writeFile } from '../storage/browser_files.js';
import { STEP_WAIT_BYTES, TOKENIZE_ADD_SPECIAL, TOKENIZE_PARSE_SPECIAL } from '../wasm/layout.js';
import { ChatTemplate } from './chat_template.js';
import { Embedder } from './embedder.js';
import { MediaDesk } from './media_desk.js';
import { RequestTable } from './request_table.js';

/** @import { GenerateMessage, Input } from '../connection/messages.js' */
/** @import { NativeEngine } from '../wasm/native_engine.js' */

/**
 * @typedef {object} Serving
 * @property {number | undefined} queueLimit the limit on running and waiting requests
 * @property {string | undefined} chatTemplate replaces the model's template
 * @property {(trap?: unknown) => void} [wake] called when there is work although no message has arrived, or when
 * the module has trapped
 * @property {() => number} step runs one step of the engine and delivers its results; returns
 * STEP_*
 * @property {import('./embedder.js').Host} embedding
 */

/**
 * @typedef {object} Encoding a request whose media are not encoded yet
 * @property {Omit<GenerateMessage, 'type'>} message
 * @property {Set<number>} ids its completions that are still running
 * @property {number[]} numbers of its media
 * @property {(error: unknown) => void} fail
 */

export class ServedEngine {
  #native;
  #serving;
  #embedder;
  #media;
  /**
   * Requests whose images and recordings are not encoded yet, in submission order.
   * @type {Encoding[]}
   */
  #encoding = [];
  /** @type {ChatTemplate | undefined} */
  #template;

  /** @param {NativeEngine} native @param {Serving} serving */
  constructor(native, serving) {
    this.#native = native;
    this.#serving = serving;
    this.#embedder = new Embedder(native, serving.embedding);
    this.#media = new MediaDesk(native);
    this.requests = new RequestTable(native, serving.queueLimit, serving.wake);
  }

  /**
   * Submits a request. If it has images and recordings, it is submitted once encodeStep has encoded
   * them.
   * @param {Omit<GenerateMessage, 'type'>} message whose settings become the request
   * @param {(error: unknown) => void} fail called with an encoding error
   */
  submit(message, fail) {
    const { media } = message.input;
    if (!media?.length) {
      this.#submit(message);
      return;
    }
    const { id, completions } = message;
    this.requests.checkLimit(completions);
    const ids = new Set(Array.from({ length: completions }, (_, index) => id + index));
    const numbers = this.#media.add(media);
    try {
      this.#media.checkContext(numbers);
    } catch (error) {
      this.#media.remove(numbers);
      throw error;
    }
    this.#setEncoding([...this.#encoding, { message, ids, numbers, fail }]);
  }

  /**
   * @param {number} [id] of a completion; without it, any completion counts
   * @returns {boolean} whether its media must still be encoded
   */
  isEncoding(id) {
    if (id === undefined) return this.#encoding.length > 0;
    return this.#encoding.some(({ ids }) => ids.has(id));
  }

  /** Runs one step of the encoder, for the first request that is waiting for it. */
  encodeStep() {
    const [first] = this.#encoding;
    if (!first) return;
    const { message, ids, numbers, fail } = first;
    try {
      if (!this.#media.step(numbers)) return;
      this.#setEncoding(this.#encoding.slice(1));
      this.#submit(message, numbers);
      for (let id = message.id; id < message.id + message.completions; id++) {
        if (!ids.has(id)) this.requests.cancel(id);
      }
    } catch (error) {
      fail(error);
    }
    this.#leave(first);
  }

  /** @param {Encoding} left a request that is submitted, cancelled or has failed */
  #leave(left) {
    this.#setEncoding(this.#encoding.filter((one) => one !== left));
    this.#media.remove(left.numbers);
  }

  /** @param {Encoding[]} encoding whose completions count as waiting */
  #setEncoding(encoding) {
    this.#encoding = encoding;
    this.requests.reserved = encoding.reduce((sum, { message }) => sum + message.completions, 0);
  }

  /** @param {number} id a completion of a request, or a call */
  cancel(id) {
    this.#embedder.cancel(id);
    for (const one of this.#encoding) {
      if (one.ids.delete(id) && one.ids.size === 0) this.#leave(one);
    }
    this.requests.cancel(id);
  }

  /** @param {Omit<GenerateMessage, 'type'>} message @param {number[]} [media] */
  #submit({ id, completions, input, settings, wantsTokens }, media) {
    this.#finishCancelled(settings.session);
    // not a spread: V8 creates a hidden class for each object copied by spreading, which keeps the request alive
    // for a while
    const request = Object.assign(settings, this.#prompt(input, settings, media), {
      completions,
      passesWaited: 0,
    });
    this.requests.add(id, request, wantsTokens);
  }

  /**
   * @param {string} method
   * @param {unknown[]} args
   * @param {number} id
   * @returns {unknown} the result, or a promise if the call has to wait
   */
  call(method, args, id) {
    if (usesSession(callNamed(method))) this.#finishCancelled(args[0]);
    return answerCall(method, args, {
      id,
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
   * @param {Input} input
   * @param {import('../connection/messages.js').Settings} settings
   * @param {number[]} [media] numbers of the input's images and recordings
   */
  #prompt(input, { thinkingBudgetTokens }, media) {
    const tokenizeFlags = TOKENIZE_ADD_SPECIAL | TOKENIZE_PARSE_SPECIAL;
    if ('prompt' in input) {
      const prompt = media
        ? this.#native.media.tokenize(String(input.prompt), input.marker ?? '', media)
        : input.prompt;
      const isLimited = thinkingBudgetTokens !== undefined && thinkingBudgetTokens >= 0;
      return { prompt, tokenizeFlags, ...(isLimited && { reasoningEnding: this.#textOf(prompt) }) };
    }
    const { tools, toolChoice } = input;
    const chat = this.#chat().chatOf(input, media);
    const prompt = media ? this.#chat().prompt(input, media, chat) : '';
    const conversation = {
      ...chat,
      toolChoice: tools && JSON.stringify(toolChoice?.tool_choice ?? 'auto'),
      oneCall: toolChoice?.parallel_tool_calls === false,
    };
    return { prompt, tokenizeFlags, conversation };
  }

  /** @param {string | ArrayLike<number>} prompt */
  #textOf(prompt) {
    if (typeof prompt === 'string') return prompt;
    const tokens = Array.from(prompt).filter((token) => token >= 0); // tokens of images have no text
    return this.#native.detokenize(tokens, { whole: true, special: true });
  }

  /**
   * Waits until a session is free: a cancelled request stays on its session until the next step.
   * @param {unknown} session
   */
  #finishCancelled(session) {
    while (typeof session === 'number' && this.requests.isLeaving(session)) {
      // the step needs bytes of the model, which arrive as messages
      if (this.#serving.step() === STEP_WAIT_BYTES) return;
    }
  }
}

// ---- calls ----

/** @typedef {Extract<Input, {messages: any}>} Conversation */

/**
 * The parts that answer calls.
 * @typedef {{id: number, native: NativeEngine, requests: RequestTable,
 *   chat: () => ChatTemplate,
 *   embedder: Embedder, media: MediaDesk}} Parts
 */

/**
 * Returns the prompt of a conversation, without encoding its images.
 * @param {Parts} parts
 * @param {Conversation} input
 * @param {boolean} isCounted whether its tokens are only counted, so that images need not be fed to
 * the engine
 * @returns {Int32Array}
 */
function promptOf({ chat, media }, input, isCounted) {
  if (!input.media?.length) return chat().prompt(input);
  const numbers = media.add(input.media);
  try {
    if (!isCounted) media.complete(numbers);
    return chat().prompt(input, numbers);
  } finally {
    media.remove(numbers);
  }
}

/** @type {Record<import('../connection/calls.js').AnsweredName, (parts: Parts, ...args: any[]) => unknown>} */
const answers = {
  tokenize: ({ native }, text, flags) => Array.from(native.tokenize(text, flags)),
  detokenize: ({ native }, tokens, special) => native.detokenize(tokens, { whole: true, special }),
  tokenBytes: ({ native }, tokens) => Array.from(tokens, (token) => native.tokenBytes(token)),
  applyTemplate: ({ chat }, messages, variables) => chat().render(messages, variables),
  countChat: (parts, input) => promptOf(parts, input, true).length,
  tokenizeChat: (parts, input) => Array.from(promptOf(parts, input, false)),
  /** Computes the cost without encoding. */
  mediaCost({ native, media }, medium) {
    const numbers = media.add([medium]);
    try {
      const { isReady, ...cost } = native.media.info(numbers[0]);
      return { ...cost, seconds: media.secondsOf(cost.macs) };
    } finally {
      media.remove(numbers);
    }
  },
  findPages: ({ native }, tokens) => native.findPages(tokens),
  info({ native, chat }) {
    try {
      chat(); // so that the report contains the template from the option
    } catch {} // template errors are reported when a conversation uses it
    return infoOf(native);
  },
  metrics: ({ native }, format, reset) => readMetrics(native, format, reset),
  embed: ({ embedder, id }, request) => embedder.embed(request, id),
  addAdapter: ({ native }, name) => native.adapters.add(name),
  feedAdapter({ native }, name, offset, bytes) {
    const feed = () => native.adapters.feed(name, offset, bytes);
    return feed() ? native.withExtras(feed) : undefined;
  },
  endAdapter: ({ native }, name, sizeBytes) => native.adapters.end(name, sizeBytes),
  removeAdapter: ({ native }, name) => native.adapters.remove(name),
  listAdapters: ({ native }) => native.adapters.list(),
  stats: ({ native, requests }) => ({
    ...requests.addTo(native.stats()),
    kv: native.kvStats(),
  }),
  saveState: ({ native }, session, packed) =>
    native.withExtras(() => native.saveState(session, packed)),
  loadState: ({ native }, bytes) => native.withExtras(() => native.restoreState(bytes)),
  /** Writes a file. Asynchronous, because it waits for the file system. */
  keepFile: async (_, name, bytes) => {
    try {
      await writeFile(name, bytes);
    } catch (error) {
      throw storageError(name, error);
    }
  },
};

/** @param {NativeEngine} native @returns {object} its info, with counters and the kinds of media that it can encode */
export const infoOf = (native) => ({
  ...native.info(),
  ...native.counters(),
  ...(native.media.isLoaded && { media: native.media.kinds() }),
});

/**
 * @param {string} name as received in a message
 * @param {any[]} args
 * @param {Parts} parts
 * @returns {unknown} the result, or a promise if the call has to wait
 */
export function answerCall(name, args, parts) {
  const call = callNamed(name);
  if (!call) throw new WickError('INTERNAL', `Unknown call ${name}`);
  if (call.native) return parts.native.call(call, args);
  return answers[/** @type {keyof typeof answers} */ (name)](parts, ...args);
}

/** @param {NativeEngine} native @param {unknown} format @param {boolean} reset */
function readMetrics(native, format, reset) {
  if (format !== 'json' && format !== 'prometheus') {
    throw new WickError('ARG', `format must be json or prometheus, not ${format}`);
  }
  const found = format === 'json' ? native.metrics() : native.metricsText();
  if (found === undefined) {
    throw new WickError('NODATA', 'metrics: not enabled. Pass metrics: true to createEngine');
  }
  if (reset) native.resetMetrics();
  return found;
}
