// js/worker/answers.js — answers the page's calls (js/connection/calls.js) with a function of
// web/exports.c or with one of the functions below.

import { WickError } from '../base/errors.js';
import { callNamed } from '../connection/calls.js';
import { storageError, writeFile } from '../storage/browser_files.js';

/** @import { Input } from '../connection/messages.js' */
/** @import { NativeEngine } from '../wasm/native_engine.js' */

/** @typedef {Extract<Input, {messages: any}>} Conversation */

/**
 * The parts that answer calls.
 * @typedef {{id: number, native: NativeEngine, requests: import('./request_table.js').RequestTable,
 *   chat: () => import('./chat_template.js').ChatTemplate,
 *   embedder: import('./embedder.js').Embedder, media: import('./media_desk.js').MediaDesk}} Parts
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
