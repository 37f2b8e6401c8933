// js/models/kept_source.js — the source of an engine whose model is kept. A whole model is read by the worker itself; one
// that is on its way is read here, as its bytes come.

import { WickError } from '../base/errors.js';
import { HttpSource } from '../bytes/http_source.js';
import { fileIsMissing } from '../bytes/split_files.js';
import { openModels } from './open_models.js';

/** @typedef {import('../bytes/model_sources.js').ByteStream} ByteStream */
/** @typedef {import('../bytes/model_sources.js').SourceDescription} SourceDescription */
/** @typedef {import('./model_store.js').ModelStore} ModelStore */
/** @typedef {import('./open_model.js').OpenModel} OpenModel */
/** @typedef {import('./model_store.js').Wanted} Wanted */

/**
 * @typedef {object} KeptOptions
 * @property {string[]} [urls]
 * @property {string} [model] the name of a model, in place of addresses
 * @property {import('../models.js').HubOptions} [hub]
 * @property {Record<string, string>} headers
 * @property {number} retries
 * @property {number} stallMs
 * @property {typeof globalThis.fetch} [fetch]
 * @property {boolean} isOnly no server is asked
 * @property {() => void} onRetry
 */

/** Errors of the store, which keep no model from being loaded. */
const storeCodes = ['STORAGE_FULL', 'NO_STORAGE', 'IO'];

/** One for all engines of a page. @type {Promise<ModelStore> | undefined} */
let shared;

/**
 * @param {KeptOptions} options
 * @returns {Promise<{description: SourceDescription, source: KeptSource | undefined}>}
 */
export async function openKept(options) {
  shared ??= openModels();
  const store = await shared.catch((error) => {
    shared = undefined;
    throw error;
  });
  const { isOnly } = options;
  const files = await filesOf(store, options);
  const described = await store.describe(files);
  if (described) return { description: described, source: undefined };
  if (isOnly) {
    for (const { url } of files) {
      if (await store.has(url)) continue;
      throw new WickError('NOT_FOUND', `${url} is not kept, and cache: 'only' asks no server`);
    }
  }
  const description = /** @type {const} */ ({
    kind: 'page',
    files: files.length,
    canSeek: true,
    isRemote: !isOnly,
  });
  return { description, source: new KeptSource(store, files, options) };
}

/** @param {ModelStore} store @param {KeptOptions} options @returns {Promise<Wanted[]>} */
async function filesOf(store, options) {
  const { model, urls = [] } = options;
  return model === undefined ? urls.map((url) => ({ url })) : store.locate(model, options);
}

export class KeptSource {
  canSeek = true;
  #store;
  #files;
  #options;
  /** By the number of the file. @type {Map<number, OpenModel>} */
  #models = new Map();
  /** Without the store. @type {HttpSource | undefined} */
  #plain;
  #isClosed = false;

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
      if (this.#isClosed) this.close();
    }
    const stream = new KeptStream(model, offset, {
      isClosed: () => this.#isClosed,
      openPlain: (error, position) => this.openPlain(error, file, position),
    });
    try {
      await stream.start();
      return stream;
    } catch (error) {
      return await this.openPlain(error, file, offset);
    }
  }

  /** Goes on without keeping what comes. @param {unknown} error @param {number} file @param {number} offset */
  async openPlain(error, file, offset) {
    const isServers = error instanceof WickError && !storeCodes.includes(error.code);
    if (isServers || this.#options.isOnly || this.#isClosed) throw error;
    if (!this.#plain) console.warn(`wick-llm: the model is not kept: ${error}`);
    this.#plain ??= new HttpSource({
      ...this.#options,
      urls: this.#files.map(({ url }) => url),
      headers: { ...this.#files[0].headers, ...this.#options.headers },
    });
    return this.#plain.open(file, offset);
  }

  /** The engine has ended. */
  close() {
    this.#isClosed = true;
    this.#plain?.close();
    for (const model of this.#models.values()) {
      this.#store.release(model).catch(() => {}); // what is stored stays
    }
    this.#models.clear();
  }
}

class KeptStream {
  /** @type {number | undefined} */
  size;
  #model;
  #source;
  /** What goes on without the store. @type {ByteStream | undefined} */
  #plain;
  #isCancelled = false;
  /** @type {Uint8Array | null | undefined} */
  #first;

  /**
   * @param {OpenModel} model
   * @param {number} position
   * @param {{isClosed: () => boolean, openPlain: (error: unknown, position: number) => Promise<ByteStream>}} source
   */
  constructor(model, position, source) {
    this.#model = model;
    this.position = position;
    this.#source = source;
  }

  /** Errors of the first bytes are those of opening it. */
  async start() {
    this.#first = await this.#take();
    this.size = this.#model.record?.size ?? undefined;
  }

  #take() {
    return this.#model.bytesAt(this.position, () => this.#isCancelled || this.#source.isClosed());
  }

  async read() {
    if (this.#plain) return this.#readPlain(this.#plain);
    try {
      const bytes = this.#first === undefined ? await this.#take() : this.#first;
      this.#first = undefined;
      this.position += bytes?.byteLength ?? 0;
      return bytes;
    } catch (error) {
      if (this.#isCancelled) throw error;
      this.#plain = await this.#source.openPlain(error, this.position);
      return this.#readPlain(this.#plain);
    }
  }

  /** @param {ByteStream} plain */
  async #readPlain(plain) {
    const bytes = await plain.read();
    this.position = plain.position;
    return bytes;
  }

  cancel() {
    this.#isCancelled = true;
    this.#plain?.cancel();
    this.#model.news.tell();
  }
}
