// examples/chat/pasting.js — handles pasting: long text is inserted into question fields in one step,
// and files are attached.

import { loadMedia } from './attachments.js';
import { TEXT_BYTES_MAX } from './blocks.js';
import { addBooks } from './book.js';
import { hideNotice, showNotice } from './notice.js';
import { chat } from './open_chat.js';

/** The files that are being read, by conversation. @type {Map<string, {control: AbortController, done?: Promise<boolean>}>} */
const attaching = new Map();

/**
 * @param {string} id of a conversation
 * @returns {Promise<boolean> | undefined} settles when no file is being read for it, with false if the user has cancelled
 * the reading; undefined if it has no files
 */
export const untilAttached = (id) => attaching.get(id)?.done;

/** Cancels the reading of files for the open conversation. */
export function stopAttaching() {
  attaching.get(chat.about.id)?.control.abort();
  attaching.delete(chat.about.id);
}

/** Attaches files to the next message of the open conversation, also if another one is opened in the meantime. @param {File[] | Promise<File[]>} files */
export function attach(files) {
  const { about } = chat;
  const late = () => showNotice('File support could not be loaded. Check the network connection.');
  const { control, done: before } = attaching.get(about.id) ?? { control: new AbortController() };
  const { signal } = control;
  const own = Promise.resolve(files).then((some) =>
    some.length === 0
      ? undefined
      : loadMedia().then((one) => one.attachFiles(some, about, signal), late),
  );
  const done = Promise.allSettled([before, own]).then(() => !signal.aborted);
  attaching.set(about.id, { control, done });
  return own;
}

/**
 * Browsers insert pasted text as if it were typed, which takes Chromium minutes for 1 MB of lines.
 * Text longer than this is inserted in one step.
 */
const PASTED_LETTERS_MAX = 50_000;

/** @param {File[]} files with one long text each @param {() => void} [onKept] called when the shelf takes them */
export const offerBooks = (files, onKept) =>
  showNotice(
    'This text is long. The model reads a book only once.',
    async () => {
      if (await addBooks(files)) onKept?.();
    },
    'Keep as a book',
  );

/**
 * The last long paste, for Ctrl+Z: browsers undo only their own insertions.
 * @type {{into: HTMLTextAreaElement, start: number, end: number, replaced: string, value: string} | undefined}
 */
let pasted;

/**
 * @param {ClipboardEvent} event the paste; long text is inserted into question fields in one step
 */
function takePasted(event) {
  const into = /** @type {HTMLTextAreaElement} */ (event.target);
  const copied = event.clipboardData?.getData('text/plain') ?? '';
  const files = [...(event.clipboardData?.files ?? [])];
  if (files.length > 0 && copied === '' && !document.querySelector('dialog:modal')) {
    event.preventDefault();
    attach(files);
  }
  if (copied.length <= PASTED_LETTERS_MAX || !into.matches('#prompt, .edit textarea')) return;
  event.preventDefault();
  const text = copied.replaceAll(/\r\n?/g, '\n'); // as in the field, because the length determines the caret position
  const file = new File([text], 'Pasted text.txt', { type: 'text/plain' });
  if (file.size > TEXT_BYTES_MAX) {
    showNotice('The pasted text is too long for a message: the limit is 1 MB.');
    return;
  }
  const { selectionStart: start, selectionEnd } = into;
  const replaced = into.value.slice(start, selectionEnd);
  into.setRangeText(text, start, selectionEnd, 'end');
  pasted = { into, start, end: start + text.length, replaced, value: into.value };
  into.dispatchEvent(new Event('input', { bubbles: true })); // the caret is now after the pasted text
  offerBooks([file]);
}

/** @param {KeyboardEvent} event */
function takeBack(event) {
  const { ctrlKey, metaKey, shiftKey, altKey, key } = event;
  const isUndo = (ctrlKey || metaKey) && !shiftKey && !altKey && key.toLowerCase() === 'z';
  if (!isUndo || !pasted || event.target !== pasted.into) return;
  const { into, start, end, replaced, value } = pasted;
  if (into.value !== value) return; // undo must remove later typing first
  event.preventDefault();
  pasted = undefined;
  into.setRangeText(replaced, start, end, replaced ? 'select' : 'end');
  into.dispatchEvent(new Event('input', { bubbles: true }));
  hideNotice();
}

export function watchPastes() {
  document.addEventListener('paste', takePasted, true);
  document.addEventListener('keydown', takeBack, true);
}
