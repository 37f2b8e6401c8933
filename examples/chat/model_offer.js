// examples/chat/model_offer.js — after the page's own small model has answered that it does not
// know, offers a larger model once, with its costs. A model on the page's own server is loaded
// immediately; a model on the hub is checked first.

import { byId, formatDuration, roundBytes } from './dom.js';
import { keepValue, readValue } from './local_storage.js';
import { expectSpeed, roughly } from './model_verdict.js';
import { isServed, largerModel } from './models.js';
import { showNotice } from './notice.js';
import { wishFor } from './requested_model.js';
import { speedsHere } from './speeds.js';
import { knowsNothing } from './unknown_answers.js';

const OFFERED = 'wick-chat-offered';
/** The minimum size: smaller files would measure the round trip instead of the bandwidth. */
const MEASURED_BYTES = 100_000;

/**
 * @returns {number} the bytes per second at which files of this page arrived over the network; 0 if
 * none did
 */
function downloadRate() {
  const entries = performance.getEntriesByType('resource');
  const rates = /** @type {PerformanceResourceTiming[]} */ (entries)
    .filter((one) => one.transferSize > MEASURED_BYTES)
    .map((one) => (one.transferSize * 1000) / Math.max(1, one.responseEnd - one.responseStart));
  return Math.max(0, ...rates);
}

/**
 * @param {import('./models.js').ModelChoice} model
 * @returns {string} the model's size, and its other known costs on this device
 */
function costsOf({ bytes, needBytes }) {
  const rate = downloadRate();
  const speed = expectSpeed(bytes, speedsHere());
  const costs = [`${roundBytes(bytes)} to download`];
  if (rate > 0) costs[0] += ` (about ${formatDuration(bytes / rate)})`;
  if (needBytes) costs.push(`${roundBytes(needBytes)} of memory`);
  if (speed) costs.push(`about ${roughly(speed.tokensPerSecond)} tokens/s on this machine`);
  return costs.join(', ');
}

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
  const [take, label] = isServed(largerModel)
    ? [() => load(wishFor(largerModel)), 'Load it']
    : [openChoice, 'Choose a model'];
  showNotice(
    `The built-in model is a tiny demo that knows little. ${largerModel.name} knows more: ${costsOf(largerModel)}.`,
    take,
    label,
  );
}
