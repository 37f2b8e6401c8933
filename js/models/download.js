// js/models/download.js — the download of one model into the store. Each chunk is stored when it is complete, and then
// recorded in the journal; a chunk in the journal is not fetched again.

import { WickError } from '../base/errors.js';
import { checkStart, readNext } from '../bytes/checked_read.js';
import { refuseOthers } from '../bytes/refused_files.js';
import { refuseTruncated } from './least_length.js';
import {
  CHUNK_BYTES,
  chunkCount,
  chunkSize,
  fingerprintOf,
  hasAllChunks,
  storedBytes,
  sumOf,
} from './records.js';
import { checksum, Sha256 } from './sha256.js';

/** @import { KnownVersion } from '../bytes/http_source.js' */
/** @import { Backend } from './backends.js' */
/** @import { ModelRecord } from './records.js' */
/** @typedef {import('../bytes/model_sources.js').ByteStream & {validator: string | null, promisedBytes?: number}} FileStream */
/** @typedef {{bytes: Uint8Array<ArrayBuffer>, filled: number}} Arriving */

/**
 * @typedef {object} DownloadOptions
 * @property {(offset: number, known: KnownVersion) => Promise<FileStream>} open
 * @property {() => void} close cancels a stream that is being opened
 * @property {(missingBytes: number, isRefused: boolean) => Promise<boolean>} makeRoom returns whether another attempt
 *   may succeed; throws if storage is full
 * @property {(record: ModelRecord) => void} onStored
 * @property {() => void} onNews is called when bytes have arrived
 * @property {() => Promise<void>} [checkLease] throws if another tab has taken over
 * @property {number} connections
 */

/** Additional connections start only in gaps of at least this many chunks. */
const GAP_CHUNKS_MIN = 4;

const MAGIC = 'GGUF';

/** @param {Uint8Array} bytes the first bytes of a file; throws if it is not a model */
export function checkModel(bytes) {
  refuseOthers(bytes);
  const start = String.fromCharCode(...bytes.subarray(0, MAGIC.length));
  if (start !== MAGIC)
    throw new WickError(
      'NOT_GGUF',
      'file: is not a GGUF file, because it does not begin with GGUF',
    );
}

export class Download {
  /** True once a server has confirmed the version of the stored chunks. */
  isConfirmed = false;
  /** The chunk that a reader is waiting for. @type {number | undefined} */
  wanted;
  /** The file's size as reported by the server, until it is certain. @type {number | undefined} */
  promisedBytes;
  #backend;
  #record;
  #options;
  /** @type {Map<number, Arriving>} */
  #arriving = new Map();
  /** @type {Set<FileStream>} */
  #streams = new Set();
  #stored = Promise.resolve();
  /** @type {Promise<void>[]} */
  #lanes = [];
  #isStopped = false;
  /** @type {unknown} */
  #failure;
  #isStart = true;
  /**
   * Whether the size is the offset where the body ended, because the server did not report a size.
   */
  #isSizeFound = false;
  #sha;

  /** @param {Backend} backend @param {ModelRecord} record which is changed as chunks are stored @param {DownloadOptions} options */
  constructor(backend, record, options) {
    this.#backend = backend;
    this.#record = record;
    this.#options = options;
    const { hash, sha256 } = record;
    if (sha256 !== null) this.#sha = hash ? Sha256.resume(hash.state, hash.size) : new Sha256();
  }

  /** Resolves when the model is complete. After a rejection, the stored part is kept. */
  async run() {
    try {
      if (!hasAllChunks(this.#record)) this.#startLane();
      for (let lane = this.#lanes.shift(); lane; lane = this.#lanes.shift()) await lane;
      await this.#stored;
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#isStopped && !hasAllChunks(this.#record)) {
        throw new WickError('CLOSED', 'download: stopped');
      }
      await this.#finish();
    } finally {
      this.stop();
      await this.#backend.settle(this.#record.id);
    }
  }

  /**
   * Stops the download. Chunks that have arrived completely are stored before `run` ends; the last
   * of them may complete the model.
   */
  stop() {
    this.#isStopped = true;
    for (const stream of this.#streams) stream.cancel();
    this.#options.close();
  }

  /** @param {Promise<void>} work @returns {Promise<void>} never rejects: its error ends the download */
  async #guard(work) {
    try {
      await work;
    } catch (error) {
      if (!this.#isStopped) this.#failure = error;
      this.stop();
    }
  }

  /**
   * @param {number} position
   * @returns {Uint8Array<ArrayBuffer> | undefined} the bytes from that offset that have arrived but
   * are not stored yet
   */
  bytesAt(position) {
    const index = Math.floor(position / CHUNK_BYTES);
    const chunk = this.#arriving.get(index);
    const offset = position - index * CHUNK_BYTES;
    if (!chunk || offset >= chunk.filled || this.#isWithheld(index)) return undefined;
    return chunk.bytes.subarray(offset, chunk.filled);
  }

  /** The received bytes of chunks that are not stored yet. */
  get arrivingBytes() {
    let sum = 0;
    for (const [index, { filled }] of this.#arriving) if (!this.#record.sums[index]) sum += filled;
    return sum;
  }

  /**
   * Returns whether a chunk is withheld: the last chunk of a file with a known SHA-256 is, until the
   * hash matches.
   * @param {number} index
   */
  #isWithheld(index) {
    const { sha256, size } = this.#record;
    return sha256 !== null && (size === null || index === chunkCount(size) - 1);
  }

  // ---- fetching ----

  #startLane() {
    this.#lanes.push(this.#guard(this.#run(!this.isConfirmed)));
  }

  /** @param {boolean} isFirst whether it is the first connection, which follows the readers */
  async #run(isFirst) {
    for (let start = this.#next(isFirst); start !== undefined; start = this.#next(isFirst)) {
      this.#arriving.set(start, { bytes: new Uint8Array(0), filled: 0 }); // reserves the chunk for this connection
      const stream = await this.#open(start);
      if (isFirst && !this.isConfirmed) await this.#confirm(stream);
      try {
        await this.#follow(stream, start, isFirst);
      } finally {
        this.#streams.delete(stream);
        stream.cancel();
      }
    }
  }

  /** @param {number} index */
  #isMissing(index) {
    return !this.#record.sums[index] && !this.#arriving.has(index);
  }

  /** @param {boolean} isFirst @returns {number | undefined} the chunk where a connection begins */
  #next(isFirst) {
    const { size, sums } = this.#record;
    if (this.#isStopped) return undefined;
    const { wanted } = this;
    if (size === null) return isFirst ? sums.length : undefined;
    const count = chunkCount(size);
    if (isFirst && wanted !== undefined && wanted < count && this.#isMissing(wanted)) return wanted;
    const gaps = this.#gaps(count);
    if (isFirst) return gaps[0]?.start;
    const widest = gaps.sort((a, b) => b.length - a.length)[0];
    if (!widest || widest.length < GAP_CHUNKS_MIN) return undefined;
    return widest.start + (widest.length >> 1);
  }

  /**
   * @param {number} count
   * @returns {{start: number, length: number}[]} runs of consecutive missing chunks
   */
  #gaps(count) {
    /** @type {{start: number, length: number}[]} */
    const gaps = [];
    for (let index = 0; index < count; index++) {
      if (!this.#isMissing(index)) continue;
      const last = gaps.at(-1);
      if (last && last.start + last.length === index) last.length++;
      else gaps.push({ start: index, length: 1 });
    }
    return gaps;
  }

  /** @param {number} index */
  async #open(index) {
    const { tag, size, sha256 } = this.#record;
    // mirrors use different tags for the same content, so a known SHA-256 takes precedence
    const known = {
      validator: sha256 === null ? tag : null,
      size,
      tail: async () => (this.#record.sums[index - 1] ? this.#readAgain(index - 1) : undefined),
    };
    const offset = index * CHUNK_BYTES;
    const stream = await this.#options.open(offset, known);
    this.#streams.add(stream);
    checkStart(stream, offset);
    if (this.#isStopped) stream.cancel();
    return stream;
  }

  /** Handles the first response. @param {FileStream} stream */
  async #confirm(stream) {
    const record = this.#record;
    record.tag ??= stream.validator;
    record.size ??= stream.size ?? null;
    this.promisedBytes = stream.promisedBytes;
    if (record.size !== null) {
      await this.#options.makeRoom(record.size - storedBytes(record), false);
    }
    this.isConfirmed = true;
    this.#options.onNews();
    for (let lane = 1; lane < this.#options.connections; lane++) this.#startLane();
  }

  /**
   * Reads until it reaches a chunk that is already stored or that another connection is fetching.
   * @param {FileStream} stream
   * @param {number} start
   * @param {boolean} isFirst
   */
  async #follow(stream, start, isFirst) {
    const pieces = new Pieces(stream, start * CHUNK_BYTES);
    for (let index = start; ; index++) {
      const chunk = await this.#fill(pieces, index);
      if (!chunk) return;
      await this.#stored;
      if (this.#failure !== undefined) return;
      this.#stored = this.#guard(this.#store(index, chunk));
      const { size } = this.#record;
      const isEnd = size !== null && index + 1 >= chunkCount(size);
      if (this.#isStopped || isEnd || !this.#isMissing(index + 1)) return;
      const { wanted } = this;
      const isElsewhere = wanted !== undefined && wanted !== index + 1 && this.#isMissing(wanted);
      if (isFirst && isElsewhere) return;
    }
  }

  /**
   * @param {Pieces} pieces
   * @param {number} index
   * @returns {Promise<Uint8Array<ArrayBuffer> | undefined>} undefined if the file has ended
   */
  async #fill(pieces, index) {
    const record = this.#record;
    const chunk = { bytes: new Uint8Array(chunkSize(record, index)), filled: 0 };
    this.#arriving.set(index, chunk);
    while (chunk.filled < chunk.bytes.byteLength) {
      const piece = await pieces.next(chunk.bytes.byteLength - chunk.filled);
      if (piece === null) break;
      chunk.bytes.set(piece, chunk.filled);
      chunk.filled += piece.byteLength;
      if (index === 0) this.#checkStart(chunk);
      this.#options.onNews();
    }
    const isEnd = chunk.filled === chunk.bytes.byteLength;
    if (index === 0 && this.#isStart && (isEnd || record.size === null)) {
      checkModel(chunk.bytes.subarray(0, chunk.filled)); // the file is shorter than the four magic bytes
    }
    if (isEnd) return chunk.bytes;
    const size = index * CHUNK_BYTES + chunk.filled;
    if (record.size !== null) {
      const message = `The file ended after ${size} of ${record.size} bytes`;
      throw new WickError('TRUNCATED', message);
    }
    record.size = size;
    this.#isSizeFound = true;
    if (chunk.filled > 0) return chunk.bytes.slice(0, chunk.filled);
    this.#arriving.delete(index);
    return undefined;
  }

  /** @param {Arriving} chunk the file's first chunk */
  #checkStart({ bytes, filled }) {
    if (!this.#isStart || filled < MAGIC.length) return;
    this.#isStart = false;
    checkModel(bytes.subarray(0, filled));
  }

  // ---- storing ----

  /** @param {number} index @param {Uint8Array<ArrayBuffer>} bytes */
  async #store(index, bytes) {
    const record = this.#record;
    const sum = await checksum(bytes);
    const { id } = record;
    await this.#write(bytes.byteLength, () => this.#backend.writeChunk(id, index, bytes));
    if (this.#sha?.size === index * CHUNK_BYTES) this.#hash(bytes);
    while (record.sums.length < index) record.sums.push(null);
    record.sums[index] = sum;
    // an end that no server has confirmed is recorded once the directory agrees with it
    const isUnsure = this.#isSizeFound && bytes.byteLength < CHUNK_BYTES;
    if (!isUnsure) await this.#write(bytes.byteLength, () => this.#backend.writeRecord(record));
    this.#arriving.delete(index);
    this.#options.onNews();
    this.#options.onStored(record);
  }

  /**
   * Writes a chunk, or the journal that lists it.
   * @param {number} size bytes of the chunk
   * @param {() => Promise<void>} write
   */
  async #write(size, write) {
    await this.#options.checkLease?.();
    try {
      await write();
    } catch (error) {
      const isFull = error instanceof WickError && error.code === 'STORAGE_FULL';
      const missing = Math.max(1, (this.#record.size ?? size) - storedBytes(this.#record));
      if (!isFull || !(await this.#options.makeRoom(missing, true))) throw error;
      await write();
    }
  }

  /** @param {Uint8Array} bytes the next bytes */
  #hash(bytes) {
    const sha = /** @type {Sha256} */ (this.#sha);
    sha.update(bytes);
    const isKeepable = bytes.byteLength === CHUNK_BYTES;
    if (isKeepable) this.#record.hash = { size: sha.size, state: sha.state };
  }

  async #finish() {
    const record = this.#record;
    const read = (/** @type {number} */ index) => this.#readAgain(index);
    if (this.#sha && (await sumOf(this.#sha, record, read)) !== record.sha256) {
      await this.#backend.remove(record.id);
      const { urls, sha256 } = record;
      const message = `${urls[0]} returned bytes that do not match SHA-256 ${sha256}`;
      throw new WickError('CORRUPT', message);
    }
    if (!this.#sha) await this.#refuseTruncated();
    await this.#options.checkLease?.();
    record.hash = null;
    record.fingerprint = fingerprintOf(record);
    await this.#backend.writeRecord(record);
  }

  /**
   * Rejects a file that ended early. The next attempt starts with the received bytes.
   */
  async #refuseTruncated() {
    const record = this.#record;
    const { id, urls, size } = record;
    const count = chunkCount(/** @type {number} */ (size));
    const read = async (/** @type {number} */ index) =>
      index < count ? this.#readAgain(index) : undefined;
    try {
      const file = { name: urls[0], size: /** @type {number} */ (size) };
      await refuseTruncated(file, read, CHUNK_BYTES);
    } catch (error) {
      if (!this.#isSizeFound) await this.#backend.remove(id);
      else {
        const sums = record.sums.slice(0, Math.floor(/** @type {number} */ (size) / CHUNK_BYTES));
        await this.#backend.writeRecord({ ...record, sums, size: null });
      }
      throw error;
    }
  }

  /** Hashes a chunk that arrived before an earlier one. @param {number} index */
  async #readAgain(index) {
    const { id } = this.#record;
    const bytes = await this.#backend.readChunk(id, index, chunkSize(this.#record, index));
    if (bytes) return bytes;
    throw new WickError('IO', `model ${id}: chunk ${index} cannot be read`);
  }
}

/**
 * The pieces of a stream from a position, which may be after its first byte, split at chunk
 * boundaries.
 */
class Pieces {
  #stream;
  #position;
  #left = new Uint8Array(0);

  /** @param {FileStream} stream @param {number} position */
  constructor(stream, position) {
    this.#stream = stream;
    this.#position = position;
  }

  /**
   * @param {number} most the maximum number of bytes
   * @returns {Promise<Uint8Array | null>} null at the end
   */
  async next(most) {
    while (this.#left.byteLength === 0) {
      const bytes = await readNext(this.#stream);
      if (bytes === null) return null;
      const skipped = this.#position - (this.#stream.position - bytes.byteLength);
      this.#left = /** @type {any} */ (bytes.subarray(Math.min(skipped, bytes.byteLength)));
    }
    const piece = this.#left.subarray(0, most);
    this.#left = this.#left.subarray(piece.byteLength);
    this.#position += piece.byteLength;
    return piece;
  }
}
