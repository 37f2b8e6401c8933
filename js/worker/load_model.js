// js/worker/load_model.js — reads the bytes that the engine requests. If the next bytes are close,
// it continues to read an open stream; otherwise it opens a new one.

import { WickError } from '../base/errors.js';
import { checkStart, readNext } from '../bytes/checked_read.js';
import { refuseOthers } from '../bytes/refused_files.js';

/**
 * Up to this many bytes are skipped on an open stream: a new request would cost a round trip.
 */
const GAP_BYTES_MAX = 4 << 20;
/**
 * The maximum number of open streams. Browsers open six connections per host, and a paused stream
 * occupies one of them.
 */
const STREAMS_MAX = 3;

/** @import { ByteStream, Source } from '../bytes/model_sources.js' */
/** @import { NativeEngine } from '../wasm/native_engine.js' */

/**
 * The open streams of a model's files, the most recently used one last.
 */
class Streams {
  /** @type {Map<number, ByteStream>} */
  #open = new Map();
  #native;
  #isClosed;
  #source;

  /** @param {NativeEngine} native @param {Source} source @param {() => boolean} isClosed */
  constructor(native, source, isClosed) {
    this.#native = native;
    this.#source = source;
    this.#isClosed = isClosed;
  }

  /** @param {number} file @param {number} offset @returns {Promise<ByteStream>} */
  async at(file, offset) {
    const open = this.#open.get(file);
    this.#open.delete(file);
    const stream = open && this.#canReadOn(open, offset) ? open : await this.#start(file, offset);
    if (stream !== open) open?.cancel();
    this.#open.set(file, stream);
    return stream;
  }

  /** @param {ByteStream} stream @param {number} offset */
  #canReadOn(stream, offset) {
    if (stream.position > offset) return false;
    return offset - stream.position <= GAP_BYTES_MAX || !this.#source.canSeek;
  }

  /** @param {number} file @param {number} offset */
  async #start(file, offset) {
    if (this.#open.size >= STREAMS_MAX) {
      const [oldest, stream] = /** @type {[number, ByteStream]} */ (
        this.#open.entries().next().value
      );
      this.#open.delete(oldest);
      stream.cancel();
    }
    const stream = await this.#source.open(file, offset);
    checkStart(stream, offset);
    const { size } = stream;
    if (size !== undefined && !this.#isClosed()) this.#native.endFile(file, size);
    return stream;
  }

  cancel() {
    for (const stream of this.#open.values()) stream.cancel();
    this.#open.clear();
  }
}

/**
 * Reads until the engine needs no more bytes.
 * @param {NativeEngine} native
 * @param {Source} source
 * @param {{onBytes?: () => Promise<void> | void, isClosed?: () => boolean}} [options] `onBytes` is
 * called and awaited after each piece; `isClosed` returns true if the engine was closed, which ends
 * loading
 * @returns {Promise<void>}
 */
export async function loadModel(native, source, { onBytes, isClosed = () => false } = {}) {
  const streams = new Streams(native, source, isClosed);
  try {
    for (let want = native.nextRange(); want.length > 0; want = native.nextRange()) {
      const stream = await streams.at(want.file, want.offset);
      if (isClosed()) return;
      const { position } = stream;
      const bytes = await readNext(stream);
      if (isClosed()) return;
      if (bytes === null) {
        native.endFile(want.file, position);
        throw new WickError(
          'TRUNCATED',
          `model: file ends at byte ${position}, before all tensors were read`,
        );
      }
      if (position === 0) refuseOthers(bytes);
      const feed = () => native.feed(want.file, stream.position - bytes.byteLength, bytes);
      if (feed()) await native.withExtras(() => isClosed() || feed());
      await onBytes?.();
      if (isClosed()) return;
    }
  } finally {
    streams.cancel();
  }
}
