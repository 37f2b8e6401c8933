// examples/chat/offering.js — after the page's own little model has said that it does not know, a larger one is offered
// once, with its size and the time that it takes to come.

import { byId } from './dom.js';
import { knowsNothing } from './ignorance.js';
import { models } from './models.js';
import { showNotice } from './notice.js';

const OFFERED = 'wick-chat-offered';
/** The one that answers most at its size. */
const OFFER = 'smollm2-360m';

/** @param {number} bytes @returns {string} empty where the browser does not say how fast the network is */
function timeFor(bytes) {
  const megabits = /** @type {{connection?: {downlink?: number}}} */ (navigator).connection
    ?.downlink;
  if (!megabits) return '';
  const seconds = (bytes * 8) / (megabits * 1e6);
  const time = seconds < 90 ? `${Math.ceil(seconds / 10)}0 s` : `${Math.ceil(seconds / 60)} min`;
  return `, about ${time} of download`;
}

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
    `This page's own model is a toy that knows little. ${model.name} (${size}${timeFor(model.bytes)}) knows more.`,
    openChoice,
    'Choose a model',
  );
}
