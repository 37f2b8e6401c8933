// js/models/open_models.js — opens the store of this origin, or of a folder.

import { argumentError } from '../base/errors.js';
import { chooseBackend } from './backends.js';
import { ModelStore } from './model_store.js';

/**
 * @param {import('../models.js').StoreOptions} [options]
 * @returns {Promise<ModelStore>}
 */
export async function openModels(options = {}) {
  const { folder, evict } = options;
  if (folder !== undefined && typeof folder !== 'string')
    throw argumentError('folder must be a path');
  return new ModelStore(chooseBackend(folder), { evict: evict === true });
}
