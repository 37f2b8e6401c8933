// examples/chat/reasoning.js — the reasoning before an answer: folded, with its duration.

import { formatDuration, make } from './dom.js';

/** @param {number} ms */
export function thoughtInWords(ms) {
  const seconds = Math.max(ms / 1000, 0.1);
  const whole = Math.round(seconds);
  if (whole < 60) return `Thought for ${seconds < 10 ? seconds.toFixed(1) : whole} s`;
  return `Thought for ${formatDuration(whole)}`;
}

/**
 * @param {HTMLElement} body of the answer, which it precedes
 * @param {string} text
 * @param {number} [ms] its duration; missing while it continues
 */
export function showReasoning(body, text, ms) {
  const holder = /** @type {HTMLElement} */ (body.parentElement);
  let details = holder.querySelector(':scope > .reasoning');
  if (text === '') return details?.remove();
  if (!details) {
    const parts = [make('summary'), make('div', { dir: 'auto' })];
    details = make('details', { className: 'reasoning' }, ...parts);
    body.before(details);
  }
  const [summary, content] = details.children;
  summary.textContent = ms === undefined ? 'Thinking …' : thoughtInWords(ms);
  content.textContent = text;
  return undefined;
}
