// examples/chat/book_open.js — opens the book of a conversation: its text, and the session that has read it, which is loaded instead
// of being recomputed. A state that does not match the text is removed.

import { WickError } from 'wick-llm';
import { setBook } from './book.js';
import { changeBook, readBook, readingOf, readState, removeReading } from './book_store.js';
import { fingerprintOf, messagesOfBook, tokensOfBook } from './book_text.js';
import { note } from './developer.js';
import { byId, make } from './dom.js';
import { showNotice } from './notice.js';

/** @import { Engine, Session } from 'wick-llm' */
/** @import { Reading } from './book_store.js' */

/** Errors after which a state is removed. FULL is not included: the larger context may be chosen again. */
const useless = ['CORRUPT', 'FORMAT', 'TRUNCATED', 'MISMATCH'];

/**
 * Opens the part of a text that was read, and its session; undefined if it must be read again. An
 * unusable state is removed.
 * @param {Engine} engine
 * @param {string} key of the reading
 * @param {number[]} wanted the tokens of the text
 * @returns {Promise<{reading: Reading, session: Session} | undefined>}
 */
export async function loadReading(engine, key, wanted) {
  const { reading, bytes } = (await readState(key)) ?? {};
  if (!reading) return undefined;
  /** @type {Session | undefined} */
  let session;
  try {
    session = bytes && (await engine.loadState(bytes)).session;
  } catch (error) {
    const { code } = /** @type {WickError} */ (error);
    if (!(error instanceof WickError) || !useless.includes(code)) throw error;
    note('Book', `its saved state cannot be used: ${code}`);
  }
  const tokens = (await session?.tokens()) ?? [];
  const isOfText =
    session !== undefined &&
    tokens.length === reading.tokens &&
    tokens.length <= wanted.length &&
    tokens.every((token, index) => token === wanted[index]);
  if (isOfText) return { reading, session: /** @type {Session} */ (session) };
  await session?.close();
  await removeReading(key, reading);
  return undefined;
}

/** @param {string} id @param {Engine} engine @param {import('wick-llm').ChatMessage[]} messages */
async function openReading(id, engine, messages) {
  const began = performance.now();
  const reading = await readingOf(id, await fingerprintOf(engine));
  if (!reading) return undefined;
  const wanted = await tokensOfBook(engine, messages);
  if (reading.tokens !== wanted.length) return undefined; // it was not read to its end
  const loaded = await loadReading(engine, reading.key, wanted);
  if (!loaded) return undefined;
  const ms = performance.now() - began;
  note('Book', `${reading.tokens} tokens opened in ${Math.round(ms)} ms, not read again`);
  const savedMs = Math.max(0, reading.ms - ms);
  await changeBook(id, (book) => ({
    savedMs: book.savedMs + savedMs,
    opened: book.opened + 1,
  })).catch(() => {}); // the disk may be full
  return loaded.session;
}

/** Shows the header of the conversation. @param {string} id @param {string} words */
function showAbout(id, words) {
  let line = document.querySelector('#about-book');
  if (!line) {
    line = make('p', { id: 'about-book', className: 'facts', role: 'status' });
    byId('log').before(line);
  }
  /** @type {HTMLElement} */ (line).dataset.book = id;
  line.textContent = words;
  byId('log').addEventListener('conversation', () => line.remove(), { once: true });
}

/**
 * @param {string} id of a book
 * @param {Engine | undefined} engine that answers
 * @param {() => boolean} isStill returns whether it is still open, with this engine
 */
export async function openBook(id, engine, isStill) {
  const found = await readBook(id).catch(() => undefined);
  if (!isStill()) return;
  if (!found || found.book.deleted > 0) {
    setBook(undefined);
    const why = found ? 'was deleted' : 'is not in this browser';
    showAbout(id, `The book of this conversation ${why}: the model answers without it.`);
    return;
  }
  const { book, text } = found;
  const messages = messagesOfBook(book.title, text);
  setBook({ id, messages });
  const base =
    engine && (await openReading(id, engine, messages).catch((error) => note('Book', `${error}`)));
  if (!isStill()) return void base?.close().catch(() => {}); // already closed with the engine
  if (base) setBook({ id, messages, engine, base });
  const isUnread = engine && !base;
  const hint = ': this model must read it again, which you can start in Books.';
  showAbout(id, `About “${book.title}”${isUnread ? hint : ''}`);
  if (isUnread) showNotice(`“${book.title}” must be read again for this model.`, toShelf, 'Books');
}

const toShelf = () => byId('open-books').click();
