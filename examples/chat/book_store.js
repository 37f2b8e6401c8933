// examples/chat/book_store.js — books in IndexedDB: information about each, its text, and the
// states of models that have read it. A state is stored in pieces, which are replaced together: the
// old one is kept until the new one is complete.

import { connectionTo } from './connection.js';
import { openChannel } from './tabs.js';

const NAME = 'wick-chat-books';
const PIECE_BYTES = 4 << 20;
/** The age at which deleted books are removed permanently. */
const DELETED_MS_MAX = 30 * 24 * 3600e3;

/**
 * `savedMs` is the total reading time saved by opening the book; `deleted` is when it was deleted,
 * or 0.
 * @typedef {{id: string, version: 1, title: string, letters: number, created: number, deleted: number,
 *   savedMs: number, opened: number}} Book
 */
/** @typedef {'q8' | 'q4'} Kind */
/**
 * The part of a book that a model has read: `tokens` of `total`, in `ms`.
 * @typedef {{key: string, book: string, fingerprint: string, model: string, kvType: Kind, tokens: number, total: number,
 *   ms: number, size: number, pieces: number}} Reading
 */

const connection = connectionTo(NAME, 1, (db) => {
  db.createObjectStore('books', { keyPath: 'id' });
  db.createObjectStore('texts');
  db.createObjectStore('readings', { keyPath: 'key' }).createIndex('book', 'book');
  db.createObjectStore('pieces');
  db.createObjectStore('keys', { keyPath: 'id' });
});
const { open } = connection;

/** @param {string} book @param {string} fingerprint */
export const keyOf = (book, fingerprint) => `${book} ${fingerprint}`;

/** Returns the key range of all pieces of a state. @param {string} key */
const piecesOf = (key) => IDBKeyRange.bound([key], [key, []]);

const channel = openChannel(NAME);
const news = new EventTarget();
channel?.addEventListener('message', () => news.dispatchEvent(new Event('change')));

/**
 * Changes records in one transaction, and notifies this tab and other tabs.
 * @template T
 * @param {string[]} names of the stores
 * @param {import('./connection.js').Work<T>} work
 */
async function change(names, work) {
  const result = await connection.run(names, 'readwrite', work);
  channel?.postMessage('change');
  news.dispatchEvent(new Event('change'));
  return result;
}

/** @param {() => void} listener */
export const onBooks = (listener) => news.addEventListener('change', listener);

/**
 * @returns {Promise<{books: Book[], readings: Reading[]}>} all books, including deleted ones, the
 * newest first
 */
export async function listBooks() {
  const db = await open();
  const [books, readings] = await Promise.all([db.getAll('books'), db.getAll('readings')]);
  return { books: books.sort((a, b) => b.created - a.created), readings };
}

/** @param {string} id @returns {Promise<{book: Book, text: string} | undefined>} */
export async function readBook(id) {
  const db = await open();
  const [book, text] = await Promise.all([db.get('books', id), db.get('texts', id)]);
  return book && text !== undefined ? { book, text } : undefined;
}

/** @param {Book} book @param {string} text */
export const addBook = (book, text) =>
  change(['books', 'texts'], async (store) => {
    await store('books').put(book);
    await store('texts').put(text, book.id);
  });

/** @param {string} id @param {(book: Book) => Partial<Book>} from returns what changes */
export const changeBook = (id, from) =>
  change(['books'], async (store) => {
    const book = await store('books').get(id);
    if (book) await store('books').put({ ...book, ...from(book) });
  });

/** @param {string} book @param {string} fingerprint @returns {Promise<Reading | undefined>} */
export const readingOf = async (book, fingerprint) =>
  (await open()).get('readings', keyOf(book, fingerprint));

/**
 * Stores a state and replaces a shorter one. A state with more tokens that another tab has stored is
 * kept.
 * @param {Omit<Reading, 'key' | 'size' | 'pieces'>} reading
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
export const keepReading = (reading, bytes) =>
  change(['books', 'readings', 'pieces'], async (store) => {
    const key = keyOf(reading.book, reading.fingerprint);
    const before = await store('readings').get(key);
    const isLonger = before?.total === reading.total && before.tokens > reading.tokens;
    if (isLonger || !(await store('books').get(reading.book))) return;
    const count = Math.ceil(bytes.byteLength / PIECE_BYTES);
    await store('pieces').delete(piecesOf(key));
    for (let index = 0; index < count; index++) {
      const from = index * PIECE_BYTES;
      await store('pieces').put(bytes.slice(from, from + PIECE_BYTES), [key, index]);
    }
    await store('readings').put({ ...reading, key, size: bytes.byteLength, pieces: count });
  });

/**
 * Reads in one transaction the part that a model has read and its state: another tab, or a page that
 * is being closed, may store more in the meantime.
 * @param {string} key
 * @returns {Promise<{reading: Reading, bytes?: Uint8Array<ArrayBuffer>} | undefined>} `bytes` is
 * missing if any of its pieces are
 */
export const readState = (key) =>
  connection.run(['readings', 'pieces'], 'readonly', async (store) => {
    const reading = /** @type {Reading | undefined} */ (await store('readings').get(key));
    if (!reading) return undefined;
    const bytes = new Uint8Array(reading.size);
    let done = 0;
    for (let index = 0; index < reading.pieces; index++) {
      const piece = await store('pieces').get([key, index]);
      if (!(piece instanceof Uint8Array) || done + piece.byteLength > bytes.length)
        return { reading };
      bytes.set(piece, done);
      done += piece.byteLength;
    }
    return done === bytes.length ? { reading, bytes } : { reading };
  });

/**
 * @param {string} key of the read part
 * @param {Reading} [judged] the state found to be unusable; a state that has replaced it is kept
 */
export const removeReading = (key, judged) =>
  change(['readings', 'pieces'], async (store) => {
    const now = judged && (await store('readings').get(key));
    if (now?.tokens !== judged?.tokens || now?.size !== judged?.size) return;
    await store('readings').delete(key);
    await store('pieces').delete(piecesOf(key));
  });

/** @param {string[]} ids of books to delete permanently, with all their states */
export const removeBooks = (ids) =>
  change(['books', 'texts', 'readings', 'pieces'], async (store) => {
    for (const id of ids) {
      for (const key of await store('readings').index('book').getAllKeys(id)) {
        await store('readings').delete(key);
        await store('pieces').delete(piecesOf(String(key)));
      }
      await store('books').delete(id);
      await store('texts').delete(id);
    }
  });

/** Removes books that were deleted long ago. */
export async function removeOldBooks() {
  const { books } = await listBooks();
  const since = Date.now() - DELETED_MS_MAX;
  const old = books.filter(({ deleted }) => deleted > 0 && deleted < since);
  if (old.length > 0) await removeBooks(old.map(({ id }) => id));
}

// ---- the user's keys (book_key.js) ----

/**
 * Returns the keys. The first one signs; the others were replaced, but their signatures are still accepted.
 * @returns {Promise<any[]>} the keys, the newest first
 */
export const listKeys = async () =>
  (await (await open()).getAll('keys')).sort((a, b) => b.since - a.since);

/**
 * @param {any} key
 * @param {boolean} [isFirst] whether to keep a key that exists already, such as one from another
 * tab
 * @returns {Promise<any>} the stored key
 */
export const addKey = (key, isFirst = false) =>
  connection.run(['keys'], 'readwrite', async (store) => {
    const [known] = isFirst ? await store('keys').getAll() : [];
    if (!known) await store('keys').put(key);
    return known ?? key;
  });
