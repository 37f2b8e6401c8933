// js/models/open_store.js — opens the store of this origin, or of a folder.

import { chooseBackend } from './backends.js';
import { ModelStore } from './model_store.js';
import { storeOptionsOf } from './store_options.js';

/**
 * @param {import('../models.js').StoreOptions} [options]
 * @returns {Promise<ModelStore>}
 */
export async function openModels(options = {}) {
  const { folder, evict } = storeOptionsOf(options);
  const backend = chooseBackend(folder);
  await backend.open?.();
  return new ModelStore(backend, { evict });
}
