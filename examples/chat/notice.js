// examples/chat/notice.js — a line about the last action, with a button that undoes it.

import { byId } from './dom.js';
import { keepInView } from './message.js';

const SHOWN_MS = 20_000;

const notice = byId('notice');
const undoButton = byId('undo');

/** @type {(() => unknown) | undefined} */
let undo;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

export function hideNotice() {
  notice.hidden = true;
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

/** @param {string} text @param {() => unknown} [back] undoes the action, or performs the action described by `label` @param {string} [label] */
export function showNotice(text, back, label = 'Undo') {
  undo = back;
  undoButton.textContent = label;
  byId('notice-text').textContent = text;
  undoButton.hidden = back === undefined;
  keepInView(() => {
    notice.hidden = false; // it takes space
  });
  hideLater();
}

undoButton.addEventListener('click', () => {
  hideNotice();
  undo?.();
});
byId('dismiss-notice').addEventListener('click', hideNotice);
