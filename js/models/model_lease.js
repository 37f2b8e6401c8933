// js/models/model_lease.js — one model of the store while it is read or downloaded. Only one of the
// tabs and processes downloads it. All other tabs and processes read the stored chunks, and one of
// them takes over when it ends.

import { onAbort } from '../base/abort_signals.js';
import { WickError } from '../base/errors.js';
import { Download } from './download.js';
import { News } from './news.js';
import { CHUNK_BYTES, chunkCount, chunkSize, newRecord, storedBytes } from './records.js';
import { Sha256 } from './sha256.js';

/** @import { Backend } from './backends.js' */
/** @import { ModelRecord } from './records.js' */

/** Tabs that wait for another tab's download check its journal at least this often. */
const LOOK_MS = 200;
/**
 * If a downloading tab shows no sign of life for this long, this is reported, and the tab is asked
 * for one.
 */
const REPORT_MS = 3000;
/** After this long, the tab counts as frozen, and another one takes over its lease. */
const TAKE_OVER_MS = 12_000;
const PIECE_BYTES = 1 << 20;

/** Returns the error for a file whose size is not the requested one. @param {ModelRecord} record */
const otherSize = ({ urls, size }) =>
  new WickError('CORRUPT', `${urls[0]} is not the requested file: its size is not ${size} bytes`);

/**
 * @typedef {object} OpenOptions
 * @property {import('./records.js').Known} known
 * @property {() => Omit<import('./download.js').DownloadOptions, 'onStored' | 'makeRoom' | 'onNews'>} connect
 * @property {import('./download.js').DownloadOptions['makeRoom']} makeRoom
 * @property {(record: ModelRecord) => void} onStored
 * @property {(record: ModelRecord) => void} onWhole
 * @property {() => void} onArrived is called when bytes have arrived that are not stored yet
 * @property {() => void} [onAsk] requests a sign of life from the tab that downloads
 * @property {() => void} [onWaiting] is called when another tab is downloading but does not respond
 */

/** The messages of the tab that downloads. @typedef {{received: number, total?: number}} Heard */

export class OpenModel {
  /** The number of readers and of callers waiting for the model. */
  users = 0;
  /** The latest record of the model. @type {ModelRecord | undefined} */
  record;
  news = new News();
  /** The error that ended the download. @type {unknown} */
  failure;
  #id;
  #backend;
  #options;
  /** @type {Download | undefined} */
  #download;
  /** @type {Promise<void> | undefined} */
  #leading;
  /** @type {Promise<void>} settles when this tab has released its lock */
  #ended = Promise.resolve();
  /** Whether another tab leads. */
  #isFollowing = false;
  /** @type {Heard | undefined} */
  #heard;
  /** The time of the leading tab's last sign of life, and when this tab last checked for one. */
  #signMs = 0;
  #lookMs = 0;
  #isWaiting = false;
  /** The chunk that was read last. @type {{index: number, bytes: Uint8Array<ArrayBuffer>} | undefined} */
  #chunk;
  /** The record whose bytes were returned. @type {ModelRecord | undefined} */
  #given;
  /** @type {string | undefined} */
  #stamp;
  /**
   * A failed download, which still has the bytes that were not stored.
   * @type {Download | undefined}
   */
  #failed;
  /** Chunks of the journal that are missing. @type {Set<number>} */
  #lost = new Set();

  /** @param {string} id @param {Backend} backend @param {OpenOptions} options */
  constructor(id, backend, options) {
    this.#id = id;
    this.#backend = backend;
    this.#options = options;
  }

  get isWhole() {
    return this.record !== undefined && this.record.fingerprint !== null && this.#lost.size === 0;
  }

  /**
   * @returns {import('../models.js').KeepProgress | undefined} undefined: nothing is known about it
   * yet
   */
  get progress() {
    const { record } = this;
    const heard = this.#download ? undefined : this.#heard;
    if (!record && !heard) return undefined;
    const loaded = record ? storedBytes(record) : 0;
    const come = loaded + (this.#download?.arrivingBytes ?? 0);
    const received = Math.max(come, heard?.received ?? 0);
    const promised = this.#download?.promisedBytes ?? heard?.total; // smaller if the body is compressed
    const isPossible = promised !== undefined && promised >= received;
    const total = record?.size ?? (isPossible ? promised : undefined);
    return { loaded, received, total, ...(this.#isWaiting && { isWaiting: true }) };
  }

  /** @param {Heard} heard */
  hear(heard) {
    this.#heard = heard;
    this.hearSign();
    this.news.notify();
  }

  /** Records a sign of life from the leading tab. */
  hearSign() {
    this.#signMs = performance.now();
  }

  get isLeading() {
    return this.#download !== undefined;
  }

  get hasFailed() {
    return this.failure !== undefined;
  }

  /** The known hash from the file's record or from the hub. */
  get sha256() {
    return this.#given?.sha256 ?? this.#options.known.sha256 ?? undefined;
  }

  /**
   * The version whose bytes were returned.
   * @returns {import('../bytes/http_source.js').KnownVersion}
   */
  get version() {
    const { size, sha256 } = this.#given ?? this.#options.known;
    const tag = this.#given?.tag ?? null;
    // mirrors use different tags for the same content, so a known SHA-256 takes precedence
    return { validator: sha256 == null ? tag : null, size: size ?? null };
  }

  /**
   * @param {number} position
   * @returns {Promise<Sha256 | undefined>} the hash of the bytes before it, if all of them are
   * still available
   */
  async hashBefore(position) {
    const record = this.#given;
    const sha = new Sha256();
    while (sha.size < position) {
      const index = sha.size / CHUNK_BYTES;
      const size = Math.min(CHUNK_BYTES, position - sha.size);
      const stored =
        record?.sums[index] && this.#backend.readChunk(this.#id, index, chunkSize(record, index));
      const bytes =
        (stored && (await stored.catch(() => undefined))) || this.#failed?.bytesAt(sha.size);
      if (!bytes || bytes.byteLength < size) return undefined;
      sha.update(bytes.subarray(0, size));
    }
    return sha;
  }

  async refresh() {
    if (this.#download) return;
    this.record = (await this.#backend.readRecord(this.#id)) ?? this.record;
  }

  /**
   * @param {() => boolean} isLeft whether no caller is waiting any more
   * @returns {Promise<void>} settles when the model is complete
   */
  async complete(isLeft) {
    while (!this.isWhole && !isLeft()) await this.advance();
  }

  /**
   * @param {number} position
   * @param {() => boolean} isLeft
   * @returns {Promise<Uint8Array<ArrayBuffer> | null>} some bytes from that offset; null at the end of the
   * file
   */
  async bytesAt(position, isLeft) {
    while (!isLeft()) {
      const { record } = this;
      this.#checkStamp(record);
      if (record?.size != null && position >= record.size && this.#mayRead()) return null;
      const arriving = this.#download?.bytesAt(position);
      if (arriving) return this.#give(arriving, 0);
      const index = Math.floor(position / CHUNK_BYTES);
      const bytes = record && this.#isReadable(record, index) && (await this.#read(record, index));
      if (bytes) return this.#give(bytes, position - index * CHUNK_BYTES);
      if (this.#download) this.#download.wanted = index;
      await this.advance();
    }
    throw new WickError('CLOSED', 'model: reading stopped');
  }

  /** @param {Uint8Array<ArrayBuffer>} bytes @param {number} offset */
  #give(bytes, offset) {
    this.#given = this.record ?? this.#given;
    this.#stamp ??= this.record?.stamp;
    return bytes.slice(offset, offset + PIECE_BYTES);
  }

  /**
   * Throws if the file has changed, so that bytes of two versions are never mixed.
   * @param {ModelRecord | undefined} record
   */
  #checkStamp(record) {
    if (!record || this.#stamp === undefined || record.stamp === this.#stamp) return;
    throw new WickError('CHANGED', `${record.name} was changed while it was being downloaded`);
  }

  /**
   * Returns whether stored chunks may be read. They may belong to a version that the server no longer has;
   * the leading tab knows once the server has responded.
   */
  #mayRead() {
    return this.isWhole || !this.#download || this.#download.isConfirmed;
  }

  /** @param {ModelRecord} record @param {number} index */
  #isReadable(record, index) {
    if (!record.sums[index] || this.#lost.has(index)) return false;
    if (record.fingerprint !== null) return true;
    if (!this.#download?.isConfirmed) return this.#isFollowing;
    return record.sha256 === null || record.size === null || index < chunkCount(record.size) - 1;
  }

  /** @param {ModelRecord} record @param {number} index */
  async #read(record, index) {
    if (this.#chunk?.index !== index) {
      const size = chunkSize(record, index);
      const bytes = await this.#backend.readChunk(this.#id, index, size);
      if (bytes) this.#chunk = { index, bytes };
      else this.#lost.add(index);
    }
    return this.#chunk?.index === index ? this.#chunk.bytes : undefined;
  }

  // ---- the downloading tab ----

  /** Ensures that some tab is downloading, and waits for a change. */
  async advance() {
    if (this.failure !== undefined) throw this.failure;
    if (this.#download) {
      await this.news.next();
    } else {
      this.#leading ??= this.#lead().finally(() => {
        this.#leading = undefined;
      });
      await this.#leading;
    }
    if (this.failure !== undefined) throw this.failure;
  }

  async #lead() {
    const unlock = await this.#backend.tryLock(this.#id, { steal: this.#isAbandoned() });
    if (!unlock && !this.#isFollowing) this.hearSign();
    this.#isFollowing = !unlock;
    if (!unlock) return this.#follow();
    this.#isWaiting = false;
    try {
      this.record = await this.#prepare();
    } catch (error) {
      await unlock();
      throw error;
    }
    if (this.isWhole) await unlock();
    else this.#ended = this.#start(this.record, unlock);
  }

  /**
   * Returns whether the leading tab has shown no sign of life for too long. A tab that was frozen itself
   * restarts its count.
   */
  #isAbandoned() {
    const now = performance.now();
    if (now - this.#lookMs > REPORT_MS) this.hearSign();
    this.#lookMs = now;
    return this.#isFollowing && now - this.#signMs > TAKE_OVER_MS;
  }

  async #follow() {
    const before = this.record;
    const silentMs = performance.now() - this.#signMs;
    if (silentMs > REPORT_MS / 3) this.#options.onAsk?.();
    if (silentMs > REPORT_MS && !this.#isWaiting) {
      this.#isWaiting = true;
      this.#options.onWaiting?.();
      this.news.notify();
    }
    await this.news.next(LOOK_MS);
    await this.refresh();
    const isMore = this.record && (!before || storedBytes(this.record) > storedBytes(before));
    if (isMore || (await this.#backend.isAlive?.(this.#id))) this.hearSign();
    if (performance.now() - this.#signMs < REPORT_MS) this.#isWaiting = false;
  }

  /** @returns {Promise<ModelRecord>} the record to complete while holding the lock */
  async #prepare() {
    const { known } = this.#options;
    let record = await this.#backend.readRecord(this.#id);
    const isOther =
      known.sha256 != null && record?.sha256 != null && record.sha256 !== known.sha256;
    if (!record || isOther) {
      await this.#backend.remove(this.#id);
      record = newRecord(this.#id, known);
    }
    if (record.fingerprint === null) record.sha256 ??= known.sha256 ?? null;
    record.urls = [...new Set([...record.urls, ...(known.urls ?? [])])];
    if (this.#lost.size > 0) {
      for (const index of this.#lost) record.sums[index] = null;
      Object.assign(record, { fingerprint: null, hash: null });
      await this.#backend.writeRecord(record);
      this.#lost.clear();
    }
    return record;
  }

  /** @param {ModelRecord} record @param {import('./backends.js').Unlock} unlock */
  async #start(record, unlock) {
    const isNew = record.sums.length === 0;
    const stop = onAbort(unlock.lost, () => this.#download?.stop());
    try {
      await this.#run(record, unlock);
      this.#options.onWhole(record);
    } catch (error) {
      if (unlock.isHeld && !(await unlock.isHeld())) {
        this.record = undefined; // this tab was frozen and now follows the tab that has replaced it
        return;
      }
      const isChanged = error instanceof WickError && error.code === 'CHANGED';
      const wasRead = this.#download?.isConfirmed;
      if (isChanged) await this.#backend.remove(this.#id);
      if (!isChanged || wasRead) this.failure = error;
      else if (isNew) this.failure = otherSize(record);
      this.record = undefined;
      this.#failed = this.#download;
    } finally {
      stop();
      this.#download = undefined;
      await unlock();
      this.news.notify();
    }
  }

  /** @param {ModelRecord} record @param {import('./backends.js').Unlock} unlock */
  async #run(record, { isHeld }) {
    const { connect, makeRoom, onStored, onArrived } = this.#options;
    const download = new Download(this.#backend, record, {
      ...connect(),
      makeRoom,
      checkLease: async () => {
        if (isHeld && !(await isHeld()))
          throw new WickError('BUSY', 'download: another tab has taken over');
      },
      onStored: (stored) => {
        this.news.notify();
        onStored(stored);
      },
      onNews: () => {
        this.news.notify();
        onArrived();
      },
    });
    this.#download = download;
    this.#heard = undefined; // another tab's download has ended
    if (this.failure !== undefined) download.stop();
    await download.run();
  }

  /** Ends reading and downloading. Stored chunks are kept. */
  async stop() {
    this.failure ??= new WickError('CLOSED', 'model: reading stopped');
    await this.#leading?.catch(() => {});
    this.#download?.stop();
    this.news.notify();
    await this.#ended;
    this.#chunk = undefined;
    this.#failed = undefined;
  }
}
