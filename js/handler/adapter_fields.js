// js/handler/adapter_fields.js — the `lora` field of llama.cpp's server: [{id, scale}], where the id is an index into
// the list of the engine's adapters.

import { fieldWords } from '../base/option_table.js';
import { isObject, must } from './fields.js';
import { invalidField } from './http_errors.js';

/** @param {any} use @returns {boolean} */
const isUse = (use) =>
  isObject(use) &&
  Number.isSafeInteger(use.id) &&
  use.id >= 0 &&
  Number.isFinite(use.scale ?? 1) &&
  Object.keys(use).every((name) => name === 'id' || name === 'scale');

export const lora = must((list) => Array.isArray(list) && list.every(isUse), fieldWords.lora);

/**
 * @param {import('../index.js').Engine} engine
 * @param {{id: number, scale?: number}[] | null | undefined} list
 * @param {import('../index.js').AdapterUse[] | undefined} [otherwise] the default if the field is
 * missing
 * @returns {Promise<import('../index.js').AdapterUse[] | undefined>} the adapters for the engine's request
 */
export async function adaptersOf(engine, list, otherwise) {
  if (!list) return otherwise;
  if (list.length === 0) return undefined;
  const loaded = await engine.adapters.list();
  return list.map(({ id, scale = 1 }, index) => {
    if (id < loaded.length) return { name: loaded[id].name, scale };
    throw invalidField(`lora[${index}].id`, `lora[${index}].id: adapter ${id} does not exist`);
  });
}
