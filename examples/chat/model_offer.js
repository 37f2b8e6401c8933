// examples/chat/model_offer.js — offers a larger model once, with its size, after the page's own small model has said that it
// does not know. A model of the page's own server is loaded at once; one on the hub is judged first.

import { byId } from './dom.js';
import { keepValue, readValue } from './local_storage.js';
import { isServed, largerModel } from './models.js';
import { showNotice } from './notice.js';
import { wishFor } from './requested_model.js';
import { knowsNothing } from './unknown_answers.js';

const OFFERED = 'wick-chat-offered';

function openChoice() {
  byId('choose-model').click();
  const radio = /** @type {HTMLInputElement | null} */ (
    byId('model-list').querySelector(`[value="${largerModel.id}"]`)
  );
  if (radio) radio.checked = true;
  radio?.focus();
}

/** @param {string} answer of the page's own model @param {(wish: import('./requested_model.js').Wish) => unknown} load */
export function offerLarger(answer, load) {
  if (!knowsNothing(answer) || readValue(OFFERED)) return;
  keepValue(OFFERED, 'yes');
  const size = largerModel.note.split(':')[0];
  const [take, label] = isServed(largerModel)
    ? [() => load(wishFor(largerModel)), 'Load it']
    : [openChoice, 'Choose a model'];
  showNotice(
    `The built-in model is a tiny demo that knows little. ${largerModel.name} (${size}) knows more.`,
    take,
    label,
  );
}
