// js/models/backends.js — storage for models: a folder, the origin private file system, or IndexedDB.

import { WickError } from '../base/errors.js';
import { FolderBackend, hasFolders } from './folder_backend.js';
import { hasIndexedDb, IndexedDbBackend } from './indexed_db_backend.js';
import { hasOpfs, OpfsBackend } from './opfs_backend.js';

/** @import { ModelRecord } from './records.js' */

/**
 * Releases a lock. A lock is a lease: its holder checks `isHeld` before each write, because a
 * different tab may have taken it while the holder was frozen. `lost` aborts when that happens.
 * @typedef {(() => Promise<void>) & {isHeld?: () => Promise<boolean>, lost?: AbortSignal}} Unlock
 */

/** @typedef {{kind: 'path', paths: string[]}} KeptPaths */
/** @typedef {{kind: 'chunks', files: import('../bytes/chunk_source.js').ChunkedFile[]}} KeptChunks */

/**
 * Stores records and chunks by the model's id. Each write is atomic, and is durable once its
 * promise resolves.
 * @typedef {object} Backend
 * @property {'folder' | 'opfs' | 'indexeddb' | 'memory'} kind
 * @property {string} [folder] the folder in which they are stored
 * @property {() => Promise<unknown>} [open] rejects with `NO_STORAGE` if nothing can be stored
 * @property {() => Promise<string[]>} ids
 * @property {(id: string) => Promise<ModelRecord | undefined>} readRecord
 * @property {(record: ModelRecord) => Promise<void>} writeRecord
 * @property {(id: string, index: number, size: number) => Promise<Uint8Array<ArrayBuffer> |
 * undefined>} readChunk undefined if no chunk of this size is stored
 * @property {(id: string, index: number, bytes: Uint8Array<ArrayBuffer>) => Promise<void>} writeChunk
 * @property {(id: string) => Promise<void>} settle is called when no writer is storing chunks of
 * the model
 * @property {(record: ModelRecord) => Promise<boolean>} hasChunks whether all chunks of a complete
 * model are stored with the right sizes
 * @property {(id: string, path: string) => Promise<void>} [adopt] uses a file on disk as the
 * model's chunks
 * @property {(id: string) => Promise<void>} remove
 * @property {(record: ModelRecord) => Promise<KeptPaths | KeptChunks | undefined>} describe how a
 * worker can read a complete model directly; undefined if it cannot, or if a part is missing
 * @property {() => Promise<{freeBytes: number | undefined, isPersisted: boolean}>} estimate
 * @property {() => Promise<boolean>} persist
 * @property {(id: string, options?: {steal?: boolean}) => Promise<Unlock | undefined>} tryLock
 * `steal`: takes the lock from a tab that does not respond
 * @property {(id: string) => Promise<boolean>} [isAlive] whether the holder of the lock still
 * renews it, if that can be detected
 * @property {() => Promise<void>} close
 */

/** @param {string | undefined} folder for hosts with a file system @returns {Backend} */
export function chooseBackend(folder) {
  if (hasFolders()) return new FolderBackend(folder);
  if (folder !== undefined) throw new WickError('ARG', 'folder: not available in browsers');
  if (hasOpfs()) return new OpfsBackend();
  if (hasIndexedDb()) return new IndexedDbBackend();
  throw new WickError('NO_STORAGE', 'storage: not available on this host');
}
