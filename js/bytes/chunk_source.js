// js/bytes/chunk_source.js — models that are stored as a folder of chunks in the origin private
// file system. A worker reads them through sync access handles, several times faster than the Blob
// of the same files (tools/bench/second_visit.mjs).

import { BlobStream } from './blob_stream.js';
import { SeekableSource } from './seekable_source.js';

/**
 * A file: `folder` is the path of a folder with a file for each chunk, named by its number; `blob`
 * has the content of all of them. It has no handle, because WebKit versions before July 2026
 * cannot send one to a worker.
 * @typedef {{folder: string[], size: number, chunkBytes: number, blob: Blob}} ChunkedFile
 */
/** @typedef {{read(to: Uint8Array, options: {at: number}): number, close(): void}} Handle FileSystemSyncAccessHandle */
/** An open chunk. The object that opens a handle must not be garbage-collected before the handle exists: in Chromium the promise would never settle.
 * @typedef {{file: unknown, handle: Handle}} OpenChunk */

/** Pieces of this size stay in the processor's cache until they are copied into the module. */
const PIECE_BYTES = 1 << 18;
/** The number of chunks to open in advance, because opening takes longer than reading. */
const AHEAD = 16;
/** A chunk that is not open after this time is read from the Blob. */
const OPEN_MS_MAX = 2000;

export class ChunkSource extends SeekableSource {
  /** @param {ChunkedFile[]} files */
  constructor(files) {
    super(files.length, (file, offset) => new ChunkStream(files[file], offset));
  }
}

/**
 * The stream of a file. If a chunk cannot be opened (another tab has its lock, or the browser does
 * not support such handles), it is read from the Blob.
 */
class ChunkStream {
  #file;
  #buffer = new Uint8Array(PIECE_BYTES);
  /** The open chunks by their numbers. @type {Map<number, Promise<OpenChunk | undefined>>} */
  #chunks = new Map();
  #opened;
  #folder;

  /** @param {ChunkedFile} file @param {number} position */
  constructor(file, position) {
    this.#file = file;
    this.position = position;
    this.size = file.size;
    this.#opened = Math.floor(position / file.chunkBytes);
    this.#folder = openFolder(file.folder);
  }

  async read() {
    const { chunkBytes, size } = this.#file;
    if (this.position >= size) return null;
    const index = Math.floor(this.position / chunkBytes);
    const at = this.position - index * chunkBytes;
    this.#openAhead(index);
    const chunk = await inTime(this.#chunks.get(index));
    const count = chunk?.handle.read(this.#buffer, { at }) ?? 0;
    if (count === 0) return this.#readBlob((index + 1) * chunkBytes);
    this.position += count;
    if (at + count === chunkBytes) this.#close(index);
    return this.#buffer.subarray(0, count);
  }

  /** @param {number} end of the chunk */
  async #readBlob(end) {
    const { blob } = this.#file;
    const stream = new BlobStream(blob.slice(0, Math.min(end, blob.size)), this.position);
    const bytes = await stream.read();
    this.position = stream.position;
    return bytes;
  }

  /** @param {number} index the chunk that is read next */
  #openAhead(index) {
    const { size, chunkBytes } = this.#file;
    const end = Math.min(index + AHEAD, Math.ceil(size / chunkBytes));
    for (; this.#opened < end; this.#opened++) {
      this.#chunks.set(this.#opened, openChunk(this.#folder, this.#opened));
    }
  }

  /** @param {number} index */
  #close(index) {
    const chunk = this.#chunks.get(index);
    this.#chunks.delete(index);
    chunk?.then((one) => one?.handle.close());
  }

  cancel() {
    for (const index of [...this.#chunks.keys()]) this.#close(index);
  }
}

/** @param {Promise<OpenChunk | undefined> | undefined} chunk @returns {Promise<OpenChunk | undefined>} */
async function inTime(chunk) {
  /** @type {any} */
  let timer;
  const late = new Promise((settle) => {
    timer = setTimeout(settle, OPEN_MS_MAX);
  });
  const open = await Promise.race([chunk, late]);
  clearTimeout(timer);
  return /** @type {OpenChunk | undefined} */ (open);
}

/** @param {string[]} path in the origin private file system @returns {Promise<FileSystemDirectoryHandle | undefined>} */
async function openFolder(path) {
  try {
    let folder = await navigator.storage.getDirectory();
    for (const name of path) folder = await folder.getDirectoryHandle(name);
    return folder;
  } catch {
    return undefined; // the Blob is read
  }
}

/** @param {Promise<FileSystemDirectoryHandle | undefined>} folder @param {number} index @returns {Promise<OpenChunk | undefined>} */
async function openChunk(folder, index) {
  try {
    const file = /** @type {any} */ (await (await folder)?.getFileHandle(String(index)));
    const handle = await file.createSyncAccessHandle({ mode: 'read-only' }); // other tabs may read it, too
    return { file, handle };
  } catch {
    return undefined;
  }
}
