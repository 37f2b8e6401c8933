// examples/chat/attaching.js — text files that are dropped on the page, or chosen: they are put into the message, where they
// are seen, counted, kept as a draft and sent with the question.

import { asBlock, textOf } from './blocks.js';
import { byId } from './dom.js';
import { setPrompt } from './drafts.js';
import { showNotice } from './notice.js';

const field = /** @type {HTMLTextAreaElement} */ (byId('prompt'));

/** @param {File} file @returns {Promise<boolean>} */
export async function isModel(file) {
  if (/\.gguf$/i.test(file.name)) return true;
  const start = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  return String.fromCharCode(...start) === 'GGUF';
}

/** @param {File[]} files */
export async function attach(files) {
  const before = field.value;
  /** @type {string[]} */
  const refused = [];
  const blocks = [];
  for (const file of files) {
    const text = await textOf(file);
    if (text === undefined) refused.push(file.name);
    else blocks.push(asBlock(file.name, text));
  }
  if (refused.length > 0)
    showNotice(`${refused.join(', ')}: neither a model nor a text of at most 1 MB.`);
  if (blocks.length === 0) return;
  setPrompt(`${before.trimEnd()}\n\n${blocks.join('\n\n')}`);
  field.dispatchEvent(new Event('input'));
  field.focus();
  field.setSelectionRange(before.trimEnd().length, before.trimEnd().length);
  field.scrollTop = 0;
}
