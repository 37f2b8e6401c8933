// examples/chat/file_import.js — copies a file that the user has chosen into the store, in the background, so that it is kept
// after a reload.

import { formatBytes } from './dom.js';
import { keptModels } from './kept_models.js';
import { showNotice } from './notice.js';
import { settings } from './settings.js';

/** @import { Wish } from './requested_model.js' */

/** @param {Wish} wish for files @param {(kept: Wish) => void} onKept */
export async function takeInLater({ file: files = [], mmproj }, onKept) {
  if (!settings.remember) return;
  const [file] = files;
  const store = files.length === 1 ? await keptModels() : undefined;
  if (!store) {
    showNotice(`${file.name} is not saved: choose it again after a reload.`);
    return;
  }
  try {
    const { fingerprint } = await store.import(file, { name: file.name });
    const encoders =
      mmproj instanceof File ? await store.import(mmproj, { name: mmproj.name }) : undefined;
    if (fingerprint) onKept({ name: file.name, kept: fingerprint, mmproj: encoders?.fingerprint });
    showNotice(`${file.name} (${formatBytes(file.size)}) is saved in this browser.`);
  } catch (error) {
    const isFull = /** @type {{code?: string}} */ (error).code === 'STORAGE_FULL';
    const why = isFull ? 'storage has no room for it' : `it could not be saved (${error})`;
    showNotice(`${file.name} is loaded, but ${why}: choose it again after a reload.`);
  }
}
