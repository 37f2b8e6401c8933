// js/handler/event_stream.js — chunks as server-sent events. A chunk is read from the engine when the reader of the
// response requests it. The engine pauses a request whose chunks are not read. Before the engine's first chunk,
// comment lines keep clients and proxies from timing out.

import { SILENCE_MS } from '../base/option_table.js';
import { errorBodyOf, httpErrorOf } from './http_errors.js';

/**
 * @typedef {object} Chunks
 * @property {number} leading number of chunks that precede those of the engine
 * @property {() => Promise<IteratorResult<object, unknown>>} next
 * @property {() => void} leave cancels the request; a pending `next` settles
 * @property {boolean} [isBare] whether the stream ends with the last chunk
 * @property {boolean} [isNamed] whether events are named after their `type`, and the stream ends
 * with the last one
 * @property {(error: import('./http_errors.js').HttpError) => object} [failureOf] returns the last
 * chunk after a failure of the engine
 */

/**
 * The receiver of the response.
 * @typedef {object} Reader
 * @property {AbortSignal} signal aborts when it disconnects
 * @property {Headers} headers of the response
 * @property {() => void} end called after the last chunk
 * @property {(error: unknown) => void} onError called with an error that ends the response
 */

const encoder = new TextEncoder();
const END = 'data: [DONE]\n\n';

/**
 * An engine that rejects a request does so within this time, unless it is very busy. Then the
 * response headers are sent.
 */
const REFUSAL_MS = 400;
const COMMENT = ': waiting\n\n';

/** @param {any} chunk @param {boolean | undefined} isNamed @returns {string} */
const eventOf = (chunk, isNamed) =>
  `${isNamed ? `event: ${chunk.type}\n` : ''}data: ${JSON.stringify(chunk)}\n\n`;

/**
 * @template T
 * @param {Promise<T>} value
 * @param {number} ms
 * @returns {Promise<T | undefined>} undefined if it takes longer
 */
async function within(value, ms) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const over = new Promise((settle) => {
    timer = setTimeout(() => settle(undefined), ms);
  });
  try {
    return await Promise.race([value, over]);
  } finally {
    clearTimeout(timer);
  }
}

/** @implements {UnderlyingDefaultSource<Uint8Array>} */
class EventSource {
  #chunks;
  #reader;
  #isOver = false;
  /** Whether the engine's first chunk has arrived. */
  #hasBegun = false;
  /** Events that have been read. */
  #ready = '';
  /** The chunk that is being read. @type {Promise<IteratorResult<object, unknown>> | undefined} */
  #next;

  /** @param {Chunks} chunks @param {Reader} reader */
  constructor(chunks, reader) {
    this.#chunks = chunks;
    this.#reader = reader;
  }

  /** Reads the chunks before the engine's first one, and that one if it arrives soon, so that an error becomes an HTTP status. */
  async begin() {
    const { leading, isNamed } = this.#chunks;
    for (let count = 0; count < leading; count++) {
      const { done, value } = await this.#chunks.next();
      if (done) return;
      this.#ready += eventOf(value, isNamed);
    }
    const first = await this.#readNext(REFUSAL_MS);
    if (first !== END) this.#ready += first ?? ''; // pull reads the end again
  }

  /** @param {ReadableStreamDefaultController<Uint8Array>} controller */
  async pull(controller) {
    try {
      const ready = this.#ready;
      this.#ready = '';
      const events = ready || ((await this.#readNext(SILENCE_MS)) ?? COMMENT);
      if (this.#isOver) return;
      if (events !== END) controller.enqueue(encoder.encode(events));
      else this.#finish(controller);
    } catch (error) {
      this.#fail(controller, error);
    }
  }

  /** @param {number} ms @returns {Promise<string | undefined>} undefined if the engine's first chunk takes longer */
  async #readNext(ms) {
    this.#next ??= this.#chunks.next();
    this.#next.catch(() => {}); // the chunk is read later
    const next = await (this.#hasBegun ? this.#next : within(this.#next, ms));
    if (!next) return undefined;
    this.#hasBegun = true;
    this.#next = undefined;
    return next.done ? END : eventOf(next.value, this.#chunks.isNamed);
  }

  /** @param {ReadableStreamDefaultController<Uint8Array>} controller */
  #finish(controller) {
    const { isNamed, isBare } = this.#chunks;
    if (!isNamed && !isBare) controller.enqueue(encoder.encode(END));
    this.#close(controller);
  }

  /** @param {ReadableStreamDefaultController<Uint8Array>} controller */
  #close(controller) {
    controller.close();
    this.#leave();
  }

  /** @param {ReadableStreamDefaultController<Uint8Array>} controller @param {unknown} error */
  #fail(controller, error) {
    if (this.#isOver) return;
    if (this.#reader.signal.aborted) {
      controller.error(error);
      this.#leave();
      return;
    }
    this.#reader.onError(error);
    const reported = httpErrorOf(error);
    const { isNamed, failureOf = errorBodyOf } = this.#chunks;
    controller.enqueue(encoder.encode(eventOf(failureOf(reported), isNamed)));
    this.#close(controller);
  }

  #leave() {
    this.#isOver = true;
    this.#chunks.leave();
    this.#reader.end();
  }

  cancel() {
    this.#leave();
  }
}

/**
 * @param {Chunks} chunks
 * @param {Reader} reader
 * @returns {Promise<Response>} rejects, after calling `leave`, if the engine rejects the request
 */
export async function streamResponseOf(chunks, reader) {
  const source = new EventSource(chunks, reader);
  try {
    await source.begin();
  } catch (error) {
    chunks.leave();
    throw error;
  }
  const { headers } = reader;
  headers.set('Content-Type', 'text/event-stream; charset=utf-8');
  headers.set('Cache-Control', 'no-cache');
  headers.set('X-Accel-Buffering', 'no'); // otherwise nginx would buffer the tokens
  return new Response(new ReadableStream(source, { highWaterMark: 0 }), { headers });
}
