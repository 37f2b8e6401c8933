// js/page/piece_reader.js — reads the pieces of one request. The request starts with the first
// read, and is cancelled when it has no reader any more.

import { onAbort } from '../base/abort_signals.js';
import { abortError, checkSignal, fromPlainError, throwIfAborted } from '../base/errors.js';
import { callHook } from './logits_hook.js';
import { decodeMedia } from './media_parts.js';
import { checkCallback, checkNumber } from './option_checks.js';

/** @import { EngineConnection, RunningRequest } from '../connection/engine_connection.js' */
/** @import { Delta, Done, Output, TokenDetail } from '../connection/messages.js' */

/**
 * A piece of text, with the details of its token if they were requested, and with its deltas if it
 * is part of a reply.
 */
/** @typedef {{text: string, token: TokenDetail | undefined, deltas?: Delta[] | undefined}} Piece */

/** The number of pieces after which the worker is notified that they were read. */
const ACKNOWLEDGE_EVERY = 32;
/**
 * With this many unread pieces, the reader starts to watch for garbage collection of their holder.
 */
const UNREAD_PIECES_WATCHED = 64;
const aborted = /** @type {const} */ ('abort');

export class PieceReader {
  #launch;
  #signal;
  #onPrefill;
  #onToken;
  #logitsHook;
  #onEnd;
  /** @type {RunningRequest | undefined} */
  #running;
  #isStarted = false;
  /** @type {Piece[]} */
  #pieces = [];
  #unacknowledged = 0;
  /** @type {Done | undefined} */
  #done;
  /** @type {{error: unknown} | undefined} */
  #failure;
  #isAborted = false;
  #promptTokens = 0;
  #piecesCount = 0;
  /**
   * Wakes the reader that waits for the next piece. No function literal is assigned to it: V8 allocates such closures in
   * the old generation, where only major collections free them and all that they refer to.
   * @type {((nothing?: undefined) => void) | undefined}
   */
  #wake;
  /** The object through which the caller reads. @type {WeakRef<object> | undefined} */
  #holder;
  #isWatched = false;

  /**
   * @param {() => void} launch submits the request and calls `begin`
   * @param {() => void} onEnd called once, when the request has ended for any reason
   * @param {{signal?: AbortSignal | null | undefined,
   *   timeout?: number | null | undefined,
   *   onPrefill?: ((progress: {done: number, total: number}) => void) | undefined,
   *   onToken?: ((token: TokenDetail) => void) | undefined,
   *   logitsHook?: import('../index.js').LogitsHook | null | undefined}} options
   */
  constructor(launch, onEnd, { signal, onPrefill, onToken, logitsHook }) {
    checkSignal(signal);
    checkCallback('onPrefill', onPrefill);
    checkCallback('onToken', onToken);
    checkCallback('logitsHook', logitsHook);
    this.#launch = launch;
    this.#onEnd = onEnd;
    this.#signal = signal;
    this.#onPrefill = onPrefill;
    this.#onToken = onToken;
    this.#logitsHook = logitsHook;
  }

  /** @returns {Done | undefined} the result, if the request ended successfully */
  get done() {
    return this.#done;
  }

  /** @returns {Done | undefined} the result of an aborted request, for the text so far */
  get left() {
    if (!this.#isAborted) return undefined;
    const [promptTokens, completionTokens] = [this.#promptTokens, this.#piecesCount];
    const counts = { promptTokens, cachedTokens: 0, completionTokens };
    return Object.assign(
      { finish: aborted, queueMs: 0, prefillMs: 0, decodeMs: 0, ttftMs: 0 },
      counts,
    );
  }

  /** @returns {boolean} whether the request has ended */
  get isOver() {
    return this.#failure !== undefined || this.#done !== undefined;
  }

  /** Submits the request, once. */
  start() {
    if (this.#isStarted) return;
    if (this.#signal?.aborted) this.abort(abortError(this.#signal.reason));
    throwIfAborted(this.#signal);
    this.#launch();
    this.#isStarted = true;
  }

  /** The functions that receive output and errors, and whether their owner was garbage-collected. */
  get waiter() {
    return {
      onOutput: (/** @type {Output} */ output) => this.#receiveSafely(output),
      fail: (/** @type {unknown} */ error) => this.#fail(error),
      isLost: () => this.#holder !== undefined && this.#holder.deref() === undefined,
    };
  }

  /** @param {RunningRequest} running */
  begin(running) {
    this.#running = running;
    if (this.#failure) running.cancel(); // the request was aborted before it began
    this.#isStarted = true;
    this.#wake?.();
  }

  /** Cancels the request. @param {unknown} error thrown to the reader */
  abort(error) {
    this.#isStarted = true;
    this.#isAborted ||= !this.isOver;
    if (!this.#done) this.#running?.cancel();
    this.#fail(error);
  }

  /** @param {unknown} error */
  #fail(error) {
    if (this.isOver) return;
    this.#failure = { error };
    this.#pieces = [];
    this.#leave();
  }

  #leave() {
    this.#unwatch();
    this.#onEnd();
    this.#wake?.();
  }

  /** @param {object} holder the reader's owner: its garbage collection cancels the request */
  heldBy(holder) {
    this.#unwatch();
    if (!this.isOver) this.#holder = new WeakRef(holder);
  }

  /**
   * Watches for garbage collection of the holder. Only requests with many unread pieces are registered. An object
   * that was in a FinalizationRegistry survives V8's minor collections with all that it refers to: the heap of a page
   * with many requests would be four times as large.
   */
  #watch() {
    if (this.#isWatched || !this.#holder) return;
    const holder = this.#holder.deref();
    if (!holder) return this.cancel();
    this.#isWatched = true;
    unread.register(holder, this, this);
  }

  #unwatch() {
    if (this.#isWatched) unread.unregister(this);
    this.#isWatched = false;
  }

  /**
   * Ensures that an error in the caller's callbacks ends only their own request.
   * @param {Output} output
   */
  #receiveSafely(output) {
    try {
      this.#receive(output);
    } catch (error) {
      this.abort(error);
    }
  }

  /** @param {Output} output */
  #receive({ texts, tokens, deltas, prefill, asked, done, error }) {
    if (prefill) this.#promptTokens = prefill.total;
    if (prefill && !this.isOver) this.#onPrefill?.(prefill);
    if (this.#onToken) this.#reportTokens(tokens);
    if (this.isOver) return; // it was aborted
    for (const [index, text] of texts.entries()) {
      const piece = { text, token: tokens[index] };
      this.#pieces.push(deltas ? Object.assign(piece, { deltas: deltas[index] }) : piece);
    }
    this.#piecesCount += texts.length;
    if (done || error) this.#running?.forget();
    if (error) this.#fail(fromPlainError(error));
    if (done && !this.#failure) {
      this.#done = done;
      this.#leave();
    }
    if (!this.isOver && this.#pieces.length >= UNREAD_PIECES_WATCHED) this.#watch();
    this.#wake?.();
    if (asked && this.#logitsHook && !this.isOver) {
      this.#running?.answer(callHook(this.#logitsHook, asked));
    }
  }

  /** @param {TokenDetail[]} tokens */
  #reportTokens(tokens) {
    for (const token of tokens) if (token.token >= 0 && !this.isOver) this.#onToken?.(token);
  }

  /** @returns {Promise<Piece | undefined>} undefined at the end */
  async next() {
    this.start();
    for (;;) {
      if (this.#failure) throw this.#failure.error;
      const piece = this.#pieces.shift();
      if (piece) {
        this.#acknowledge();
        return piece;
      }
      if (this.#done) return undefined;
      if (this.#running?.drive) await this.#running.drive();
      else await this.#untilWoken();
    }
  }

  #untilWoken() {
    return new Promise((settle) => {
      this.#wake = settle;
    });
  }

  #acknowledge() {
    if (++this.#unacknowledged < ACKNOWLEDGE_EVERY) return;
    this.#running?.acknowledge(this.#unacknowledged);
    this.#unacknowledged = 0;
  }

  /** Cancels the request, because it no longer has a reader. */
  cancel() {
    if (!this.isOver) this.abort(abortError());
  }
}

/**
 * Creates the readers of a prompt's completions. All completions start when the first of them is
 * read.
 * @param {EngineConnection} connection
 * @param {Parameters<EngineConnection['generate']>[0] & {parts?: import('./media_parts.js').MediaPart[] | undefined}} message
 *   `parts` are decoded when the request starts
 * @param {ConstructorParameters<typeof PieceReader>[2]} options
 * @param {number} [completions]
 * @returns {PieceReader[]}
 */
export function readersOf(connection, message, options, completions = 1) {
  const { signal } = options;
  const timeoutMs = timeoutOf(options.timeout);
  const abort = (/** @type {unknown} */ reason = signal?.reason) => {
    for (const reader of readers) reader.abort(abortError(reason));
  };
  let stop = () => {};
  let going = completions;
  const end = () => {
    if (--going === 0) stop();
  };
  const submit = () => {
    const running = connection.generate(
      message,
      readers.map((reader) => reader.waiter),
    );
    for (const [index, reader] of readers.entries()) reader.begin(running[index]);
  };
  const decode = async (/** @type {import('./media_parts.js').MediaPart[]} */ found) => {
    try {
      message.input.media = await decodeMedia(found, connection.decoders ?? {});
      if (going > 0) submit();
    } catch (error) {
      for (const reader of readers) reader.waiter.fail(error);
    }
  };
  const { parts } = message;
  delete message.parts;
  let isDecoding = false;
  const launch = () => {
    if (isDecoding) return; // another reader has started the request
    isDecoding = parts !== undefined;
    if (parts) decode(parts);
    else submit();
    if (going === 0) return;
    const forget = onAbort(signal, () => abort());
    const timer = timeoutMs && setTimeout(() => abort(timeoutError(timeoutMs)), timeoutMs);
    stop = () => {
      forget();
      clearTimeout(timer);
    };
  };
  const readers = Array.from({ length: completions }, () => new PieceReader(launch, end, options));
  return readers;
}

/** The longest delay of a timer. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** @param {number | null | undefined} timeout @returns {number | undefined} */
function timeoutOf(timeout) {
  if (timeout === undefined || timeout === null) return undefined;
  return checkNumber('timeout', timeout, { min: 1, max: TIMEOUT_MS_MAX });
}

/** @param {number} ms */
const timeoutError = (ms) =>
  new DOMException(`The request took longer than ${ms} ms`, 'TimeoutError');

/**
 * Wraps a generator so that `return` cancels at any time. Without this, a generator that has not
 * begun would not run its `finally`, and one that waits for a piece would return only after that
 * piece.
 * @template T
 * @param {AsyncGenerator<T, void, void>} generator
 * @param {() => void} cancel
 * @returns {AsyncGenerator<T, void, void>}
 */
export function leavable(generator, cancel) {
  let isLeft = false;
  const leave = () => {
    isLeft = true;
    cancel();
  };
  return {
    async next() {
      try {
        return await generator.next();
      } catch (error) {
        if (!isLeft) throw error;
        return { done: true, value: undefined };
      }
    },
    return(value) {
      leave();
      return generator.return(value);
    },
    throw(error) {
      leave();
      return generator.throw(error);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
    async [Symbol.asyncDispose]() {
      await this.return();
    },
  };
}

/** Cancels requests whose holder was garbage-collected. */
const unread = new FinalizationRegistry((/** @type {PieceReader} */ reader) => reader.cancel());

/** @type {(...args: Parameters<typeof readersOf>) => PieceReader} */
export const readerOf = (...args) => readersOf(...args)[0];
