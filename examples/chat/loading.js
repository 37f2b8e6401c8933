// examples/chat/loading.js — loading a model: progress, cancelling, and error messages.

import { byId, formatBytes, formatDuration } from './dom.js';
import { keepInView } from './message.js';

/** @import { Progress } from 'wick-llm' */

/** A bar without a value moves only after this time, because drawing each of its frames slows a quick start. */
const STILL_MS = 500;

const bar = /** @type {HTMLProgressElement} */ (byId('loading-bar'));
/** @type {ReturnType<typeof setTimeout> | undefined} */
let moving;

/** @param {string} name */
export function showLoading(name) {
  byId('loading-what').textContent = `Loading ${name}`;
  byId('loading-facts').textContent = 'Starting';
  bar.value = 0;
  clearTimeout(moving);
  moving = setTimeout(() => bar.value > 0 || bar.removeAttribute('value'), STILL_MS);
  byId('loading-buttons').hidden = false; // they are hidden while the page itself is starting
  keepInView(() => {
    byId('loading').hidden = false; // the line takes up space
  });
}

export function hideLoading() {
  clearTimeout(moving);
  byId('loading').hidden = true;
}

/** @param {Progress} progress */
export function showProgress({ loaded, total, bytesPerSecond, secondsLeft, phase }) {
  if (total) bar.value = Math.min(1, loaded / total);
  const facts = [total ? `${formatBytes(loaded)} of ${formatBytes(total)}` : formatBytes(loaded)];
  if (bytesPerSecond) facts.push(`${formatBytes(bytesPerSecond)}/s`);
  if (secondsLeft !== undefined && secondsLeft > 0)
    facts.push(`${formatDuration(secondsLeft)} left`);
  if (phase === 'retrying') facts.push('connection lost, retrying');
  byId('loading-facts').textContent = facts.join(' · ');
}

export function showWaiting() {
  byId('loading-facts').textContent = 'Waiting for the network';
}

/** @type {(() => void) | undefined} */
let retry;

/** Places an error where it covers less: above the message field if a short conversation leaves room there. */
function placeProblem() {
  const [log, problem] = [byId('log'), byId('problem')];
  const last = [...log.children].findLast((one) => one.getBoundingClientRect().height > 0);
  const end = last?.getBoundingClientRect().bottom ?? 0;
  const room = log.getBoundingClientRect().bottom - end;
  log[room > problem.offsetHeight ? 'after' : 'before'](/** @type {Node} */ (problem.parentNode));
}

/** @param {string} text @param {(() => void)} [again] the action of the retry button */
export function showProblem(text, again) {
  retry = again;
  byId('problem-text').textContent = text;
  byId('retry-loading').hidden = again === undefined;
  byId('problem').hidden = false;
  placeProblem();
}

export function hideProblem() {
  byId('problem').hidden = true;
}

byId('dismiss-problem').addEventListener('click', hideProblem);
byId('retry-loading').addEventListener('click', () => {
  hideProblem();
  retry?.();
});
