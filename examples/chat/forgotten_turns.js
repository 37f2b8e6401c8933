// examples/chat/forgotten_turns.js — forgets a question and its answers: the model no longer sees
// them, and later text is recomputed without them, after all requests that a user waits for. They
// can be restored until they are forgotten permanently. This file is loaded when it is first
// needed.

import { messagesOf } from './answer_request.js';
import { loadMedia, wasUsed } from './attachments.js';
import { forkBook, hasBook, keepFork } from './book.js';
import { untilAnswered } from './conversation.js';
import { note } from './developer.js';
import { byId } from './dom.js';
import { enterForgotten, strikeForgotten } from './journal.js';
import { removeStates } from './kv_states.js';
import { showNotice } from './notice.js';
import { chat } from './open_chat.js';
import { erase as eraseTurn, titleOf } from './records.js';
import { keepState } from './saved_visits.js';
import { toolsOfPrompt } from './settings.js';
import { articles, showAfter } from './shown_branch.js';
import { allAfter, find, isForgotten, saidUntil, shownAfter } from './tree.js';
import { keeper } from './write_queue.js';

/** @import { Conversation } from './records.js' */
/** @import { Message } from './tree.js' */

/** The priority: below a user's questions, above work for the next visit and for drafts. */
const PRIORITY = -5;

const log = byId('log');

/** @type {AbortController | undefined} */
let reading;

/** Reads the rest, so that it is cached for the next question. @param {Conversation} about */
async function readAgain(about) {
  reading?.abort();
  const own = new AbortController();
  reading = own;
  const { engine, tree } = chat;
  const path = shownAfter(tree);
  const messages = messagesOf(path);
  if (!engine || !messages.some(({ role }) => role === 'user')) return note('Forgotten', '');
  note('Forgotten', 'the rest is being read');
  const body = { messages, ...toolsOfPrompt(), max_tokens: 1, temperature: 0, priority: PRIORITY };
  const session = await forkBook(engine, path); // the rest follows the book, which is not recomputed
  const asking = engine.chat.completions.create({ ...body, session, signal: own.signal });
  const { usage } = await asking.catch((error) => {
    session?.close().catch(() => {}); // already closed with the engine
    throw error;
  });
  const { prompt_tokens: all, prompt_tokens_details: details } = usage;
  note('Forgotten', `${all - details.cached_tokens} of ${all} tokens were recomputed`);
  const isStill = tree === chat.tree && !own.signal.aborted;
  if (isStill && session) keepFork(session, path);
  else session?.close().catch(() => {}); // already closed with the engine
  if (isStill && !hasBook()) keepState(engine, about.id, messages);
}

/**
 * Replaces a title that was made from forgotten text.
 * @param {Conversation} about
 * @param {string} gone
 * @param {string} left
 */
function retitle(about, gone, left) {
  const title = titleOf(left);
  if (about.title !== titleOf(gone) || title === about.title) return;
  about.title = title;
  keeper.add((store) => store.changeConversation(about.id, { title }));
}

/** @param {Conversation} about @param {Message} question */
async function change(about, question) {
  if (!find(chat.tree, question.id)) return; // another conversation is open
  showAfter(question.parent);
  articles.get(question)?.querySelector('button')?.focus();
  log.dispatchEvent(new CustomEvent('memory'));
  await removeStates(about.id).catch(() => {}); // no storage is available
  await untilAnswered(); // a new question reads it, and a running answer is not complete yet
  if (!find(chat.tree, question.id)) return;
  await readAgain(about).catch((error) => {
    note('Forgotten', error?.name === 'AbortError' ? '' : `the rest is read later: ${error}`);
  });
}

/** Summaries contain the forgotten text. @param {Message} question */
function dropFolds(question) {
  for (const one of allAfter(question)) {
    if (one.fold === undefined) continue;
    delete one.fold;
    keeper.add((store) => store.changeTurn(one.id, { fold: undefined }));
  }
}

/** @param {Message} meant @param {Conversation} known @param {number} at when it was forgotten; 0 restores it */
async function mark(meant, known, at) {
  // the conversation may have been reopened
  const question = find(chat.tree, meant.id) ?? meant;
  const about = chat.about.id === known.id ? chat.about : known;
  const [{ parent: tree }] = saidUntil(question);
  const first = () => allAfter(tree).find((one) => one.role === 'user' && !isForgotten(one));
  const before = first()?.content ?? '';
  question.forgotten = at;
  dropFolds(question);
  enterForgotten(question.id, about, at);
  keeper.add(async (store) => {
    await store.changeTurn(question.id, { forgotten: at });
    strikeForgotten(question.id, at);
  });
  retitle(about, before, first()?.content ?? '');
  await change(about, question);
}

/** @param {Message} question @param {Conversation} about @param {number} at the time */
export async function forget(question, about, at) {
  const isOnly = !shownAfter(chat.tree).some((one) => one !== question && one.parent !== question);
  showNotice(
    `Forgotten.${isOnly ? '' : ' The rest is being read again.'}`,
    () => question.forgotten && bringBack(question, about),
  );
  await mark(question, about, at);
}

/** @param {Message} question @param {Conversation} about */
export async function bringBack(question, about) {
  showNotice('The question and its answer are restored.');
  await mark(question, about, 0);
}

/**
 * @param {Message} question
 * @param {Conversation} about
 * @param {number} at the time when it was forgotten
 */
export async function erase(question, about, at) {
  for (const one of [question, ...question.children]) {
    if (one === question || one.role === 'assistant') eraseTurn(one);
  }
  showAfter(question.parent);
  log.focus({ preventScroll: true });
  await keeper.add(async (store) => {
    await store.erase(about.id, ({ id }) => id === question.id);
    strikeForgotten(question.id, at, true);
    if (wasUsed()) await (await loadMedia()).tidy(store, 0);
  });
}
