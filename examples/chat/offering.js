// examples/chat/offering.js — after the page's own little model has said that it does not know, a larger one is offered
// once, with its size.

import { byId } from './dom.js';
import { knowsNothing } from './ignorance.js';
import { models } from './models.js';
import { showNotice } from './notice.js';

const OFFERED = 'wick-chat-offered';
/** The one that answers most at its size. */
const OFFER = 'smollm2-360m';

function openChoice() {
  byId('choose-model').click();
  const radio = /** @type {HTMLInputElement | null} */ (
    byId('model-list').querySelector(`[value="${OFFER}"]`)
  );
  if (radio) radio.checked = true;
  radio?.focus();
}

/** @param {string} answer of the page's own model */
export function offerLarger(answer) {
  const model = models.find(({ id }) => id === OFFER);
  if (!model || !knowsNothing(answer)) return;
  try {
    if (localStorage.getItem(OFFERED)) return;
    localStorage.setItem(OFFERED, 'yes');
  } catch {
    // no storage here: it is offered again
  }
  const size = model.note.split(':')[0];
  showNotice(
    `This page's own model is a toy that knows little. ${model.name} (${size}) knows more.`,
    openChoice,
    'Choose a model',
  );
}
