// js/worker/media_desk.js — images and recordings of requests: the encoders of the mmproj file, and the media that are
// being encoded.

import { WickError } from '../base/errors.js';
import { checkStart, readNext } from '../bytes/checked_read.js';

/** @import { Source } from '../bytes/model_sources.js' */
/** @import { Medium } from '../wasm/media_table.js' */
/** @import { NativeEngine } from '../wasm/native_engine.js' */

/**
 * The time limit of an encoder step, unless a single piece of its work takes longer. Messages and
 * requests wait until it ends.
 */
const STEP_BUDGET_US = 4000;
/** The assumed rate of an encoder per thread, until a rate has been measured. */
const MACS_PER_MS = 4e7;
/** Shorter times are not used as measurements. */
const MEASURED_MS = 5;
/** The limits of a resizing step. Rows with few bytes may be expanded to wide ones. */
const [STRIP_BYTES, STRIP_ROWS] = [2 ** 20, 256];

/**
 * The bytes of a file that have arrived, which can be read from any offset while the encoders are
 * being loaded.
 */
export class HeldFile {
  /** @type {Uint8Array[]} */
  #pieces = [];
  /** The end of each piece. @type {number[]} */
  #ends = [];
  size = 0;
  /** The size of the whole file, if known. */
  total = 0;

  /** @param {Uint8Array} piece */
  add(piece) {
    // a stream may reuse its buffer
    this.#pieces.push(piece.slice());
    this.size += piece.byteLength;
    this.#ends.push(this.size);
  }

  /**
   * @param {number} offset
   * @param {number} size
   * @returns {Uint8Array} at most `size` bytes; empty at the end
   */
  read(offset, size) {
    let [low, high] = [0, this.#ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ends[middle] > offset) high = middle;
      else low = middle + 1;
    }
    if (low === this.#ends.length) return new Uint8Array(0);
    const piece = this.#pieces[low];
    const from = offset - (this.#ends[low] - piece.byteLength);
    return piece.subarray(from, from + size);
  }

  clear() {
    this.#pieces = [];
    this.#ends = [];
  }
}

/**
 * @param {HeldFile} file
 * @param {() => import('../wasm/heap.js').Heap} heap
 * @returns {Partial<import('../wasm/wasm_module.js').Host>}
 */
export const mediaHost = (file, heap) => ({
  read_media: (offset, address, size) => {
    const bytes = file.read(offset, size >>> 0);
    heap().write(address, bytes);
    return bytes.byteLength;
  },
});

/**
 * Reads an mmproj file and loads its encoders. The model's directory is complete. Bytes that are already in `file` are not
 * read again.
 * @param {NativeEngine} native
 * @param {Source} source
 * @param {HeldFile} file
 * @param {{onBytes: () => void, isClosed: () => boolean, directoryOnly?: boolean}} host with
 * `directoryOnly`, only the bytes that the memory plan needs are read
 */
export async function loadMedia(native, source, file, { onBytes, isClosed, directoryOnly }) {
  const stream = await source.open(0, file.size);
  try {
    checkStart(stream, file.size);
    file.total = stream.size ?? 0;
    for (let bytes = await readNext(stream); bytes; bytes = await readNext(stream)) {
      if (isClosed()) return;
      // a stream may begin earlier than requested
      file.add(bytes.subarray(Math.max(0, file.size + bytes.byteLength - stream.position)));
      onBytes();
      if (directoryOnly && (await isPlanned(native))) break;
    }
    await native.withMedia(() => isClosed() || native.media.isLoaded || native.media.load());
    if (!isClosed()) file.clear();
  } catch (error) {
    if (!(error instanceof WickError)) throw error;
    throw new WickError(error.code, `mmproj: ${error.message}`, error.cause);
  } finally {
    stream.cancel();
  }
}

/**
 * @param {NativeEngine} native
 * @returns {Promise<boolean>} whether the bytes that have arrived include the directory
 */
async function isPlanned(native) {
  try {
    await native.withMedia(() => native.media.load());
    return true;
  } catch (error) {
    if (/** @type {any} */ (error).code !== 'TRUNCATED') throw error;
    return false;
  }
}

/**
 * @template T
 * @param {string | undefined} place
 * @param {() => T} run
 * @returns {T}
 * @throws the error of `run`, with the place in its message
 */
function placed(place, run) {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof WickError) || !place) throw error;
    throw new WickError(error.code, `${place}: ${error.message}`, error.cause);
  }
}

export class MediaDesk {
  #native;
  /**
   * Images that have not been completely fed to the engine, by number.
   * @type {Map<number, Extract<Medium, {kind: 'image'}> & {row: number}>}
   */
  #unfed = new Map();
  /** The parts of prompts, and the time of their encoding, by number. @type {Map<number, {place: string, ms: number}>} */
  #open = new Map();
  /** All encodings that have ended. */
  #ended = { macs: 0, ms: 0 };

  /** @param {NativeEngine} native */
  constructor(native) {
    this.#native = native;
  }

  /**
   * Adds media to the engine; images are resized in steps.
   * @param {Medium[]} media
   * @returns {number[]} their numbers
   */
  add(media) {
    if (!this.#native.media.isLoaded) {
      throw new WickError(
        'UNSUPPORTED',
        `${media[0].kind === 'audio' ? 'Audio' : 'Images'} need the model's mmproj file: pass mmproj to createEngine`,
      );
    }
    /** @type {number[]} */
    const numbers = [];
    try {
      for (const medium of media) {
        const number = placed(medium.place, () => this.#addOne(medium));
        this.#open.set(number, { place: medium.place, ms: 0 });
        numbers.push(number);
      }
    } catch (error) {
      this.remove(numbers);
      throw error;
    }
    return numbers;
  }

  /** @param {Medium} medium @returns {number} */
  #addOne(medium) {
    const { media } = this.#native;
    if (medium.kind === 'audio') return media.addAudio(medium.samples);
    const number = media.beginImage(medium.width, medium.height);
    this.#unfed.set(number, { ...medium, row: 0 });
    return number;
  }

  /**
   * Feeds the next rows of an image.
   * @param {number} number
   * @returns {boolean} whether any rows were left
   */
  #feed(number) {
    const image = this.#unfed.get(number);
    if (!image) return false;
    const { data, width, height, row } = image;
    const rows = Math.min(STRIP_ROWS, Math.ceil(STRIP_BYTES / (3 * width)));
    const end = Math.min(height, row + rows);
    this.#native.media.feed(number, data.subarray(3 * width * row, 3 * width * end), end - row);
    image.row = end;
    if (end === height) this.#unfed.delete(number);
    return true;
  }

  /**
   * Passes all remaining rows to the engine, because the tokens of a prompt depend on them.
   * @param {number[]} numbers
   */
  complete(numbers) {
    for (const number of numbers) while (this.#feed(number));
  }

  /** Rejects a prompt whose media alone exceed the context, before they are encoded. @param {number[]} numbers */
  checkContext(numbers) {
    const { context_tokens: limit } = this.#native.info().plan;
    const tokens = numbers.reduce((sum, number) => sum + this.#native.media.info(number).tokens, 0);
    if (tokens <= limit) return;
    throw new WickError(
      'PROMPT_TOO_LONG',
      `prompt: images and recordings have ${tokens} tokens, limit is ${limit} (context)`,
    );
  }

  /** @param {number[]} numbers */
  remove(numbers) {
    for (const number of numbers) {
      this.#unfed.delete(number);
      this.#open.delete(number);
      this.#native.media.remove(number);
    }
  }

  /**
   * Runs one step of the encoder.
   * @param {number[]} numbers
   * @returns {boolean} whether all media are encoded
   */
  step(numbers) {
    const { media } = this.#native;
    const next = numbers.find((number) => !media.info(number).isReady);
    if (next === undefined) return true;
    return placed(this.#open.get(next)?.place, () => {
      if (this.#feed(next)) return false;
      return this.#encode(next) && next === numbers.at(-1);
    });
  }

  /** @param {number} number @returns {boolean} whether it is encoded */
  #encode(number) {
    const { media } = this.#native;
    const open = this.#open.get(number);
    const start = performance.now();
    const isEncoded = media.step(number, STEP_BUDGET_US);
    if (open) open.ms += performance.now() - start;
    if (open && isEncoded) {
      this.#ended.macs += media.info(number).macs;
      this.#ended.ms += open.ms;
    }
    return isEncoded;
  }

  /** @param {number} macs of an encoding @returns {number} its estimated seconds, at the rate of earlier ones */
  secondsOf(macs) {
    const { macs: done, ms } = this.#ended;
    const rate =
      ms >= MEASURED_MS ? done / ms : MACS_PER_MS * this.#native.counters().threadsUsed.prefill;
    return macs / rate / 1000;
  }
}
