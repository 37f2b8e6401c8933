// examples/chat/notice.js — a line about the last action, with a button that undoes it.

import { byId, hasTouchScreen } from './dom.js';
import { keepInView } from './message.js';

const SHOWN_MS = 20_000;

const notice = byId('notice');
const undoButton = byId('undo');

/** @type {(() => unknown) | undefined} */
let undo;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

export function hideNotice() {
  const hadFocus = notice.contains(document.activeElement);
  notice.hidden = true;
  // otherwise the focus would be lost; on a touch screen, focusing the field would open the
  // keyboard
  if (hadFocus && !hasTouchScreen()) byId('prompt').focus();
  clearTimeout(timer);
}

/** Hides the notice later, unless it has the focus. */
function hideLater() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (notice.matches(':focus-within, :hover')) hideLater();
    else hideNotice();
  }, SHOWN_MS);
}

/**
 * @param {string} text
 * @param {() => unknown} [back] undoes the action, or performs the action described by `label`
 * @param {string} [label]
 * @param {boolean} [isLasting] whether it stays until the page hides it
 */
export function showNotice(text, back, label = 'Undo', isLasting = false) {
  undo = back;
  undoButton.textContent = label;
  byId('notice-text').textContent = text;
  undoButton.hidden = back === undefined;
  byId('dismiss-notice').hidden = isLasting;
  keepInView(() => {
    notice.hidden = false; // the notice takes up space
  });
  if (isLasting) clearTimeout(timer);
  else hideLater();
}

undoButton.addEventListener('click', () => {
  hideNotice();
  undo?.();
});
byId('dismiss-notice').addEventListener('click', hideNotice);
