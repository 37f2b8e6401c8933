// js/bytes/row_readers.js — reads a model's file while the engine runs: rows of tables that are not kept in memory. The
// module waits for them, so only sources that can be read synchronously have a reader: files on disk and, in a
// browser's worker, Blobs (a file that the user chose or a stored model).

/** @import { SourceDescription } from './model_sources.js' */
/**
 * `read` returns up to `size` bytes of a file, fewer only at its end, and throws on failure. `size`
 * is the total size of all files whose names are known.
 * @typedef {{size: number, read: (file: number, offset: number, size: number) => Uint8Array, close: () => void}} RowReader
 */

/**
 * @param {SourceDescription} source
 * @returns {RowReader | undefined} undefined if this source has no reader on this host
 */
export function openRows(source) {
  if (source.kind === 'path') {
    const fs = globalThis.process?.getBuiltinModule?.('node:fs');
    return fs && pathRows(fs, source.paths);
  }
  if (source.kind === 'blob') return blobRows(source.blobs);
  if (source.kind === 'chunks') return blobRows(source.files.map(({ blob }) => blob));
  return undefined;
}

/**
 * Files are opened here, before the model is read, and stay open. A file that is modified while the
 * model runs is rejected, like a File in browsers, because its rows may have changed. Pipes can be
 * read only once.
 * @param {typeof import('node:fs')} fs
 * @param {string[]} paths
 * @returns {RowReader | undefined}
 */
function pathRows(fs, paths) {
  const found = paths.map((path) => fs.statSync(path, { throwIfNoEntry: false }));
  if (!found.every((one) => one?.isFile())) return undefined;
  /** @type {number[]} */
  const open = [];
  const close = () => {
    for (const descriptor of open.splice(0)) fs.closeSync(descriptor);
  };
  try {
    for (const path of paths) open.push(fs.openSync(path, 'r'));
  } catch {
    close(); // loading reports the reason
    return undefined;
  }
  const stats = open.map((descriptor) => fs.fstatSync(descriptor));
  let buffer = new Uint8Array(0);
  return {
    size: stats.reduce((sum, { size }) => sum + size, 0),
    read(file, offset, size) {
      const { mtimeMs } = fs.fstatSync(open[file]);
      if (mtimeMs !== stats[file].mtimeMs) throw new Error('the file was changed');
      if (buffer.length < size) buffer = new Uint8Array(size);
      return buffer.subarray(0, fs.readSync(open[file], buffer, 0, size, offset));
    },
    close,
  };
}

/** @param {Blob[]} blobs @returns {RowReader | undefined} */
function blobRows(blobs) {
  const { FileReaderSync } = /** @type {any} */ (globalThis);
  if (!FileReaderSync) return undefined;
  const reader = new FileReaderSync();
  return {
    size: blobs.reduce((sum, { size }) => sum + size, 0),
    read: (file, offset, size) =>
      new Uint8Array(reader.readAsArrayBuffer(blobs[file].slice(offset, offset + size))),
    close() {},
  };
}
