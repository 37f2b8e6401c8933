// The places of fields in the records that JavaScript passes to a module.

import * as layout from '../../js/wasm/layout.js';

/** @template {string} List @typedef {import('../../js/wasm/heap.js').NamesOf<List>} NamesOf */

/** @template {string} List @param {List} list @returns {Record<NamesOf<List>, number>} the first word of each field */
function placesOf(list) {
  let next = 0;
  const places = list.split(' ').map((field) => {
    const [name, words = 1] = field.split(':');
    const at = next;
    next += Number(words);
    return [name, at];
  });
  return /** @type {any} */ (Object.fromEntries(places));
}

export const CHAT = placesOf(layout.CHAT);
export const CONFIG = placesOf(layout.CONFIG);
export const REQUEST = placesOf(layout.REQUEST);
export const SAMPLING = placesOf(layout.SAMPLING);
