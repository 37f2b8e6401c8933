// examples/chat/attaching.js — texts and PDFs that are dropped on the page, or chosen, and long texts that are pasted: their text is
// put into the message, where it is seen, counted, kept as a draft and sent with the question.

import { asBlock, TEXT_BYTES_MAX, textOf } from './blocks.js';
import { addBooks } from './book.js';
import { byId } from './dom.js';
import { writePrompt } from './drafts.js';
import { beginsWith } from './first_bytes.js';
import { hideNotice, showNotice } from './notice.js';

const field = /** @type {HTMLTextAreaElement} */ (byId('prompt'));

const PDF_BYTES_MAX = 100e6;
/** A longer text is better read once. */
const BOOK_LETTERS_MIN = 6000;

/** Browsers insert what is pasted as if it was typed: Chromium takes minutes for 1 MB of lines. */
const PASTED_LETTERS_MAX = 50_000;

/** A shorter wait is not reported; a longer one is, at this interval. */
const TELL_MS = 1000;

/**
 * Tells how far a file is read that takes a while.
 * @param {string} name
 * @param {(words: string) => void} say
 */
export function makeTeller(name, say) {
  let told = performance.now();
  let wasTold = false;
  return {
    onPage: (/** @type {number} */ page, /** @type {number} */ pages) => {
      if (performance.now() - told < TELL_MS) return;
      told = performance.now();
      wasTold = true;
      say(`${name}: page ${page} of ${pages} is read.`);
    },
    /** The report is outdated. */
    done: () => wasTold && say(''),
  };
}

/**
 * @param {File} file
 * @param {(page: number, pages: number) => void} [onPage] of a PDF
 * @returns {Promise<{text: string} | {refusal: string}>}
 */
export async function readText(file, onPage) {
  if (await beginsWith(file, '%PDF-')) {
    if (file.size > PDF_BYTES_MAX) return { refusal: 'a PDF of more than 100 MB' };
    const library = await import('./pdfs.js').catch(() => undefined);
    if (!library) return { refusal: 'the PDF reader could not be loaded' };
    const bytes = new Uint8Array(await file.arrayBuffer());
    return library.textOfPdf(bytes, onPage).then(
      (text) => ({ text }),
      (error) => ({ refusal: error.message }),
    );
  }
  const text = await textOf(file);
  return text === undefined
    ? { refusal: 'neither a model, a PDF nor a text of at most 1 MB' }
    : { text };
}

/** @param {File[]} files of a long text each */
const offerBooks = (files) =>
  showNotice(
    'This is long. As a book, it is read only once.',
    () => addBooks(files),
    'Keep as a book',
  );

/**
 * The last long paste, for Ctrl+Z: browsers take back only what they have inserted themselves.
 * @type {{into: HTMLTextAreaElement, start: number, end: number, replaced: string, value: string} | undefined}
 */
let pasted;

/** @param {ClipboardEvent} event a long text is put at once where questions are written */
function takePasted(event) {
  const into = /** @type {HTMLTextAreaElement} */ (event.target);
  const copied = event.clipboardData?.getData('text/plain') ?? '';
  if (copied.length <= PASTED_LETTERS_MAX || !into.matches('#prompt, .edit textarea')) return;
  event.preventDefault();
  const text = copied.replaceAll(/\r\n?/g, '\n'); // as the field has it: the caret is placed by its length
  const file = new File([text], 'Pasted text.txt', { type: 'text/plain' });
  if (file.size > TEXT_BYTES_MAX) {
    showNotice('What was pasted is too long for a message: a text has at most 1 MB.');
    return;
  }
  const { selectionStart: start, selectionEnd } = into;
  const replaced = into.value.slice(start, selectionEnd);
  into.setRangeText(text, start, selectionEnd, 'end');
  pasted = { into, start, end: start + text.length, replaced, value: into.value };
  into.dispatchEvent(new Event('input', { bubbles: true })); // the caret stays after it
  offerBooks([file]);
}

/** @param {KeyboardEvent} event */
function takeBack(event) {
  const { ctrlKey, metaKey, shiftKey, altKey, key } = event;
  const isUndo = (ctrlKey || metaKey) && !shiftKey && !altKey && key.toLowerCase() === 'z';
  if (!isUndo || !pasted || event.target !== pasted.into) return;
  const { into, start, end, replaced, value } = pasted;
  if (into.value !== value) return; // what was typed since is taken back first
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

/** @param {File[]} files */
export async function attach(files) {
  /** @type {string[]} */
  const refused = [];
  const blocks = [];
  /** @type {File[]} */
  const books = [];
  for (const file of files) {
    if (await beginsWith(file, 'WICKBOOK')) {
      addBooks([file]);
      continue;
    }
    const teller = makeTeller(file.name, (words) => (words ? showNotice(words) : hideNotice()));
    const found = await readText(file, teller.onPage);
    teller.done();
    if ('text' in found) blocks.push(asBlock(file.name, found.text));
    else refused.push(`${file.name}: ${found.refusal}.`);
    if ('text' in found && found.text.length > BOOK_LETTERS_MIN) books.push(file);
  }
  if (refused.length > 0) showNotice(refused.join(' '));
  else if (books.length > 0) offerBooks(books);
  if (blocks.length === 0) return;
  const before = field.value; // with what was typed meanwhile
  writePrompt(`${before.trimEnd()}\n\n${blocks.join('\n\n')}`);
  field.setSelectionRange(before.trimEnd().length, before.trimEnd().length);
  field.scrollTop = 0;
}
