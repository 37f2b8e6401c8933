// js/models/model_store.js — the store of models, by their content and their URLs.

import { unlessAborted } from '../base/abort_signals.js';
import { abortError, argumentError, throwIfAborted, WickError } from '../base/errors.js';
import { HttpSource } from '../bytes/http_source.js';
import { splitNames } from '../bytes/split_files.js';
import { compareWithServer, refuseOther, refuseOtherKept } from './check_model.js';
import { pathOf } from './folder_backend.js';
import { canonicalName, mmprojName, noHubName, parseHubName, resolveHubModel } from './hub.js';
import { importModel } from './import_model.js';
import { OpenModel } from './model_lease.js';
import { News } from './news.js';
import { chunkCount, chunkSize, entryOf, idOf, readWhole, storedBytes } from './records.js';
import { checksum } from './sha256.js';
import { checkImportOptions, getOptionsOf } from './store_options.js';

/** @typedef {import('../models.js').ModelStore} PublicStore whose method types apply here */
/** @import { GetOptions, ModelEntry } from '../models.js' */
/** @import { Backend } from './backends.js' */
/** @import { ModelRecord } from './records.js' */
/**
 * A file. `alias` is the name by which it was requested.
 * @typedef {{url: string, id?: string, alias?: string, name?: string, size?: number | null, sha256?: string | null,
 *   headers?: Record<string, string>}} Wanted
 */

const RETRIES = 5;
const STALL_MS = 30_000;
const LOCK_LOOK_MS = 100;
const LOCK_MS_MAX = 30_000;
const CHANNEL = 'wick-llm models';
/** Received bytes are reported to other tabs at most this often. */
const ARRIVED_MS = 200;
const eventTypes = ['progress', 'kept', 'removed', 'damaged'];

/** @param {string | URL} url @returns {string} */
const absolute = (url) => {
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  if (!URL.canParse(String(url), base)) return String(url);
  // the hub's page for a file
  return new URL(String(url), base).href.replace(
    /^(https?:(?:\/\/?[^/]+){3}\/)blob\//,
    '$1resolve/',
  );
};

/** @param {string} url @returns {string} */
function nameOfUrl(url) {
  const last = new URL(url).pathname.split('/').at(-1);
  try {
    return decodeURIComponent(last ?? '') || url;
  } catch {
    return last || url; // a literal %
  }
}

export class ModelStore extends EventTarget {
  #backend;
  #evict;
  /** @type {Map<string, OpenModel>} */
  #open = new Map();
  /** Promises of models without readers that are being closed. @type {Set<Promise<void>>} */
  #ending = new Set();
  /** @type {BroadcastChannel | undefined} */
  #channel;
  #isClosed = false;

  /** @param {Backend} backend @param {{evict?: boolean}} [options] */
  constructor(backend, { evict = false } = {}) {
    super();
    this.#backend = backend;
    this.#evict = evict;
    if (backend.kind === 'folder' || backend.kind === 'memory') return;
    this.#channel = new BroadcastChannel(CHANNEL);
    this.#channel.onmessage = ({ data }) => this.#hear(data);
  }

  get kind() {
    return this.#backend.kind;
  }

  get folder() {
    return this.#backend.folder;
  }

  // ---- stored models ----

  /** @returns {Promise<ModelRecord[]>} */
  async #records() {
    if (this.#isClosed) throw new WickError('CLOSED', 'store: closed');
    const ids = await this.#backend.ids();
    const found = await Promise.all(ids.map((id) => this.#backend.readRecord(id)));
    return found.filter((record) => record !== undefined);
  }

  /** @returns {Promise<ModelEntry[]>} complete and partial models, the most recently used first */
  async list() {
    const records = await this.#records();
    return records.sort((a, b) => b.usedMs - a.usedMs).map(entryOf);
  }

  /**
   * @param {string | URL} name
   * @returns {Promise<ModelRecord | undefined>} a complete model in preference to partial ones
   */
  async #find(name) {
    if (typeof name !== 'string' && !(name instanceof URL)) {
      throw argumentError('name must be a URL, a fingerprint, a SHA-256 or an id of a model');
    }
    const hub = parseHubName(name);
    const text = hub ? canonicalName(hub) : String(name);
    const url = hub ? text : absolute(name);
    const fits = (await this.#records()).filter(
      ({ id, urls, fingerprint, sha256, name: own }) =>
        [id, fingerprint, sha256, own].includes(text) || urls.includes(url),
    );
    return fits.find(({ fingerprint }) => fingerprint !== null) ?? fits[0];
  }

  /** @param {string | URL} name @returns {Promise<ModelEntry | undefined>} */
  async info(name) {
    const record = await this.#find(name);
    return record && entryOf(record);
  }

  /** @param {string | URL} name @returns {Promise<boolean>} whether it is stored completely */
  async has(name) {
    return (await this.#find(name))?.fingerprint != null;
  }

  /** @type {PublicStore['check']} */
  async check(name, options) {
    const how = options ?? {};
    throwIfAborted(how.signal);
    const record = await this.#find(name);
    if (!record?.fingerprint) throw new WickError('NOT_FOUND', `${name} is not stored`);
    return { ...(await compareWithServer(record, how)), entry: entryOf(record) };
  }

  /** @type {PublicStore['blob']} */
  async blob(name) {
    const record = await this.#find(name);
    if (!record?.fingerprint) return undefined;
    const described = await this.#backend.describe(record);
    if (described?.kind === 'chunks') return described.files[0].blob;
    if (described) {
      return globalThis.process.getBuiltinModule('node:fs').openAsBlob(described.paths[0]);
    }
    const chunks = Array.from({ length: chunkCount(record.size ?? 0) }, async (_, index) => {
      return new Blob([await readWhole(record, index, this.#backend)]);
    });
    return new Blob(await Promise.all(chunks));
  }

  /**
   * @param {Wanted[]} files
   * @returns {Promise<import('./backends.js').KeptPaths | import('./backends.js').KeptChunks |
   * undefined>} how a worker reads them directly; undefined if it cannot, or if a file is
   * incomplete
   */
  async describe(files) {
    await Promise.allSettled(this.#ending); // models that engines have just read are still being stored
    /** @type {string[]} */
    const paths = [];
    /** @type {import('../bytes/chunk_source.js').ChunkedFile[]} */
    const chunked = [];
    for (const file of files) {
      const record = await this.#recordOf(file);
      const described = record?.fingerprint ? await this.#backend.describe(record) : undefined;
      if (!record || !described) {
        if (record?.fingerprint) await this.#isThere(record);
        return undefined;
      }
      if (described.kind === 'path') paths.push(...described.paths);
      else chunked.push(...described.files);
      await this.#touch(record, file);
    }
    return paths.length > 0 ? { kind: 'path', paths } : { kind: 'chunks', files: chunked };
  }

  /**
   * Opens the stored part of a file for reading.
   * @param {Wanted} file
   * @param {Parameters<ModelStore['take']>[1]} options
   */
  async takeKept(file, options) {
    const found = await this.#recordOf(file);
    if (found?.fingerprint) await this.#isThere(found);
    const model = this.take({ ...file, id: found?.id }, options);
    await model.refresh();
    return model;
  }

  // ---- downloads ----

  /** Returns the complete model; for a split model, its first file. @type {PublicStore['get']} */
  async get(name, options = {}) {
    const how = getOptionsOf(options);
    throwIfAborted(how.signal);
    const files = await this.locate(name, how);
    /** @type {ModelEntry[]} */
    const entries = [];
    const own = files.length === 1 ? how : { ...how, sha256: undefined, size: undefined };
    for (const file of files) entries.push(await this.#getFile(file, own));
    return entries[0];
  }

  /**
   * Returns the files of a model. Unless all of them are stored, the hub is queried for their URLs.
   * @param {string | URL} name
   * @param {GetOptions & {isOnly?: boolean}} [options]
   * @returns {Promise<Wanted[]>}
   */
  async locate(name, options = {}) {
    const found = await this.#find(name);
    const hub = parseHubName(name);
    const url = found?.urls.find((one) => /^https?:/.test(one)) ?? absolute(name);
    if (!hub && !found && /^\s*hf:/i.test(String(name))) throw noHubName(name);
    if (hub && !(found && (await this.areWhole(splitNames(url))))) {
      if (options.isOnly) throw new WickError('NOT_FOUND', `${name} is not stored`);
      const { hub: how, fetch, signal } = options;
      const files = await resolveHubModel(hub, { ...how, fetch, signal });
      const isOne = files.length === 1;
      if (isOne) refuseOther(files[0], options, 'is on the hub');
      return files.map((file, index) => ({
        ...file,
        sha256: file.sha256 ?? (isOne ? options.sha256 : undefined),
        ...(index === 0 && { alias: canonicalName(hub) }),
      }));
    }
    if (found?.fingerprint && !hub && splitNames(url).length === 1) return [{ id: found.id, url }];
    if (!URL.canParse(url)) throw new WickError('NOT_FOUND', `${name}: not in the store`);
    const { sha256, size } = options;
    const urls = splitNames(url);
    return urls.length > 1 ? urls.map((one) => ({ url: one })) : [{ url, sha256, size }];
  }

  /** @param {string[]} names @returns {Promise<boolean>} whether all of these files are stored completely */
  async areWhole(names) {
    for (const name of names) if (!(await this.has(name))) return false;
    return true;
  }

  /**
   * Returns the record of a file, regardless of the URL that its content came from.
   * @param {Wanted} file
   */
  async #recordOf({ id, url, sha256 }) {
    const byAddress = await this.#find(id ?? url);
    if (byAddress?.fingerprint || !sha256) return byAddress;
    return (await this.#find(sha256)) ?? byAddress;
  }

  /** @param {Wanted} file @param {GetOptions} options @returns {Promise<ModelEntry>} */
  async #getFile(file, options) {
    const { signal, onProgress } = options;
    const found = await this.#recordOf(file);
    if (found?.fingerprint && (await this.#isThere(found))) {
      await refuseOtherKept(found, options, this.#backend);
      await this.#touch(found, file);
      return entryOf(found);
    }
    const model = this.take({ ...file, id: found?.id }, options);
    const report = () => {
      const { progress } = model;
      if (progress) onProgress?.(progress);
    };
    const own = this.#listen(model, report);
    try {
      const isLeft = () => signal?.aborted === true || own.thrown !== undefined;
      await unlessAborted(model.complete(isLeft), signal, () => {});
      if (signal?.aborted) throw abortError(signal.reason);
      if (own.thrown) throw own.thrown.error;
      report();
    } finally {
      own.end();
      await this.release(model);
    }
    const record = await this.#recordOf(file);
    if (record?.fingerprint) return entryOf(record);
    throw new WickError('NOT_FOUND', `${file.url} was removed while it was downloaded`);
  }

  /**
   * Returns whether the chunks of a complete model are stored. If not, its record is updated.
   * @param {ModelRecord} record
   */
  async #isThere(record) {
    if (await this.#backend.hasChunks(record)) return true;
    return (await this.verify(record.id)).isWhole;
  }

  /**
   * Calls `report` for each change. `thrown` is the error that the caller's function has thrown; after that,
   * progress is not reported.
   * @param {OpenModel} model
   * @param {() => void} report
   */
  #listen(model, report) {
    let isEnded = false;
    const own = {
      thrown: /** @type {{error: unknown} | undefined} */ (undefined),
      end() {
        isEnded = true;
        model.news.notify();
      },
    };
    (async () => {
      try {
        for (await model.news.next(); !isEnded; await model.news.next()) report();
      } catch (error) {
        own.thrown = { error };
        own.end();
      }
    })();
    return own;
  }

  /**
   * Opens a model for reading, or for downloading it. The caller must release it.
   * @param {Wanted} wanted
   * @param {Omit<GetOptions, 'signal' | 'onProgress' | 'sha256' | 'size'> & {onRetry?: (attempt: number, waitMs: number) => void,
   *   onWaiting?: () => void}} options
   * @returns {OpenModel}
   */
  take({ url, id = idOf(url), alias, name, size, sha256, headers }, options = {}) {
    let model = this.#open.get(id);
    if (!model || model.hasFailed) {
      const { retries = RETRIES, stallMs = STALL_MS, fetch, connections = 1, onRetry } = options;
      const sent = { ...headers, ...Object.fromEntries(new Headers(options.headers)) };
      const how = { urls: [url], headers: sent, retries, stallMs, fetch, onRetry };
      const own = new OpenModel(id, this.#backend, {
        known: { urls: alias ? [url, alias] : [url], name: name ?? nameOfUrl(url), size, sha256 },
        connect: () => connect(how, connections),
        makeRoom: (missing, isRefused) => this.#makeRoom(id, missing, isRefused),
        onStored: (record) => this.#tell('progress', record),
        onWhole: (record) => this.#tell('kept', record),
        onArrived: this.#arrivals(id, () => own.progress),
        onAsk: () => this.#channel?.postMessage({ type: 'ask', detail: { id } }),
        onWaiting: () => {
          const words =
            'another tab is downloading it but does not respond; this one takes over soon';
          console.warn(`wick-llm: waiting for the model: ${words}`);
          options.onWaiting?.();
        },
      });
      model = own;
      this.#open.set(id, model);
    }
    model.users++;
    return model;
  }

  /** @param {OpenModel} model */
  async release(model) {
    model.users--;
    if (model.users > 0) return;
    for (const [id, one] of this.#open) if (one === model) this.#open.delete(id);
    const ending = this.#end(model);
    this.#ending.add(ending);
    await ending.finally(() => this.#ending.delete(ending));
  }

  /** @param {OpenModel} model */
  async #end(model) {
    await model.stop();
    if (model.record?.fingerprint) await this.#mergeTwin(model.record);
  }

  /** Merges two models with the same content into one, with the URLs of both. @param {ModelRecord} own */
  async #mergeTwin(own) {
    const isTwin = (/** @type {ModelRecord} */ { id, fingerprint }) =>
      id !== own.id && fingerprint === own.fingerprint;
    const twin = (await this.#records()).find(isTwin);
    if (!twin) return;
    await this.#locked(twin.id, async () => {
      const urls = [...new Set([...twin.urls, ...own.urls])];
      await this.#backend.writeRecord({ ...twin, urls, sha256: twin.sha256 ?? own.sha256 });
      await this.#backend.remove(own.id);
    });
  }

  /** @param {ModelRecord} record of a complete model that is being used now @param {Wanted} file */
  async #touch(record, { url, alias }) {
    record.usedMs = Date.now();
    record.urls = [...new Set([...record.urls, url, ...(alias ? [alias] : [])])];
    const unlock = await this.#backend.tryLock(record.id);
    if (!unlock) return;
    try {
      await this.#backend.writeRecord(record);
    } catch {
      // the disk is full, but the model can still be read
    } finally {
      await unlock();
    }
  }

  // ---- maintenance ----

  /**
   * @param {string} id
   * @param {() => Promise<void>} action
   * @param {AbortSignal | null} [signal]
   */
  async #locked(id, action, signal) {
    for (const end = Date.now() + LOCK_MS_MAX; ; ) {
      throwIfAborted(signal);
      const unlock = await this.#backend.tryLock(id);
      if (unlock) {
        await action().finally(unlock);
        return;
      }
      if (Date.now() > end)
        throw new WickError('BUSY', `model ${id}: another process is downloading it`);
      await new News().next(LOCK_LOOK_MS);
    }
  }

  /** @param {string | URL} name @returns {Promise<boolean>} whether the model existed */
  async delete(name) {
    const record = await this.#find(name);
    if (!record) return false;
    await this.#open.get(record.id)?.stop();
    await this.#locked(record.id, () => this.#backend.remove(record.id));
    this.#tell('removed', record);
    await this.#deleteMmproj(record);
    return true;
  }

  /**
   * Deletes the mmproj file of a model's repository if no other model of that repository is stored.
   * @param {ModelRecord} removed
   */
  async #deleteMmproj(removed) {
    /** @param {ModelRecord} record */
    const namesOf = ({ urls }) =>
      urls.flatMap((url) => parseHubName(url) ?? []).map((name) => canonicalName(mmprojName(name)));
    const [own] = namesOf(removed);
    if (own === undefined || removed.urls.includes(own)) return;
    const isOther = (/** @type {ModelRecord} */ record) =>
      namesOf(record).includes(own) && !record.urls.includes(own);
    if (!(await this.#records()).some(isOther)) await this.delete(own);
  }

  async clear() {
    for (const { id } of await this.#records()) await this.delete(id);
    await this.#removeBroken();
  }

  /** @type {PublicStore['verify']} */
  async verify(name, { signal } = {}) {
    const found = await this.#find(name);
    if (!found) throw new WickError('NOT_FOUND', `${name}: not in the store`);
    /** @type {number[]} */
    const damaged = [];
    let record = found;
    await this.#locked(
      found.id,
      async () => {
        record = (await this.#backend.readRecord(found.id)) ?? found;
        for (let index = 0; index < record.sums.length; index++) {
          throwIfAborted(signal);
          const sum = record.sums[index];
          if (!sum) continue;
          const bytes = await this.#backend.readChunk(record.id, index, chunkSize(record, index));
          if (!bytes || (await checksum(bytes)) !== sum) damaged.push(index);
        }
        if (damaged.length === 0) return;
        for (const index of damaged) record.sums[index] = null;
        await this.#backend.writeRecord({ ...record, fingerprint: null, hash: null });
        record.fingerprint = null;
      },
      signal,
    );
    if (damaged.length > 0) this.#tell('damaged', record);
    return { isWhole: record.fingerprint !== null, damagedChunks: damaged };
  }

  /** @type {PublicStore['import']} */
  async import(file, options = {}) {
    checkImportOptions(options);
    throwIfAborted(options.signal);
    const from = file instanceof Blob ? file : pathOf(file);
    await this.#removeBroken();
    const makeRoom = (/** @type {string} */ id, /** @type {number} */ size) =>
      this.#makeRoom(id, size, false);
    const made = await importModel(this.#backend, from, { ...options, makeRoom });
    await this.#mergeTwin(made);
    const record = (await this.#find(/** @type {string} */ (made.fingerprint))) ?? made;
    this.#tell('kept', record);
    return entryOf(record);
  }

  /** Removes unfinished imports, which cannot be resumed. */
  async #removeBroken() {
    for (const { id, urls, fingerprint, sums } of await this.#records()) {
      if (fingerprint !== null || urls.length > 0 || sums.length > 0) continue;
      const unlock = await this.#backend.tryLock(id);
      if (unlock) await this.#backend.remove(id).finally(unlock);
    }
  }

  /** @returns {Promise<import('../models.js').StorageEstimate>} */
  async estimate() {
    const records = await this.#records();
    const usedBytes = records.reduce((sum, record) => sum + storedBytes(record), 0);
    return { usedBytes, ...(await this.#backend.estimate()) };
  }

  /** @returns {Promise<boolean>} whether the models stay until the user removes them */
  persist() {
    return this.#backend.persist();
  }

  /**
   * @param {string} id of the model that needs space
   * @param {number} missing the number of its bytes that are not stored
   * @param {boolean} isRefused whether a write has failed
   * @returns {Promise<boolean>} whether there may be enough space now
   */
  async #makeRoom(id, missing, isRefused) {
    const { freeBytes } = await this.#backend.estimate();
    if (!isRefused && (freeBytes === undefined || freeBytes >= missing)) return true;
    const candidates = (await this.#records())
      .filter((record) => record.id !== id && !this.#open.has(record.id))
      .sort((a, b) => a.usedMs - b.usedMs);
    const canGo = candidates.reduce((sum, record) => sum + storedBytes(record), 0);
    const free = isRefused ? 0 : (freeBytes ?? 0);
    if (!this.#evict || free + canGo < missing) {
      const known = freeBytes === undefined ? 'an unknown number' : String(freeBytes);
      const message = `storage: full. ${missing} more bytes are needed, but ${known} are free`;
      const cause = { missingBytes: missing, freeBytes, candidates: candidates.map(entryOf) };
      throw new WickError('STORAGE_FULL', message, cause);
    }
    for (let won = free; won < missing; ) {
      const oldest = /** @type {ModelRecord} */ (candidates.shift());
      won += storedBytes(oldest);
      await this.delete(oldest.id);
    }
    return true;
  }

  /**
   * Handles a stored model that the engine has rejected. Damaged chunks are fetched again by the
   * next `get`. If no chunk is damaged, the file was damaged from the start, so it is removed if it
   * can be downloaded again.
   * @param {Wanted[]} files
   * @param {{canRemove: boolean}} options
   */
  async invalidate(files, { canRemove }) {
    /** @type {ModelRecord[]} */
    const found = [];
    for (const file of files) {
      const record = await this.#recordOf(file);
      if (record && storedBytes(record) > 0) found.push(record);
    }
    let isDamaged = false;
    for (const { id } of found) {
      await this.#open.get(id)?.stop();
      isDamaged = (await this.verify(id)).damagedChunks.length > 0 || isDamaged;
    }
    if (isDamaged || !canRemove) return;
    for (const { id, urls } of found) {
      if (urls.some((url) => /^https?:/.test(url))) await this.delete(id);
    }
  }

  // ---- events ----

  /** @param {'progress' | 'kept' | 'removed' | 'damaged'} type @param {ModelRecord} record */
  #tell(type, record) {
    const detail = entryOf(record);
    this.dispatchEvent(new CustomEvent(type, { detail }));
    this.#channel?.postMessage({ type, detail });
  }

  /**
   * Notifies other tabs of the number of received bytes, but not for each piece.
   * @param {string} id
   * @param {() => OpenModel['progress']} progress
   */
  #arrivals(id, progress) {
    let reportedAt = -ARRIVED_MS;
    return () => {
      if (performance.now() - reportedAt < ARRIVED_MS) return;
      reportedAt = performance.now();
      const { received, total } = progress() ?? {};
      this.#channel?.postMessage({ type: 'arrived', detail: { id, received, total } });
    };
  }

  /** @param {any} message from another tab; any script of the origin may use the channel */
  #hear(message) {
    const { type, detail } = message ?? {};
    const { received, total = 0 } = detail ?? {};
    const open = this.#open.get(detail?.id);
    if (type === 'alive') open?.hearSign();
    if (type === 'ask' && open?.isLeading) {
      this.#channel?.postMessage({ type: 'alive', detail: { id: detail.id } });
    }
    const isArrived = type === 'arrived' && [received, total].every(Number.isSafeInteger);
    if (isArrived) this.#open.get(detail.id)?.hear({ received, total: total || undefined });
    if (!eventTypes.includes(type) || typeof detail?.id !== 'string') return;
    this.#open.get(detail.id)?.news.notify();
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** Ends downloads; stored chunks are kept. */
  async close() {
    this.#isClosed = true;
    await Promise.all([...this.#open.values()].map((model) => model.stop()));
    this.#channel?.close();
    await this.#backend.close();
  }
}

/**
 * @param {import('../bytes/http_source.js').HttpOptions} how
 * @param {number} connections
 */
function connect(how, connections) {
  /** @type {Set<HttpSource>} */
  const sources = new Set();
  return {
    connections,
    open: async (
      /** @type {number} */ offset,
      /** @type {import('../bytes/http_source.js').KnownVersion} */ known,
    ) => {
      const source = new HttpSource({ ...how, known });
      sources.add(source);
      return source.open(0, offset);
    },
    close: () => {
      for (const source of sources) source.close();
    },
  };
}
