// examples/chat/book_shelf.js — the shelf: the books, how much of each the current model has read,
// and how much time that saves. This file is loaded when it is first needed.

export { sideBySide } from './book_answers.js';
export { openBook } from './book_open.js';

import { isBook, readBookFile, writeBook } from './book_file.js';
import { canSign, exportKey, importKey } from './book_key.js';
import { BookReading, lackOfRoom, sizeOf, wantedReadings } from './book_reading.js';
import { rowOf } from './book_rows.js';
import {
  addBook,
  changeBook,
  keepReading,
  keyOf,
  listBooks,
  onBooks,
  readBook,
  readState,
  removeBooks,
  removeOldBooks,
} from './book_store.js';
import { fingerprintOf, measureBook, partsInWords, partsOf } from './book_text.js';
import { openNew } from './conversation.js';
import { byId, formatBytes, formatNumber, make, makeButton, showRows } from './dom.js';
import { fileNameOf, saveFile } from './file_saver.js';
import { readText, reportReading } from './file_text.js';
import { current } from './loader.js';
import { keepValue, readValue } from './local_storage.js';
import { showNotice } from './notice.js';
import { chat } from './open_chat.js';
import { newId, titleOf } from './records.js';
import { settings } from './settings.js';
import { askToPersist, isFull, withRoom } from './storage_quota.js';

/** @import { Engine } from 'wick-llm' */
/** @import { Book, Kind } from './book_store.js' */
/** A question about a book, and its answers. @typedef {{text: string, choices: Record<string, () => unknown>}} Asked */

const KIND = 'wick-chat-book-kind';
const DRAWN_MS = 80;
const NONE = 'No books yet.';
const CANCEL = 'Cancel';

/** The readings in this tab, by book. @type {Map<string, BookReading>} */
const readings = new Map();
/** The open questions, by book. @type {Map<string, Asked>} */
const asked = new Map();

// ---- the dialog ----

const dialog = make('dialog', { id: 'books-dialog' });
dialog.setAttribute('aria-labelledby', 'books-title');
dialog.innerHTML = `<h2 id="books-title">Books</h2>
  <p class="hint">A book is a long document that the model reads once. Its saved state, which is what the model has read, stays in this browser, so every question is answered right away.</p>
  <p id="books-note" class="hint" role="status"></p>
  <button type="button" id="books-undo" hidden>Undo</button>
  <ul id="books" class="kept books"></ul>
  <details id="books-deleted" hidden><summary>Deleted</summary><ul class="kept"></ul></details>
  <label>Precision of the saved state <select id="book-kind">
    <option value="q8">8 bits: more accurate</option><option value="q4">4 bits: about half the size</option>
  </select></label>
  <details>
    <summary>Your key</summary>
    <p class="hint">It signs the books that you export, so that your other devices do not have to read them again. Anyone who has the key can make the model say anything in a book, so do not share it.</p>
    <button type="button" id="export-key">Export the key</button> <button type="button" id="import-key">Import a key</button>
  </details>
  <input id="book-file" type="file" multiple hidden aria-label="Book files">
  <input id="book-key-file" type="file" accept=".json" hidden aria-label="Key file">
  <div class="buttons"><button type="button" id="add-book" autofocus>Add a book</button><button type="button" id="close-books" class="primary">Done</button></div>`;

/** @param {string} selector */
const part = (selector) => /** @type {HTMLElement} */ (dialog.querySelector(selector));
const status = part('#books-note');
const undo = part('#books-undo');
const list = part('#books');
const deleted = part('#books-deleted'); // hidden while empty: otherwise it would receive and then lose the focus
const deletedList = part('#books-deleted ul');
const kindField = /** @type {HTMLSelectElement} */ (part('#book-kind'));
const fileField = /** @type {HTMLInputElement} */ (part('#book-file'));
const keyField = /** @type {HTMLInputElement} */ (part('#book-key-file'));

/** @param {string} text @param {() => unknown} [back] undoes or ends it @param {string} [label] */
function say(text, back, label = 'Undo') {
  status.textContent = text;
  undo.textContent = label;
  undo.hidden = back === undefined;
  undo.onclick = () => {
    say('');
    back?.();
  };
}

/** @param {unknown} error */
const tell = (error) =>
  say(
    isFull(error)
      ? "This browser's storage is full: delete something and try again."
      : /** @type {Error} */ (error).message,
  );

// ---- drawing ----

let isDue = false;
/** Settles when the last requested update is visible. @type {Promise<void>} */
let drawn = Promise.resolve();

/** Draws the shelf soon, and only once for several changes at the same time. */
function draw() {
  if (isDue) return;
  isDue = true;
  setTimeout(() => {
    isDue = false;
    if (dialog.open) drawNow().catch(tell);
  }, DRAWN_MS);
}

/**
 * Draws the shelf, one drawing at a time: otherwise a slow earlier one would show an outdated
 * shelf.
 */
function drawNow() {
  drawn = drawn.catch(() => {}).then(drawRows);
  return drawn;
}

async function drawRows() {
  const { engine } = chat;
  const fingerprint = await fingerprintOf(engine).catch(() => '');
  const { books, readings: kept } = await listBooks();
  const there = books.filter((one) => one.deleted === 0);
  const rows = there.map((book) =>
    rowOf(book, {
      own: kept.find(({ key }) => engine && key === keyOf(book.id, fingerprint)),
      others: kept.filter((one) => one.book === book.id && one.fingerprint !== fingerprint),
      reading: readings.get(book.id),
      asked: asked.get(book.id),
      model: current().loaded?.name ?? '',
      actions,
    }),
  );
  showRows(list, rows);
  const gone = books.filter((one) => one.deleted > 0);
  deleted.hidden = gone.length === 0;
  deletedList.replaceChildren(...gone.map((book) => goneRow(book, kept)));
  if (there.length === 0 && status.textContent === '') say(NONE);
  else if (there.length > 0 && status.textContent === NONE) say('');
}

/** @param {Book} book @param {import('./book_store.js').Reading[]} kept */
function goneRow(book, kept) {
  const size = kept.filter((one) => one.book === book.id).reduce((sum, one) => sum + one.size, 0);
  const item = make('li', {}, make('span', { className: 'name', textContent: book.title }));
  item.append(
    make('small', { textContent: formatBytes(size + book.letters) }),
    makeButton('Restore', () => changeBook(book.id, () => ({ deleted: 0 })).catch(tell)),
    makeButton('Delete permanently', () => removeBooks([book.id]).catch(tell)),
  );
  return item;
}

// ---- actions on a book ----

/** @param {Book} book @param {Asked} question */
function ask(book, question) {
  asked.set(book.id, question);
  draw();
}

/** @param {string} id */
function answered(id) {
  asked.delete(id);
  draw();
}

/** @param {Book} book @param {number} tokens @param {number} most @param {number} size */
function askTooLong(book, tokens, most, size) {
  const limit = `the context of this model has ${formatNumber(size)} tokens, of which ${formatNumber(size - most)} are reserved for questions`;
  const read = (/** @type {number | undefined} */ count) => () =>
    cutUp(book, most, count).catch(tell);
  ask(book, {
    text: `It has ${formatNumber(tokens)} tokens, and ${limit}: it is ${formatNumber(tokens - most)} tokens too long.`,
    choices: {
      'Read the part that fits': read(1),
      'Read it in parts': read(undefined),
      Cancel: () => answered(book.id),
    },
  });
}

/**
 * Splits a book into parts, each of which becomes a separate book.
 * @param {Book} book
 * @param {number} most tokens
 * @param {number} [count] of parts
 */
async function cutUp(book, most, count) {
  answered(book.id);
  const { engine } = chat;
  const found = await readBook(book.id);
  if (!engine || !found) return;
  const parts = await partsOf(engine, book.title, found.text, most, count);
  const created = Date.now();
  const made = [];
  for (const [index, text] of parts.entries()) {
    const which = count ? 'the beginning' : `part ${index + 1} of ${parts.length}`;
    made.push(await put(`${book.title} (${which})`, text, created - index));
  }
  if (made.length > 0) await read(made[0]);
  if (parts.length > 1) say(partsInWords(parts, found.text));
}

/** Reads a book, or reports why it cannot be read. @param {Book} book @param {boolean} [isSure] @returns {Promise<void>} */
async function read(book, isSure = false) {
  const { engine } = chat;
  if (!engine) return say('No model is loaded yet.');
  if (readings.get(book.id)?.progress.state === 'reading') return;
  answered(book.id);
  const found = await readBook(book.id);
  if (!found) return;
  const { tokens, most, size } = await measureBook(engine, book.title, found.text);
  if (tokens > most) return askTooLong(book, tokens, most, size);
  const lack = isSure ? '' : await lackOfRoom(await sizeOf(engine, tokens, kind()));
  if (lack) {
    ask(book, {
      text: lack,
      choices: { 'Read it anyway': () => read(book, true), Cancel: () => answered(book.id) },
    });
    return;
  }
  begin(engine, book);
}

const kind = () => /** @type {Kind} */ (kindField.value);

/** @param {Engine} engine @param {Book} book */
function begin(engine, book) {
  const before = readings.get(book.id);
  const isSame = before?.engine === engine && before.progress.state === 'failed';
  if (before && !isSame) before.close();
  const model = current().loaded?.name ?? 'a model';
  const own = isSame ? before : new BookReading(engine, model, book.id, kind(), draw);
  readings.set(book.id, own);
  draw();
  askToPersist(true);
  own.run().then(() => {
    draw();
    if (own.progress.state === 'read' && !dialog.open)
      showNotice(`“${book.title}” is read.`, () => actions.open(book), 'Ask about it');
  });
}

/** @param {string} title @param {string} text @param {number} created @returns {Promise<Book>} */
async function put(title, text, created = Date.now()) {
  const letters = text.length;
  const book = /** @type {Book} */ ({
    ...{ id: newId(), version: 1, title, letters, created },
    ...{ deleted: 0, savedMs: 0, opened: 0 },
  });
  await withRoom(() => addBook(book, text));
  return book;
}

/** @type {import('./book_rows.js').Actions} */
const actions = {
  read: (book) => read(book).catch(tell),
  pause: (book) => readings.get(book.id)?.pause(),
  open(book) {
    dialog.close();
    openNew({ book: book.id });
    byId('prompt').focus();
  },
  async remove(book) {
    readings.get(book.id)?.pause();
    answered(book.id);
    await changeBook(book.id, () => ({ deleted: Date.now() })).catch(tell);
    await drawNow().catch(tell);
    say(`“${book.title}” was deleted.`, () =>
      changeBook(book.id, () => ({ deleted: 0 })).catch(tell),
    );
  },
  save: (book) => saveBook(book).catch(tell),
};

/** @param {Book} book */
async function saveBook(book) {
  const found = await readBook(book.id);
  if (!found) return;
  const { reading, bytes } =
    (await readState(keyOf(book.id, await fingerprintOf(chat.engine)))) ?? {};
  const file = await writeBook(book, found.text, reading && bytes && { reading, bytes });
  await saveFile(`${fileNameOf(titleOf(book.title), 'book')}.wickbook`, file);
  if (!bytes) say('Only its text was exported: this model has not read it.');
  else if (!canSign())
    say('It was exported without a signature, so other devices will read it again.');
  else say('It was exported. Other devices will read it again, unless they have your key.');
}

async function saveKey() {
  if (!canSign()) throw new Error('Keys need a page that is served over HTTPS.');
  await saveFile('wick-book-key.json', await exportKey(), 'application/json');
  say('Keep the file to yourself: anyone who has it can sign books in your name.');
}

async function takeKey() {
  const [file] = keyField.files ?? [];
  keyField.value = '';
  if (!file) return;
  if (!canSign()) throw new Error('Keys need a page that is served over HTTPS.');
  const text = file.size < 10_000 ? await file.text() : '';
  await importKey(text).catch((error) => {
    throw new Error(`${file.name}: ${error.message}.`);
  });
  say(
    'This is now your key. Books that it signed are not read again. Your previous key is still accepted.',
  );
}

// ---- imported books ----

/** @param {File} file @param {AbortController} control */
async function take(file, control) {
  if (await isBook(file)) return takeBook(file);
  const { signal } = control;
  const tellReading = (/** @type {string} */ words) => say(words, () => control.abort(), CANCEL);
  const onPage = reportReading(file.name, tellReading, signal);
  const found = await readText(file, onPage).finally(() => say(''));
  signal.throwIfAborted();
  if ('refusal' in found) throw new Error(found.refusal);
  if (found.text.trim() === '') throw new Error('it is empty');
  const book = await put(file.name.slice(0, 200), found.text);
  await read(book);
  return '';
}

/** @param {File} file @returns {Promise<string>} a message about the result */
async function takeBook(file) {
  const { title, text, created, state, bytes, why } = await readBookFile(file);
  const book = await put(title, text, Math.min(created, Date.now()));
  if (!state || !bytes) {
    await read(book);
    return `“${title}” is read again from its text: ${why}.`;
  }
  const { fingerprint, model, kvType, tokens, total, ms } = state;
  const reading = { book: book.id, fingerprint, model, kvType, tokens, total, ms };
  try {
    await withRoom(() => keepReading(reading, bytes));
  } catch (error) {
    if (!isFull(error)) throw error;
    return `Only the text of “${title}” was imported: this browser's storage has no room for its saved state (${formatBytes(bytes.byteLength)}).`;
  }
  return `“${title}” is signed with your key, so ${model} does not read it again.`;
}

/** @param {File[]} files */
async function takeAll(files) {
  if (!settings.remember)
    return say('Books need storage, but the settings say that nothing is stored in this browser.');
  const said = [];
  const control = new AbortController();
  for (const file of files) {
    try {
      said.push(await take(file, control));
    } catch (error) {
      if (control.signal.aborted) break;
      const { message } = /** @type {Error} */ (error);
      said.push(`${file.name}: ${isFull(error) ? "this browser's storage is full" : message}.`);
    }
  }
  const text = said.filter(Boolean).join(' ');
  await drawNow();
  if (text) say(text);
}

// ---- the page's side ----

export function show() {
  say('');
  dialog.showModal();
  drawNow().catch(tell);
}

/** Resumes the readings that a reload has ended. */
export async function goOn() {
  const { engine } = chat;
  const fingerprint = await fingerprintOf(engine);
  const { books } = await listBooks();
  for (const book of books) {
    const isWanted = wantedReadings().includes(keyOf(book.id, fingerprint));
    const isRunning = readings.get(book.id)?.engine === engine;
    if (!engine || !isWanted || isRunning || book.deleted > 0) continue;
    begin(engine, book);
    if (!dialog.open) showNotice(`“${book.title}” is being read.`, show, 'Books');
  }
}

/** @param {File[]} files */
export function add(files) {
  if (!dialog.open) show();
  takeAll(files).catch(tell);
}

document.body.append(dialog);
kindField.value = readValue(KIND) === 'q4' ? 'q4' : 'q8';
onBooks(draw);
byId('log').addEventListener('engine', draw);
byId('add-book').addEventListener('click', () => fileField.click());
byId('import-key').addEventListener('click', () => keyField.click());
byId('export-key').addEventListener('click', () => saveKey().catch(tell));
byId('close-books').addEventListener('click', () => dialog.close());
dialog.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || undo.hidden || undo.textContent !== CANCEL) return;
  event.preventDefault(); // keeps the dialog open
  undo.click();
});
fileField.addEventListener('change', () => {
  const files = [...(fileField.files ?? [])];
  fileField.value = '';
  takeAll(files).catch(tell);
});
keyField.addEventListener('change', () => takeKey().catch(tell));
kindField.addEventListener('change', () => keepValue(KIND, kindField.value));
removeOldBooks().catch(() => {}); // no storage is available
