// examples/chat/introductions.js — introduces menu items once per browser, the first time that they are useful.

import { keepValue, readValue } from './local_storage.js';
import { showNotice } from './notice.js';

const STORE = 'wick-introduced';

const texts = {
  ahead: 'This answer began while you were typing. A switch in the settings turns that off.',
  forget: 'Most of the context is used. “Forget” in the menu of a message makes room.',
  variants: '“3 variants” in the menu of an answer writes several answers side by side.',
};

/** The introductions shown on this page, if nothing can be stored. @type {Set<string>} */
const shown = new Set();

/** @param {keyof typeof texts} name */
export function introduce(name) {
  const stored = (readValue(STORE) ?? '').split(' ');
  if (shown.has(name) || stored.includes(name)) return;
  shown.add(name);
  showNotice(texts[name]);
  keepValue(STORE, [...stored, name].join(' ').trim());
}
