// examples/chat/book.js — the book that the open conversation is about: the text that the model
// reads, and the session that has read it. The code for opening, reading and the shelf is loaded on
// first use.

import { byId } from './dom.js';
import { readValue } from './local_storage.js';
import { showNotice } from './notice.js';
import { chat } from './open_chat.js';

/** @import { ChatMessage, Engine, Session } from 'wick-llm' */
/** @import { Message } from './tree.js' */
/**
 * A session that has read the book and the conversation up to the end of `path`.
 * @typedef {{session: Session, path: string[]}} Fork
 */
/** `forks`: the newest last. @typedef {{id: string, messages: ChatMessage[], engine?: Engine, base?: Session,
 *   forks?: Fork[]}} Open */

/**
 * The number of forks to keep: that of the last answer, and the one before it, from which another
 * version of the last answer continues.
 */
const FORKS_MAX = 2;

/** The key of the list of books whose reading continues after a reload. */
export const READING = 'wick-chat-reading';

/** @type {Open | undefined} */
let open;
/** @type {Promise<unknown>} */
let opening = Promise.resolve();

/**
 * @returns {Promise<unknown>} a promise that settles when the conversation's book is open, or known
 * to be deleted
 */
export const bookReady = () => opening;

export const hasBook = () => open !== undefined;

/** @param {Open | undefined} book */
export function setBook(book) {
  const before = open;
  open = book;
  const forks = (before?.forks ?? []).map(({ session }) => session);
  for (const one of [before?.base, ...forks]) one?.close().catch(() => {}); // already closed with the engine
}

/**
 * Puts the book first, unchanged; the conversation's system prompt is sent with the first
 * question.
 * @param {ChatMessage[]} messages
 * @returns {ChatMessage[]}
 */
export function withBook(messages) {
  if (!open) return messages;
  const [first, ...rest] = messages;
  if (first?.role !== 'system') return [...open.messages, ...messages];
  const [question, ...later] = rest;
  const { content } = question ?? {};
  const text = `${first.content}\n\n`;
  const told = question && {
    ...question,
    content: Array.isArray(content) ? [{ type: 'text', text }, ...content] : text + content,
  };
  return /** @type {ChatMessage[]} */ ([...open.messages, ...(told ? [told] : []), ...later]);
}

/**
 * @param {Engine} engine
 * @param {Message[]} path
 * @returns {Session | undefined} a session to fork, which has read the book and perhaps more of the
 * path
 */
export function bookSession(engine, path) {
  if (open?.engine !== engine) return undefined;
  const { base, forks = [] } = open;
  const fits = forks.filter((fork) => fork.path.every((id, index) => path[index]?.id === id));
  // the newer of two that have read equally far, because a turn may have been forgotten in between
  return fits.reverse().sort((a, b) => b.path.length - a.path.length)[0]?.session ?? base;
}

/**
 * Forks the session that has read the book, to ask something outside the conversation.
 * @param {Engine} engine
 * @param {Message[]} path
 * @returns {Promise<Session | undefined>} a fork, which the caller closes
 */
export const forkBook = async (engine, path) => bookSession(engine, path)?.fork();

/**
 * Keeps a fork that has answered, so that the next question continues from it.
 * @param {Session | undefined} fork
 * @param {Message[]} path with the answer
 */
export function keepFork(fork, path) {
  if (!open?.base || !fork) return fork?.close().catch(() => {});
  open.forks = [...(open.forks ?? []), { session: fork, path: path.map(({ id }) => id) }];
  const before = open.forks.length > FORKS_MAX ? open.forks.shift() : undefined;
  return before?.session.close().catch(() => {});
}

const shelf = () => import('./book_shelf.js');

/** Puts documents and books on the shelf, and shows it. @param {File[]} files @returns {Promise<boolean>} false if it could not be loaded */
export const addBooks = (files) =>
  shelf().then(
    (one) => {
      one.add(files);
      return true;
    },
    () => {
      late();
      return false;
    },
  );

const late = () => showNotice('Book support could not be loaded. Check the network connection.');

/** Opens the book of each conversation that is opened. */
export function startBooks() {
  const follow = () => {
    const { engine } = chat;
    const { book } = chat.about;
    if (book === undefined && !open) return;
    if (book === undefined) return setBook(undefined);
    if (book !== open?.id) setBook(undefined);
    opening = opening
      .then(shelf)
      .then((one) => {
        const isStill = () => chat.about.book === book && chat.engine === engine;
        return isStill() && one.openBook(book, engine, isStill);
      })
      .catch(late);
  };
  byId('log').addEventListener('conversation', follow);
  byId('log').addEventListener('engine', () => {
    follow();
    if (chat.engine && readValue(READING) !== undefined) shelf().then((one) => one.goOn(), late);
  });
  byId('open-books').addEventListener('click', () => shelf().then((one) => one.show(), late));
}
