// js/page/piece_reader.js — reads the pieces of one request: it starts when somebody reads, and stops when
// nobody does any more.

import { onAbort } from '../base/abort_signals.js';
import { abortError, checkSignal, fromPlainError, throwIfAborted } from '../base/errors.js';
import { checkCallback } from './option_checks.js';

/** @typedef {import('../connection/engine_connection.js').EngineConnection} EngineConnection */
/** @typedef {import('../connection/engine_connection.js').RunningRequest} RunningRequest */
/** @typedef {import('../connection/messages.js').Output} Output */
/** @typedef {import('../connection/messages.js').Done} Done */
/** @typedef {import('../connection/messages.js').TokenDetail} TokenDetail */

/** A piece of text, with its token's details when those were asked for. */
/** @typedef {{text: string, token: TokenDetail | undefined}} Piece */

/** The engine hears of what was read in batches. */
const ACKNOWLEDGE_EVERY = 32;
/** So many pieces lie unread when it is asked whether anybody could still read them. */
const UNREAD_PIECES_WATCHED = 64;
const aborted = /** @type {const} */ ('abort');

export class PieceReader {
  #launch;
  #signal;
  #onPrefill;
  #onToken;
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
   * Wakes the reader that waits for the next piece. No function written out where it is assigned: V8
   * puts such closures where only its big collections come by, with all that they lead to.
   * @type {((nothing?: undefined) => void) | undefined}
   */
  #wake;
  /** Whoever has the pieces to read. @type {WeakRef<object> | undefined} */
  #holder;
  #isWatched = false;

  /**
   * @param {() => void} launch has `begin` called
   * @param {() => void} onEnd called once: nothing comes any more, however it went
   * @param {{signal?: AbortSignal | null | undefined,
   *   onPrefill?: ((progress: {done: number, total: number}) => void) | undefined,
   *   onToken?: ((token: TokenDetail) => void) | undefined}} options
   */
  constructor(launch, onEnd, { signal, onPrefill, onToken }) {
    checkSignal(signal);
    checkCallback('onPrefill', onPrefill);
    checkCallback('onToken', onToken);
    this.#launch = launch;
    this.#onEnd = onEnd;
    this.#signal = signal;
    this.#onPrefill = onPrefill;
    this.#onToken = onToken;
  }

  /** @returns {Done | undefined} how it went, once it has ended well */
  get done() {
    return this.#done;
  }

  /** @returns {Done | undefined} of one that was aborted, or left: what had come by then */
  get left() {
    if (!this.#isAborted) return undefined;
    const [promptTokens, completionTokens] = [this.#promptTokens, this.#piecesCount];
    const counts = { promptTokens, cachedTokens: 0, completionTokens };
    return Object.assign(
      { finish: aborted, queueMs: 0, prefillMs: 0, decodeMs: 0, ttftMs: 0 },
      counts,
    );
  }

  /** @returns {boolean} whether nothing comes any more */
  get isOver() {
    return this.#failure !== undefined || this.#done !== undefined;
  }

  /** Queues the request, once. */
  start() {
    if (this.#isStarted) return;
    if (this.#signal?.aborted) this.abort(abortError(this.#signal.reason));
    throwIfAborted(this.#signal);
    this.#launch();
  }

  /** What is called with what comes. */
  get waiter() {
    return {
      onOutput: (/** @type {Output} */ output) => this.#receiveSafely(output),
      fail: (/** @type {unknown} */ error) => this.#fail(error),
    };
  }

  /** @param {RunningRequest} running */
  begin(running) {
    this.#running = running;
    if (this.#failure) running.cancel(); // nobody wants it any more
    this.#isStarted = true;
  }

  /** @param {unknown} error what whoever reads on gets; what is under way is cancelled */
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

  /** @param {object} holder an object that is gone reads nothing any more */
  heldBy(holder) {
    this.#unwatch();
    if (!this.isOver) this.#holder = new WeakRef(holder);
  }

  /**
   * Not each request from its start: what was ever in a FinalizationRegistry survives V8's small
   * collections, with all that it leads to, and makes the heap of a page that asks much four times as big.
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

  /** What a caller's own functions throw ends their request, and no other. @param {Output} output */
  #receiveSafely(output) {
    try {
      this.#receive(output);
    } catch (error) {
      this.abort(error);
    }
  }

  /** @param {Output} output */
  #receive({ texts, tokens, prefill, done, error }) {
    if (prefill) this.#promptTokens = prefill.total;
    if (prefill) this.#onPrefill?.(prefill);
    if (this.#onToken) for (const token of tokens) if (token.token >= 0) this.#onToken(token);
    for (const [index, text] of texts.entries()) this.#pieces.push({ text, token: tokens[index] });
    this.#piecesCount += texts.length;
    if (done || error) this.#running?.forget();
    if (error) this.#fail(fromPlainError(error));
    if (done && !this.#failure) {
      this.#done = done;
      this.#leave();
    }
    if (!this.isOver && this.#pieces.length >= UNREAD_PIECES_WATCHED) this.#watch();
    this.#wake?.();
  }

  /** @returns {Promise<Piece | undefined>} nothing when it has ended */
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
      await new Promise((settle) => {
        this.#wake = settle;
      });
    }
  }

  #acknowledge() {
    if (++this.#unacknowledged < ACKNOWLEDGE_EVERY) return;
    this.#running?.acknowledge(this.#unacknowledged);
    this.#unacknowledged = 0;
  }

  /** Nobody reads on. */
  cancel() {
    if (!this.isOver) this.abort(abortError());
  }
}

/**
 * The readers of a prompt's completions, which start together when the first of them is read.
 * @param {EngineConnection} connection
 * @param {Parameters<EngineConnection['generate']>[0]} message
 * @param {ConstructorParameters<typeof PieceReader>[2]} options
 * @param {number} [completions]
 * @returns {PieceReader[]}
 */
export function readersOf(connection, message, options, completions = 1) {
  const { signal } = options;
  const abort = () => {
    for (const reader of readers) reader.abort(abortError(signal?.reason));
  };
  let stop = () => {};
  let going = completions;
  const end = () => {
    if (--going === 0) stop();
  };
  const launch = () => {
    const running = connection.generate(
      message,
      readers.map((reader) => reader.waiter),
    );
    for (const [index, reader] of readers.entries()) reader.begin(running[index]);
    if (going > 0) stop = onAbort(signal, abort);
  };
  const readers = Array.from({ length: completions }, () => new PieceReader(launch, end, options));
  return readers;
}

/**
 * The generator, with a way out that works at any time: one that has not begun would run no `finally`,
 * and one that waits for the next piece would leave only after that.
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

/** What nobody can read any more, because nobody has it, is cancelled as if it had been left. */
const unread = new FinalizationRegistry((/** @type {PieceReader} */ reader) => reader.cancel());

/** @type {(...args: Parameters<typeof readersOf>) => PieceReader} */
export const readerOf = (...args) => readersOf(...args)[0];
