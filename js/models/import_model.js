// js/models/import_model.js — imports a user's file into the store.

import { throwIfAborted, WickError } from '../base/errors.js';
import { randomName } from '../base/random.js';
import { readBlob } from '../bytes/blob_stream.js';
import { checkModel } from './download.js';
import { refuseTruncated } from './least_length.js';
import { CHUNK_BYTES, chunkCount, chunkSize, fingerprintOf, newRecord } from './records.js';
import { checksum, Sha256 } from './sha256.js';

/** @import { Backend } from './backends.js' */
/** @import { ModelRecord } from './records.js' */

/**
 * The number of bytes that are hashed before yielding to the event loop, so that a page stays
 * responsive.
 */
const TURN_BYTES = 1 << 18;

const turn = () => new Promise((settle) => setTimeout(settle));

/**
 * @param {Backend} backend
 * @param {Blob | string} from a path on hosts with folders
 * @param {import('../models.js').ImportOptions & {makeRoom: (id: string, size: number) => Promise<unknown>}} options
 * @returns {Promise<ModelRecord>}
 */
export async function importModel(backend, from, { name, url, signal, onProgress, makeRoom }) {
  const blob = typeof from === 'string' ? await blobOfPath(from) : from;
  const known = {
    name: name ?? nameOf(from),
    urls: url === undefined ? [] : [String(url)],
    size: blob.size,
  };
  const record = newRecord(randomName(), known);
  const { id } = record;
  checkModel((await readChunk(blob, 0)).subarray(0, 64));
  const count = chunkCount(blob.size);
  const read = async (/** @type {number} */ index) =>
    index < count ? readChunk(blob, index) : undefined;
  await refuseTruncated({ name: known.name, size: blob.size }, read, CHUNK_BYTES);
  const unlock = await backend.tryLock(id);
  try {
    await makeRoom(id, blob.size);
    await backend.writeRecord(record); // without chunks, so that it never looks complete
    const isAdopted = typeof from === 'string' && backend.adopt !== undefined;
    if (isAdopted) await backend.adopt?.(id, from);
    const sha = new Sha256();
    for (let index = 0; index < count; index++) {
      throwIfAborted(signal);
      const bytes = isAdopted
        ? await backend.readChunk(id, index, chunkSize(record, index))
        : await readChunk(blob, index);
      if (!bytes) throw new WickError('IO', `${record.name} was changed while it was read`);
      record.sums[index] = await checksum(bytes);
      if (!isAdopted) await backend.writeChunk(id, index, bytes);
      for (let at = 0; at < bytes.byteLength; at += TURN_BYTES) {
        sha.update(bytes.subarray(at, at + TURN_BYTES));
        await turn();
      }
      const loaded = index * CHUNK_BYTES + bytes.byteLength;
      onProgress?.({ loaded, received: loaded, total: blob.size });
    }
    record.sha256 = sha.hex();
    record.fingerprint = fingerprintOf(record);
    await backend.settle(id);
    await backend.writeRecord(record);
    return record;
  } catch (error) {
    await backend.remove(id);
    throw error;
  } finally {
    await unlock?.();
  }
}

/** @param {Blob} blob @param {number} index */
async function readChunk(blob, index) {
  const at = index * CHUNK_BYTES;
  return new Uint8Array(await readBlob(blob.slice(at, at + CHUNK_BYTES)));
}

/** @param {string} path @returns {Promise<Blob>} */
async function blobOfPath(path) {
  try {
    return await globalThis.process.getBuiltinModule('node:fs').openAsBlob(path);
  } catch (error) {
    throw new WickError('IO', `${path} cannot be read: ${error}`, error);
  }
}

/** @param {Blob | string} from */
function nameOf(from) {
  if (typeof from === 'string') return from.split(/[\\/]/).at(-1) || from;
  return 'name' in from ? String(from.name) : 'model.gguf';
}
