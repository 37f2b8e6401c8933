// js/models/stored_source.js — an engine's source if its model is in the store. A complete model is
// read by the worker. A model that is still being downloaded is read here, as its bytes arrive.

import { WickError } from '../base/errors.js';
import { readNext } from '../bytes/checked_read.js';
import { HttpSource } from '../bytes/http_source.js';
import { fileIsMissing } from '../bytes/split_files.js';
import { canonicalName, mmprojName, parseHubName, resolveHubModel } from './hub.js';
import { openModels } from './open_store.js';

/** @import { KnownVersion } from '../bytes/http_source.js' */
/** @import { ByteStream, Source, SourceDescription } from '../bytes/model_sources.js' */
/** @import { OpenModel } from './model_lease.js' */
/** @import { ModelStore, Wanted } from './model_store.js' */
/** @import { Sha256 } from './sha256.js' */

/**
 * @typedef {object} OwnOptions
 * @property {string[]} [urls]
 * @property {string} [model] the name of a model, in place of URLs
 * @property {'mmproj'} [part] the mmproj file next to `model`
 * @property {boolean | 'only'} cache 'only': no request is sent
 * @property {() => void} [onWaiting] is called if another tab is downloading the model but does not
 * respond
 * @typedef {OwnOptions & Omit<import('../bytes/http_source.js').HttpOptions, 'urls' | 'known'> &
 *   Pick<import('../models.js').GetOptions, 'hub' | 'signal'>} KeptOptions
 */

/**
 * Returns whether an error is one of the store, which does not prevent a model from being loaded.
 * @param {unknown} error
 */
const isOfStore = (error) =>
  error instanceof WickError && ['STORAGE_FULL', 'NO_STORAGE', 'IO'].includes(error.code);

/** The store that all engines of a page share. @type {Promise<ModelStore> | undefined} */
let shared;

/**
 * @param {KeptOptions} options
 * @returns {Promise<{description: SourceDescription, source: Source | undefined,
 *   invalidate?: (code: string, canRemove: boolean) => Promise<void>}>} `invalidate` is called for a file that the engine
 *   has rejected
 */
export async function openKept({ part, ...options }) {
  const name = part && parseHubName(options.model);
  if (name) options.model = canonicalName(mmprojName(name));
  const isOnly = options.cache === 'only';
  const store = options.cache === false ? undefined : await openShared(options);
  const files = await filesOf(store, options);
  if (!store) return plainSource(files, options);
  const described = await store.describe(files);
  const areWhole = () => store.areWhole(files.map(({ id, url }) => id ?? url));
  const invalidate = async (/** @type {string} */ code, /** @type {boolean} */ canRemove) => {
    // a file that ended early may still have a correct beginning
    if (code !== 'TRUNCATED' || (await areWhole())) await store.invalidate(files, { canRemove });
  };
  if (described) return { description: described, source: undefined, invalidate };
  if (isOnly) {
    for (const { id, url } of files) {
      if (await store.has(id ?? url)) continue; // an imported file has no URL
      throw new WickError('NOT_FOUND', `${url} is not stored, and cache: 'only' sends no request`);
    }
  }
  const description = /** @type {const} */ ({
    kind: 'page',
    files: files.length,
    canSeek: true,
    isRemote: !isOnly,
  });
  return { description, source: new KeptSource(store, files, options), invalidate };
}

/**
 * @param {KeptOptions} options
 * @returns {Promise<ModelStore | undefined>} undefined if a named model is loaded without the store
 */
async function openShared({ cache, model }) {
  try {
    shared ??= openModels();
    return await shared;
  } catch (error) {
    shared = undefined;
    if (cache === 'only' || model === undefined) throw error;
    console.warn(`wick-llm: the model is not cached: ${error}`);
    return undefined;
  }
}

/** @param {ModelStore | undefined} store @param {KeptOptions} options @returns {Promise<Wanted[]>} */
async function filesOf(store, options) {
  const { model, urls = [], cache, hub, fetch, signal } = options;
  if (model === undefined) return urls.map((url) => ({ url }));
  if (store) return store.locate(model, { ...options, isOnly: cache === 'only' });
  const name = parseHubName(model);
  if (name) return resolveHubModel(name, { ...hub, fetch, signal });
  throw new WickError(
    'NOT_FOUND',
    `${model} is not a valid hub name (example: hf:owner/repo/file.gguf)`,
  );
}

/**
 * Returns a source that bypasses the store. @param {Wanted[]} files
 * @param {KeptOptions} options
 * @returns {{description: SourceDescription, source: Source | undefined}}
 */
function plainSource(files, options) {
  const { retries, stallMs, fetch } = options;
  const how = { ...plainOf(files, options), retries, stallMs };
  if (!fetch) return { description: { kind: 'url', ...how }, source: undefined };
  const source = new HttpSource({ ...how, fetch });
  return { description: { kind: 'page', files: files.length, canSeek: true }, source };
}

/** @param {Wanted[]} files @param {KeptOptions} options */
const plainOf = (files, { headers }) => ({
  urls: files.map(({ url }) => url),
  headers: { ...files[0].headers, ...headers },
});

export class KeptSource {
  canSeek = true;
  #store;
  #files;
  #options;
  /** The open models by file number. @type {Map<number, OpenModel>} */
  #models = new Map();
  /** Sources that bypass the store. @type {Set<HttpSource>} */
  #plain = new Set();
  #isClosed = false;
  #hasWarned = false;

  /** @param {ModelStore} store @param {Wanted[]} files @param {KeptOptions} options */
  constructor(store, files, options) {
    this.files = files.length;
    this.#files = files;
    this.#store = store;
    this.#options = options;
  }

  /** @param {number} file @param {number} offset @returns {Promise<ByteStream>} */
  async open(file, offset) {
    if (file >= this.files) throw fileIsMissing(file, this.files);
    let model = this.#models.get(file);
    if (!model) {
      model = await this.#store.takeKept(this.#files[file], this.#options);
      this.#models.set(file, model);
      this.#watch(model).catch(() => {}); // errors only cause a warning
      if (this.#isClosed) this.close();
    }
    const stream = new KeptStream(model, offset, {
      isClosed: () => this.#isClosed,
      openPlain: (error, position, known) => this.openPlain(error, file, position, known),
    });
    await stream.start();
    return stream;
  }

  /**
   * Warns if storing the last chunk fails after its bytes were returned.
   * @param {OpenModel} model
   */
  async #watch(model) {
    while (!this.#isClosed && !model.isWhole && !model.hasFailed) await model.news.next();
    if (!this.#isClosed && isOfStore(model.failure)) this.#warn(model.failure);
  }

  /** @param {unknown} error of the store */
  #warn(error) {
    if (!this.#hasWarned) console.warn(`wick-llm: the model is not cached: ${error}`);
    this.#hasWarned = true;
  }

  /**
   * Continues without the store.
   * @param {unknown} error
   * @param {number} file
   * @param {number} offset
   * @param {KnownVersion} known the version whose bytes were returned
   */
  async openPlain(error, file, offset, known) {
    const isServers = error instanceof WickError && !isOfStore(error);
    if (isServers || this.#options.cache === 'only' || this.#isClosed) throw error;
    this.#warn(error);
    const plain = new HttpSource({
      ...this.#options,
      ...plainOf(this.#files, this.#options),
      known,
    });
    this.#plain.add(plain);
    return plain.open(file, offset);
  }

  /** Called when the engine has ended. */
  close() {
    this.#isClosed = true;
    for (const plain of this.#plain) plain.close();
    for (const model of this.#models.values()) {
      this.#store.release(model).catch(() => {}); // stored chunks are kept
    }
    this.#models.clear();
  }
}

class KeptStream {
  /** @type {number | undefined} */
  size;
  #model;
  #source;
  /** The stream that replaces the store after a failure. @type {ByteStream | undefined} */
  #plain;
  /** The hash of all bytes before `position`, if they bypass the store. @type {Sha256 | undefined} */
  #sha;
  #isCancelled = false;
  /** @type {Uint8Array | null | undefined} */
  #first;
  /** The bytes that were returned last. @type {Uint8Array | undefined} */
  #last;

  /**
   * @param {OpenModel} model
   * @param {number} position
   * @param {{isClosed: () => boolean, openPlain: (error: unknown, position: number, known: KnownVersion) =>
   *   Promise<ByteStream>}} source
   */
  constructor(model, position, source) {
    this.#model = model;
    this.position = position;
    this.#source = source;
  }

  /** Reads the first bytes, so that their errors are reported when the source is opened. */
  async start() {
    try {
      this.#first = await this.#take();
      this.size = this.#model.record?.size ?? undefined;
    } catch (error) {
      await this.#leaveStore(error);
    }
  }

  #take() {
    return this.#model.bytesAt(this.position, () => this.#isCancelled || this.#source.isClosed());
  }

  async read() {
    if (this.#plain) return this.#readPlain(this.#plain);
    try {
      const bytes = this.#first === undefined ? await this.#take() : this.#first;
      this.#first = undefined;
      this.#last = bytes ?? undefined;
      this.position += bytes?.byteLength ?? 0;
      return bytes;
    } catch (error) {
      if (this.#isCancelled) throw error;
      return this.#readPlain(await this.#leaveStore(error));
    }
  }

  /**
   * Reads the rest of the same version from the server, starting at this position.
   * @param {unknown} error
   */
  async #leaveStore(error) {
    const { version } = this.#model;
    const tail = async () => this.#last;
    this.#plain = await this.#source.openPlain(error, this.position, { ...version, tail });
    this.size = this.#plain.size;
    if (this.#model.sha256) this.#sha = await this.#model.hashBefore(this.position);
    return this.#plain;
  }

  /** @param {ByteStream} plain */
  async #readPlain(plain) {
    const bytes = await readNext(plain);
    this.position = plain.position;
    if (bytes) this.#sha?.update(bytes);
    const isEnd = bytes === null || plain.position === (plain.size ?? this.#model.version.size);
    if (isEnd) this.#checkSum();
    return bytes;
  }

  /**
   * Checks the hash before the last bytes are returned: they are withheld if the file differs from
   * the recorded one.
   */
  #checkSum() {
    const found = this.#sha?.hex();
    this.#sha = undefined;
    const { sha256 } = this.#model;
    if (found === undefined || found === sha256) return;
    throw new WickError('CORRUPT', `file: has SHA-256 ${found}, expected ${sha256}`);
  }

  cancel() {
    this.#isCancelled = true;
    this.#plain?.cancel();
    this.#model.news.notify();
  }
}
