// js/page/adapters.js — engine.adapters: reads adapter files (LoRA) and passes them to the
// engine.

import { argumentError, throwIfAborted } from '../base/errors.js';
import { checkNames } from '../base/option_names.js';
import { loadSources } from './later.js';
import { downloadNames, sourceNames, sourceOf } from './model_options.js';
import { shown } from './option_checks.js';

/** @import { EngineConnection } from '../connection/engine_connection.js' */
/** @import { AdapterUse } from '../wasm/adapter_table.js' */

/** @param {unknown} name @returns {string} */
function checkName(name) {
  if (typeof name === 'string' && name !== '') return name;
  throw argumentError(`name must be a non-empty string, not ${shown(name)}`);
}

/** @param {unknown} uses of a request @returns {AdapterUse[] | undefined} */
export function adaptersOf(uses) {
  if (uses === undefined || uses === null) return undefined;
  if (!Array.isArray(uses)) {
    throw argumentError(`adapters must be an array of {name, scale}, not ${shown(uses)}`);
  }
  return uses.map((use) => {
    const { name, scale = 1 } = checkNames(Object(use), ['name', 'scale']);
    if (typeof scale === 'number' && Number.isFinite(scale))
      return { name: checkName(name), scale };
    throw argumentError(`adapter ${shown(name)}: scale must be a number, not ${shown(scale)}`);
  });
}

export class Adapters {
  #connection;

  /** @param {EngineConnection} connection */
  constructor(connection) {
    this.#connection = connection;
  }

  /** Settles when requests can select the adapter. @type {import('../index.js').Adapters['add']} */
  async add(from, options) {
    const { name, signal } = checkNames(Object(options), ['name', 'signal']);
    checkName(name);
    const given = checkNames(Object(from), [...sourceNames], [...downloadNames]);
    const { description, source } = sourceOf(given);
    const { createSource } = await loadSources();
    const opened = source
      ? await source()
      : createSource(
          /** @type {Exclude<typeof description, {kind: 'page' | 'chunks'}>} */ (description),
          () => {},
        );
    throwIfAborted(signal);
    await this.#connection.call('addAdapter', [name]); // not abortable, because an aborted call might leave the name registered
    try {
      throwIfAborted(signal);
      await this.#feed(name, opened, signal);
    } catch (error) {
      await this.#connection.call('removeAdapter', [name]).catch(() => {}); // it may already have been removed
      throw error;
    }
    const all = await this.list();
    return /** @type {import('../index.js').AdapterInfo} */ (all.find((one) => one.name === name));
  }

  /**
   * @param {string} name
   * @param {import('../bytes/model_sources.js').Source} source
   * @param {AbortSignal | null | undefined} signal
   */
  async #feed(name, source, signal) {
    const stream = await source.open(0, 0);
    try {
      for (;;) {
        const at = stream.position;
        const bytes = await stream.read();
        if (bytes === null) {
          await this.#connection.call('endAdapter', [name, at], signal);
          return;
        }
        await this.#connection.call('feedAdapter', [name, at, bytes], signal);
      }
    } finally {
      stream.cancel();
    }
  }

  /** @param {string} name of the adapter; the call rejects with BUSY while a request uses it */
  async remove(name) {
    await this.#connection.call('removeAdapter', [checkName(name)]);
  }

  /** @returns {Promise<import('../index.js').AdapterInfo[]>} */
  async list() {
    return this.#connection.call('listAdapters', []);
  }
}
