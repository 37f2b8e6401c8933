// js/edge/create_edge_engine.js — an engine in the calling thread, for hosts with one thread and for isolates that are
// shared by many requests.

import { unlessAborted } from '../base/abort_signals.js';
import { argumentError, throwIfAborted, WickError } from '../base/errors.js';
import { pause } from '../base/take_turn.js';
import { ProgressMeter } from '../bytes/download_progress.js';
import { Engine } from '../page/engine.js';
import { infoOf } from '../page/engine_reports.js';
import { shown } from '../page/option_checks.js';
import { NativeEngine } from '../wasm/native_engine.js';
import { loadModel } from '../worker/load_model.js';
import { HeldFile, loadMedia, mediaHost } from '../worker/media_desk.js';
import { EdgeConnection } from './edge_connection.js';
import {
  checkEdgeOptions,
  edgeConfigOf,
  edgeSourceOf,
  heldBytesOf,
  mmprojSourceOf,
} from './edge_options.js';
import { inWords } from './memory_plan.js';

/** @import { EdgeModel, EdgeOptions } from '../edge.js' */

const LOOK_MS = 5;
/** If a loader makes no progress for 3 s, its request was terminated or its source has stalled. */
const SILENT_LOOKS_MAX = 3000 / LOOK_MS;

/** A model that is being loaded. The loader is the call that reads its bytes. */
class Loading {
  /** The number of calls that have taken over the load. */
  loaders = 0;
  /** The number of pieces that have arrived. */
  pieces = 0;
  /** Whether the loader's caller has aborted. */
  isLeft = false;

  /** @param {NativeEngine} native @param {HeldFile} mmproj the received part of the mmproj file */
  constructor(native, mmproj) {
    this.native = native;
    this.mmproj = mmproj;
  }

  /**
   * @param {EdgeOptions} options
   * @returns {Promise<boolean>} whether the model is complete; false if another call has taken over
   */
  async load(options) {
    const { native, mmproj } = this;
    const own = ++this.loaders;
    this.isLeft = false;
    const { onProgress, signal } = options;
    const meter = new ProgressMeter((progress) => onProgress?.(progress));
    /** @param {import('../connection/messages.js').Progress['phase']} [phase] */
    const report = (phase) => {
      const { bytesPlaced, bytesWanted, isDirectoryReady } = native.loadState();
      const total = isDirectoryReady ? bytesWanted + mmproj.total : undefined;
      meter.update(bytesPlaced + mmproj.size, total, phase);
    };
    const onBytes = () => {
      throwIfAborted(signal);
      this.pieces++;
      report();
    };
    try {
      const onRetry = () => report('retrying');
      const host = { onBytes, isClosed: () => own !== this.loaders };
      const read = async () => {
        const source = await edgeSourceOf(options, onRetry);
        const encoders = await mmprojSourceOf(options, onRetry);
        await loadModel(native, source, host);
        if (!encoders || host.isClosed()) return;
        const directoryOnly = options.directoryOnly === true;
        await loadMedia(native, encoders, mmproj, { ...host, directoryOnly });
      };
      // a stalled source must not delay a caller that aborts
      await unlessAborted(read(), signal, () => {});
    } catch (error) {
      if (own === this.loaders) throw error;
    }
    if (own === this.loaders) report('ready');
    return own === this.loaders;
  }
}

/** One engine for all requests of an isolate. */
class Opener {
  #options;
  /** @type {{engine: Engine, connection: EdgeConnection} | undefined} */
  #opened;
  /** @type {Loading | undefined} */
  #loading;
  #isCreating = false;

  /** @param {Omit<EdgeOptions, keyof EdgeModel>} options */
  constructor(options) {
    this.#options = options;
  }

  /**
   * Waits until the model is loaded. Every request waits with its own timer. If the loading request makes no
   * progress, for example because its client has disconnected and the host has terminated it, another one resumes the
   * load.
   * @param {EdgeModel} model
   * @returns {Promise<Engine>}
   */
  async open(model) {
    if (typeof model !== 'object' || model === null) {
      throw argumentError(`model must be an options object, not ${shown(model)}`);
    }
    const options = { ...this.#options, ...model };
    checkEdgeOptions(options);
    let [pieces, looks] = [-2, 0];
    for (;;) {
      throwIfAborted(model.signal);
      if (this.#isOpen) return /** @type {{engine: Engine}} */ (this.#opened).engine;
      const loading = this.#loading;
      const found = loading?.pieces ?? -1;
      looks = found === pieces ? looks + 1 : 0;
      pieces = found;
      const isFree = loading ? loading.isLeft : !this.#isCreating;
      if (isFree || looks > SILENT_LOOKS_MAX) {
        looks = 0;
        await this.#load(options);
      } else {
        await pause(LOOK_MS);
      }
    }
  }

  get #isOpen() {
    return this.#opened !== undefined && !this.#opened.connection.isEnded;
  }

  /** @param {EdgeOptions} options */
  async #load(options) {
    const loading = this.#loading ?? (await this.#create(options));
    if (!loading) return;
    try {
      if (await loading.load(options)) this.#take(loading.native, options);
    } catch (error) {
      if (options.signal?.aborted) {
        loading.isLeft = true;
        throw error;
      }
      // the engine keeps its loading error, so the next call starts over
      this.#loading = undefined;
      loading.native.destroy();
      throw inWords(trapOf(error), options.isolateBytes, heldBytesOf(options));
    }
  }

  /**
   * @param {EdgeOptions} options
   * @returns {Promise<Loading | undefined>} undefined if another call started a load first
   */
  async #create(options) {
    this.#isCreating = true;
    const mmproj = new HeldFile();
    let native;
    try {
      const onLog = (/** @type {string} */ text) => console.debug(text);
      native = await NativeEngine.create(options.wasm, edgeConfigOf(options), {
        onLog,
        grammar: options.grammarWasm,
        extras: options.extrasWasm,
        media: options.mediaWasm,
        host: (heap) => mediaHost(mmproj, heap),
      });
    } catch (error) {
      throw inWords(foreignOf(error), options.isolateBytes, heldBytesOf(options));
    } finally {
      this.#isCreating = false;
    }
    if (this.#loading || this.#isOpen) {
      native.destroy();
      return undefined;
    }
    this.#loading = new Loading(native, mmproj);
    return this.#loading;
  }

  /** @param {NativeEngine} native with a model @param {EdgeOptions} options */
  #take(native, { queueLimit, chatTemplate, decodeImage }) {
    const connection = new EdgeConnection(native, {
      queueLimit: queueLimit ?? undefined,
      chatTemplate: chatTemplate ?? undefined,
    });
    connection.decoders = { decodeImage };
    const info = infoOf({ ...native.info(), ...native.counters() });
    this.#opened = { connection, engine: new Engine(/** @type {any} */ (connection), info) };
    this.#loading = undefined;
  }
}

/** Detects a module with unknown imports. @param {unknown} error */
function foreignOf(error) {
  if (!(error instanceof WebAssembly.LinkError)) return error;
  return new WickError(
    'WASM',
    `wasm is from a different version of the engine: ${error.message}`,
    error,
  );
}

/** @param {unknown} error */
function trapOf(error) {
  if (!(error instanceof WebAssembly.RuntimeError)) return error;
  return new WickError('WORKER_CRASHED', `The engine crashed: ${error}`, error);
}

/**
 * @param {EdgeOptions} options
 * @returns {Promise<Engine>}
 */
export async function createEngine(options) {
  checkEdgeOptions(options);
  return new Opener(options).open(options);
}

/**
 * @param {Omit<EdgeOptions, keyof EdgeModel>} options
 * @returns {(model: EdgeModel) => Promise<Engine>}
 */
export function openOnce(options) {
  checkEdgeOptions(options);
  const opener = new Opener(options);
  return (model) => opener.open(model);
}
