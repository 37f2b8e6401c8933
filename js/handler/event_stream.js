// js/handler/event_stream.js — chunks as server-sent events. The reader of the answer drives: it gets a chunk when it
// asks for one, and the engine pauses a request whose chunks nobody asks for.

import { errorBodyOf, httpErrorOf } from './http_errors.js';

/**
 * @typedef {object} Chunks
 * @property {number} leading so many chunks come before the engine has begun
 * @property {() => Promise<IteratorResult<object, unknown>>} next
 * @property {() => void} leave nobody reads on; a `next` under way ends
 */

/**
 * Whom the answer is for.
 * @typedef {object} Reader
 * @property {AbortSignal} signal aborts when it has gone
 * @property {() => void} end called when nothing comes any more
 * @property {(error: unknown) => void} onError hears of an error that ends the answer
 */

const encoder = new TextEncoder();
const END = 'data: [DONE]\n\n';

/** @param {object} chunk @returns {string} */
const eventOf = (chunk) => `data: ${JSON.stringify(chunk)}\n\n`;

/**
 * Waits for the first chunk that the engine has made: what it refuses is refused with a status of HTTP.
 * @param {Chunks} chunks
 * @returns {Promise<string>} the events until then
 */
async function readBeginning(chunks) {
  let events = '';
  for (let count = 0; count <= chunks.leading; count++) {
    const { done, value } = await chunks.next();
    if (done) break;
    events += eventOf(value);
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
      controller.enqueue(encoder.encode(events));
      if (events === END) this.#close(controller);
    } catch (error) {
      this.#fail(controller, error);
    }
  }

  async #readNext() {
    const { done, value } = await this.#chunks.next();
    return done ? END : eventOf(value);
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
    controller.enqueue(encoder.encode(eventOf(errorBodyOf(httpErrorOf(error)))));
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
 * @returns {Promise<Response>} when the engine has begun; rejects, after `leave`, if it refuses
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
