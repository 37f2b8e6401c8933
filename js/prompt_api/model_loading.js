// js/prompt_api/model_loading.js — one engine for all sessions of a page. It is loaded for the
// first session, and progress is reported to all callers that wait for it.

import { createEngine } from '../index.js';

/** @import { Engine } from '../index.js' */
/** @import { ModelSource as Source } from '../prompt-api.js' */

/** Progress is reported in these steps, so that it reveals nothing exact about the model (Writing Assistance APIs). */
export const STEPS = 65536;

export const ProgressEvent =
  globalThis.ProgressEvent ??
  class extends Event {
    lengthComputable = true;
    /** @param {string} type @param {{loaded: number, total: number}} numbers */
    constructor(type, { loaded, total }) {
      super(type);
      this.loaded = loaded;
      this.total = total;
    }
  };

/** The argument of create's `monitor`. */
export class CreateMonitor extends EventTarget {
  /** @type {((event: Event) => void) | null} */
  ondownloadprogress = null;
  #last = -1;

  /** @param {number} share from 0 to 1; events never go backwards or repeat */
  tell(share) {
    const loaded = Math.floor(Math.min(share, 1) * STEPS) / STEPS;
    if (loaded <= this.#last) return;
    this.#last = loaded;
    const event = new ProgressEvent('downloadprogress', {
      loaded,
      total: 1,
      lengthComputable: true,
    });
    this.dispatchEvent(event);
    this.ondownloadprogress?.(event);
  }
}

export class ModelLoading {
  #source;
  /** @type {Promise<Engine> | undefined} */
  #engine;
  /** @type {'downloadable' | 'downloading' | 'available'} */
  state = 'downloadable';
  /** @type {Set<(share: number) => void>} */
  #listeners = new Set();

  /** @param {Source} source */
  constructor(source) {
    if (source === null || !['object', 'function'].includes(typeof source)) {
      throw new TypeError(
        'A language model needs an engine, options of createEngine, or a function',
      );
    }
    this.#source = source;
    if ('createSession' in source) this.state = 'available';
  }

  /**
   * Returns whether the model may support these types. For a function, this is known once it has created
   * the engine.
   * @param {string[]} media
   */
  async reads(media) {
    if (media.length === 0) return true;
    const source = this.#source;
    const engine = 'createSession' in source ? source : await this.#made;
    if (!engine) return typeof source === 'function' || Boolean(/** @type {any} */ (source).mmproj);
    const info = await engine.info();
    return media.every((type) => info.media.some((one) => one === type));
  }

  /** The engine, once it is loaded. */
  get #made() {
    return this.state === 'available' ? this.#engine : undefined;
  }

  /** @param {string[]} [media] @returns {Promise<'unavailable' | 'downloadable' | 'downloading' | 'available'>} */
  async availability(media = []) {
    if (!(await this.reads(media))) return 'unavailable';
    const isThere = this.state === 'downloadable' && (await isKept(this.#source));
    return isThere ? 'available' : this.state;
  }

  /** @param {(share: number) => void} onShare @returns {Promise<Engine>} */
  async engine(onShare) {
    this.#listeners.add(onShare);
    try {
      this.#engine ??= this.#load();
      return await this.#engine;
    } finally {
      this.#listeners.delete(onShare);
    }
  }

  async #load() {
    const source = this.#source;
    if ('createSession' in source) return source;
    const onProgress = (/** @type {import('../index.js').Progress} */ { loaded, total }) => {
      // the end is reported once the engine is ready
      const share = total ? Math.min(loaded / total, 1 - 1 / STEPS) : 0;
      for (const tell of this.#listeners) tell(share);
    };
    this.state = 'downloading';
    try {
      const made =
        typeof source === 'function'
          ? await source({ onProgress })
          : await createEngine({ ...source, onProgress });
      this.state = 'available';
      return made;
    } catch (error) {
      this.state = 'downloadable';
      this.#engine = undefined;
      throw error;
    }
  }
}

/** The repository of a name on a hub, with its revision. */
const REPOSITORY = /^(?:hf:)?([\w.-]+\/[\w.-]+?(?:@[\w.-]+)?)(?:[/:].+)?$/i;

/** @param {any} model @param {any} mmproj @returns {string[]} its name in the store, if it has one */
function mmprojNames(model, mmproj) {
  const repository = mmproj === true ? REPOSITORY.exec(String(model))?.[1] : undefined;
  if (repository) return [`hf:${repository}:MMPROJ`];
  return typeof mmproj === 'string' || mmproj instanceof URL ? [String(mmproj)] : [];
}

/**
 * @param {any} source
 * @returns {Promise<boolean>} whether its model is available without a download
 */
async function isKept({ url, model, mmproj, cache, fetch, file, blob, bytes }) {
  if (file ?? blob ?? bytes) return true;
  const names = [model ?? url ?? [], mmprojNames(model, mmproj)].flat();
  // as in createEngine
  const isUsed = cache ?? (model !== undefined || (globalThis.document !== undefined && !fetch));
  if (!isUsed || names.length === 0) return false;
  try {
    const { openModels } = await import('../models.js');
    const models = await openModels();
    const found = await Promise.all(names.map((name) => models.has(name)));
    await models.close();
    return found.every(Boolean);
  } catch {
    return false; // models are not stored on this host
  }
}
