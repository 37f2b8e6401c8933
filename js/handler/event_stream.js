// js/handler/event_stream.js — chunks as server-sent events. A chunk is read from the engine when the reader of the
// answer asks for it. The engine pauses a request whose chunks are not read.

import { errorBodyOf, httpErrorOf } from './http_errors.js';

/**
 * @typedef {object} Chunks
 * @property {number} leading number of chunks that come before any of the engine's
 * @property {() => Promise<IteratorResult<object, unknown>>} next
 * @property {() => void} leave cancels the request; a pending `next` settles
 * @property {boolean} [isNamed] events have their `type` as a name, and nothing follows the last one
 * @property {(error: import('./http_errors.js').HttpError) => object} [failureOf] the last chunk when the engine fails
 */

/**
 * The receiver of the answer.
 * @typedef {object} Reader
 * @property {AbortSignal} signal aborts when it disconnects
 * @property {() => void} end called when nothing comes any more
 * @property {(error: unknown) => void} onError hears of an error that ends the answer
 */

const encoder = new TextEncoder();
const END = 'data: [DONE]\n\n';

/** @param {any} chunk @param {boolean | undefined} isNamed @returns {string} */
const eventOf = (chunk, isNamed) =>
  `${isNamed ? `event: ${chunk.type}\n` : ''}data: ${JSON.stringify(chunk)}\n\n`;

/**
 * Waits for the first chunk of the engine, so that a refusal still becomes an HTTP status.
 * @param {Chunks} chunks
 * @returns {Promise<string>} the events until then
 */
async function readBeginning(chunks) {
  let events = '';
  for (let count = 0; count <= chunks.leading; count++) {
    const { done, value } = await chunks.next();
    if (done) break;
    events += eventOf(value, chunks.isNamed);
  }
  return events;
}

/** @implements {UnderlyingDefaultSource<Uint8Array>} */
class EventSource {
  #chunks;
  #beginning;
  #reader;
  #isOver = false;

  /** @param {Chunks} chunks @param {string} beginning events that have been read @param {Reader} reader */
  constructor(chunks, beginning, reader) {
    this.#chunks = chunks;
    this.#beginning = beginning;
    this.#reader = reader;
  }

  /** @param {ReadableStreamDefaultController<Uint8Array>} controller */
  async pull(controller) {
    try {
      const events = this.#beginning || (await this.#readNext());
      this.#beginning = '';
      if (this.#isOver) return;
      if (events !== undefined) controller.enqueue(encoder.encode(events));
      else this.#finish(controller);
    } catch (error) {
      this.#fail(controller, error);
    }
  }

  /** @returns {Promise<string | undefined>} undefined when nothing comes any more */
  async #readNext() {
    const { done, value } = await this.#chunks.next();
    return done ? undefined : eventOf(value, this.#chunks.isNamed);
  }

  /** @param {ReadableStreamDefaultController<Uint8Array>} controller */
  #finish(controller) {
    if (!this.#chunks.isNamed) controller.enqueue(encoder.encode(END));
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
    const told = httpErrorOf(error);
    const { isNamed, failureOf = errorBodyOf } = this.#chunks;
    controller.enqueue(encoder.encode(eventOf(failureOf(told), isNamed)));
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
 * @returns {Promise<Response>} when the engine has begun; rejects, after `leave`, if the engine refuses
 */
export async function streamResponseOf(chunks, reader) {
  let beginning;
  try {
    beginning = await readBeginning(chunks);
  } catch (error) {
    chunks.leave();
    throw error;
  }
  const source = new EventSource(chunks, beginning, reader);
  const headers = {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-cache',
    'X-Accel-Buffering': 'no', // nginx would hold the tokens back
  };
  return new Response(new ReadableStream(source, { highWaterMark: 0 }), { headers });
}
