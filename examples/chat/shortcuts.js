// examples/chat/shortcuts.js — the list of keyboard shortcuts, which itself has a shortcut.

import { byId, hasTouchScreen, make } from './dom.js';

/** @type {[keys: string, what: string][]} */
const shortcuts = [
  ['Enter', 'send the message'],
  ['Shift+Enter', 'start a new line'],
  ['Escape', 'stop the answer, or close the open dialog'],
  ['Shift+Escape', 'go to the message field'],
  ['Up', 'edit the last question (in an empty message field)'],
  ['Ctrl+K', 'search all conversations'],
  ['Ctrl+Shift+O', 'start a new chat'],
  ['Ctrl+Shift+C', 'copy the last answer'],
  ['Up, Down', 'move in the list of conversations'],
  ['?', 'show this list (outside of text fields)'],
];

const dialog = /** @type {HTMLDialogElement} */ (byId('shortcuts-dialog'));

const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

let isFilled = false;

export function showShortcuts() {
  if (!isFilled) fill();
  isFilled = true;
  if (!dialog.open) dialog.showModal();
}

function fill() {
  // on a touch keyboard, Enter begins a new line
  const known = hasTouchScreen()
    ? shortcuts.filter(([keys]) => !keys.includes('Enter'))
    : shortcuts;
  for (const [keys, what] of known) {
    const key = make('kbd', {}, isMac ? keys.replace('Ctrl', 'Cmd') : keys);
    byId('shortcuts').append(make('dt', {}, key), make('dd', {}, what));
  }
}
