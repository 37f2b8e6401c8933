// js/bytes/model_sources.js — the sources of a model's bytes: URLs, blobs, files on disk, a stream.
// A source opens any of its files at an offset and returns a stream of the bytes from that offset.

import { WickError, wordsOf } from '../base/errors.js';
import { BlobStream } from './blob_stream.js';
import { HttpSource } from './http_source.js';
import { SeekableSource } from './seekable_source.js';
import { fileIsMissing } from './split_files.js';

/**
 * A file that is being read. `position` is the offset of the next byte. `size` is the size of the file, if
 * known.
 * @typedef {object} ByteStream
 * @property {number} position
 * @property {number | undefined} size
 * @property {() => Promise<Uint8Array | null>} read the next bytes, null at the end
 * @property {() => void} cancel
 */

/**
 * @typedef {object} Source
 * @property {number} files the number of files with a known name
 * @property {boolean} canSeek whether a file can be opened again, and at an offset
 * @property {(file: number, offset: number) => Promise<ByteStream>} open the stream may begin before
 *   `offset`, but not after it
 * @property {() => void} [close] ends streams that are open or being opened
 */

/**
 * A source as it is sent to the worker.
 * @typedef {{kind: 'url', urls: string[], headers: Record<string, string>, retries: number,
 *     stallMs: number} |
 *   {kind: 'blob', blobs: Blob[]} | {kind: 'path', paths: string[]} |
 *   {kind: 'chunks', files: import('./chunk_source.js').ChunkedFile[]} |
 *   {kind: 'page', files: number, canSeek: boolean, isRemote?: boolean}} SourceDescription
 */

/**
 * @param {Exclude<SourceDescription, {kind: 'page' | 'chunks'}>} description `chunks` is the source
 * of ChunkSource, in workers
 * @param {(attempt: number, waitMs: number) => void} onRetry
 * @returns {Source}
 */
export function createSource(description, onRetry) {
  switch (description.kind) {
    case 'url':
      return new HttpSource({ ...description, onRetry });
    case 'blob':
      return new BlobSource(description.blobs);
    case 'path':
      return new SeekableSource(description.paths.length, (file, offset) =>
        openPath(description.paths[file], offset),
      );
  }
}

const PIECE_BYTES = 1 << 20;
/** Smaller files are read synchronously, which is faster than waiting for the event loop. */
const SMALL_FILE_BYTES = 16 << 20;
/** Pieces of this size stay in the processor's cache until they are copied into the module. */
const SMALL_PIECE_BYTES = 1 << 18;

/** Blobs and Files. */
export class BlobSource extends SeekableSource {
  /** @param {Blob[]} blobs */
  constructor(blobs) {
    super(blobs.length, (file, offset) => new BlobStream(blobs[file], offset));
  }
}

/** Opens a file on disk, on hosts with node:fs (Node, Deno, Bun). @param {string} path @param {number} offset @returns {Promise<ByteStream>} */
async function openPath(path, offset) {
  const fs = globalThis.process?.getBuiltinModule?.('node:fs');
  if (!fs)
    throw new WickError('ARG', `Files are not available on this host: ${path} cannot be opened`);
  try {
    const stats = fs.statSync(path);
    if (stats.isFile() && stats.size > 0 && stats.size <= SMALL_FILE_BYTES) {
      return new SmallFileStream(fs, fs.openSync(path, 'r'), offset, stats.size);
    }
    const handle = await fs.promises.open(path, 'r');
    const stat = await handle.stat();
    if (!stat.isDirectory()) return new PathStream(handle, offset, stat.size);
    await handle.close();
  } catch (error) {
    throw new WickError('IO', `${path} cannot be read: ${error}`, error);
  }
  throw new WickError('IO', `${path} cannot be read: it is a folder`);
}

class SmallFileStream {
  #fs;
  #file;
  #buffer = new Uint8Array(SMALL_PIECE_BYTES);

  /** @param {typeof import('node:fs')} fs @param {number} file @param {number} position @param {number} size */
  constructor(fs, file, position, size) {
    this.#fs = fs;
    this.#file = file;
    this.position = position;
    this.size = size;
  }

  async read() {
    const size = this.#fs.readSync(this.#file, this.#buffer, 0, SMALL_PIECE_BYTES, this.position);
    this.position += size;
    return size === 0 ? null : this.#buffer.subarray(0, size);
  }

  cancel() {
    this.#fs.closeSync(this.#file);
  }
}

class PathStream {
  #handle;
  #buffer = new Uint8Array(PIECE_BYTES);

  /** @param {import('node:fs').promises.FileHandle} handle @param {number} position @param {number} size */
  constructor(handle, position, size) {
    this.#handle = handle;
    this.position = position;
    // a pipe has no size and can only be read in order
    this.size = size > 0 ? size : undefined;
  }

  async read() {
    const at = this.size === undefined ? null : this.position;
    const { bytesRead } = await this.#handle.read(this.#buffer, 0, PIECE_BYTES, at);
    this.position += bytesRead;
    return bytesRead === 0 ? null : this.#buffer.subarray(0, bytesRead);
  }

  cancel() {
    this.#handle.close().catch(() => {});
  }
}

/** A stream contains one file, which can be read only once, from its beginning. */
export class StreamSource {
  canSeek = false;
  files = 1;
  #iterator;
  #isOpen = false;

  /** @param {AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>} stream */
  constructor(stream) {
    this.#iterator = iterate(stream);
  }

  /** @param {number} file @param {number} _offset @returns {Promise<ByteStream>} */
  async open(file, _offset) {
    if (file > 0) throw fileIsMissing(file, 1);
    if (this.#isOpen) throw new WickError('INTERNAL', 'stream: can be read only once');
    this.#isOpen = true;
    return new IteratorStream(this.#iterator);
  }

  close() {
    leave(this.#iterator);
  }
}

class IteratorStream {
  position = 0;
  size = undefined;
  #iterator;

  /** @param {AsyncIterator<Uint8Array>} iterator */
  constructor(iterator) {
    this.#iterator = iterator;
  }

  async read() {
    const { done, value } = await readStream(this.#iterator);
    if (done) return null;
    if (!ArrayBuffer.isView(value)) {
      throw new WickError('ARG', 'stream must yield bytes (Uint8Array)');
    }
    this.position += value.byteLength;
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  }

  cancel() {
    leave(this.#iterator);
  }
}

/**
 * Ends the caller's iterator. Its errors are ignored.
 * @param {AsyncIterator<Uint8Array>} iterator
 */
async function leave(iterator) {
  try {
    await iterator.return?.();
  } catch {
    // it has ended
  }
}

/** @param {AsyncIterator<Uint8Array>} iterator */
async function readStream(iterator) {
  try {
    return await iterator.next();
  } catch (error) {
    throw new WickError('IO', `The stream failed: ${wordsOf(error)}`, error);
  }
}

/**
 * Returns an iterator for a stream. An async iterator ends only after its pending piece, which a stalled stream never
 * delivers. Web and Node streams are cancelled instead.
 * @param {any} stream
 * @returns {AsyncIterator<Uint8Array>}
 */
function iterate(stream) {
  const left = /** @type {const} */ ({ done: true, value: undefined });
  if (typeof stream.getReader === 'function') {
    const reader = /** @type {ReadableStreamDefaultReader<Uint8Array>} */ (stream.getReader());
    return { next: () => reader.read(), return: () => reader.cancel().then(() => left) };
  }
  const iterator = stream[Symbol.asyncIterator]();
  if (typeof stream.destroy !== 'function') return iterator;
  return { next: () => iterator.next(), return: async () => stream.destroy() && left };
}
