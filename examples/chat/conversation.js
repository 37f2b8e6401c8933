// examples/chat/conversation.js — opens conversations, asks questions and generates the answers. The
// model reads a new branch only from the message where it leaves an older one: the rest is in the
// engine's prefix cache.

import { showAddress, tellGone } from './address.js';
import { Voice } from './announcer.js';
import { messagesOf, request, splitFacts, write } from './answer_request.js';
import { attachedMedia, loadMedia, setAttached, unreadMedium, untilHeld } from './attachments.js';
import { bookReady, hasBook, keepFork } from './book.js';
import { forgetSession, hideContextNote, isOffered, sessionFor, takeOffer } from './context.js';
import { hasRoom, updateGauge } from './context_overflow.js';
import { note, updatePanel } from './developer.js';
import { byId, hasTouchScreen, makeButton } from './dom.js';
import { dropDraft, keepDraft, setPrompt, takeDraft, takeUpDrafts } from './drafts.js';
import { introduce } from './introductions.js';
import { enter, strike } from './journal.js';
import { addArticle, addFooter, keepInView } from './message.js';
import { openEdit, turnTo } from './message_controls.js';
import { showNotice } from './notice.js';
import { chat } from './open_chat.js';
import { Live } from './progress_line.js';
import { newConversation, newId, titleOf } from './records.js';
import { beginAnswers, endAnswers, makeWriter, turnOf } from './running_answers.js';
import { keepState, untilTakenUp } from './saved_visits.js';
import { settingsToKeep, useSettings } from './settings.js';
import { articles, hideAfter, hideAll, refresh, showAfter, showElsewhere } from './shown_branch.js';
import { readBytesOf } from './speeds.js';
import { watchWriters } from './tab_sync.js';
import { tab } from './tabs.js';
import {
  add,
  allAfter,
  find,
  fromTurns,
  isForgotten,
  newTree,
  removeLeaf,
  saidUntil,
  shownAfter,
} from './tree.js';
import { keepAwake } from './wake_lock.js';
import { keeper } from './write_queue.js';

/** @import { Engine } from 'wick-llm' */
/** @import { Conversation, ModelName } from './records.js' */
/** @import { Ending } from './answer_request.js' */
/** @import { Message, Place } from './tree.js' */

/** Whether the page is checking that a question fits. */
let isMeasuring = false;
/** The question that did not fit the context. */
let offered = '';

const log = byId('log');
const promptField = /** @type {HTMLTextAreaElement} */ (byId('prompt'));

/** @param {boolean} isBusy */
function setBusy(isBusy) {
  const [shown, hidden] = isBusy ? [byId('stop'), byId('send')] : [byId('send'), byId('stop')];
  const hadFocus = document.activeElement === hidden;
  shown.hidden = false;
  // otherwise the focus would be lost; on a touch screen, focusing the field would open the
  // keyboard
  if (hadFocus) (hasTouchScreen() ? shown : promptField).focus();
  hidden.hidden = true;
  updatePanel();
  log.setAttribute('aria-busy', String(isBusy));
  holdButtons(log, isBusy);
}

/**
 * Disables the buttons that start a new branch while an answer is being generated.
 * @param {HTMLElement} within
 * @param {boolean} [isBusy]
 */
export function holdButtons(within, isBusy = isAnswering()) {
  for (const button of within.querySelectorAll('.branching')) {
    /** @type {HTMLButtonElement} */ (button).disabled = isBusy;
  }
}

// ---- an answer, or several ----

/**
 * Makes the model answer the last message that is shown (a question), or continue an answer.
 * @param {Engine} engine
 * @param {Message} question
 * @param {{count?: number, continued?: Message}} [how] `count`: answers side by side
 */
async function answer(engine, question, { count = 1, continued } = {}) {
  chat.running ??= new AbortController();
  const { about, tree } = chat;
  const before = question.shown;
  const answers = continued ? [continued] : beginAnswers(question, count);
  const { article, places } = continued ? reopen(continued) : addArticle('assistant', count);
  articles.set(answers[0], article);
  const voice = count === 1 ? new Voice() : undefined;
  const writers = places.map(({ body }, index) => makeWriter(answers[index], body, about, voice));
  /** @type {(Ending | undefined)[]} */
  const endings = [];
  /** @type {unknown} */
  let problem;
  for (const name of ['Last prompt', 'Next visit']) note(name, '');
  const live = new Live();
  setBusy(true);
  const release = keepAwake();
  keepInView();
  /** Forks of the book's session. @type {import('wick-llm').Session[]} */
  let forks = [];
  try {
    const { signal } = chat.running;
    await Promise.all([untilTakenUp(), bookReady(), untilHeld(saidUntil(question))]);
    signal.throwIfAborted();
    const known = sessionFor(engine, saidUntil(continued ?? question));
    const base = hasBook() ? known : undefined;
    if (base) forks = await Promise.all(places.map(() => base.fork()));
    const session = count > 1 ? undefined : base ? forks[0] : known;
    const wanted = {
      ...{ question, count, continued, session, signal, live },
      ...(base && count > 1 && { forks }),
    };
    const chunks = await request(engine, wanted);
    await write(chunks, writers, endings, live, () => readBytesOf(engine));
  } catch (error) {
    if (/** @type {Error} */ (error).name !== 'AbortError') problem = error;
  }
  endRunning();
  release();
  live.end();
  voice?.end(endings[0]?.state === 'whole');
  for (const writer of writers) writer.finish();
  const isNothing =
    problem && answers.every((one) => one.content === '' && !one.reasoning && !one.rounds);
  if (!isNothing) endAnswers(answers, endings, about);
  if (count === 1 && endings[0] && tree === chat.tree) keepFork(forks[0], saidUntil(answers[0]));
  else for (const one of forks) one.close().catch(() => {}); // already closed with the engine
  setBusy(false);
  if (isNothing) for (const one of answers) removeLeaf(one, before);
  if (tree !== chat.tree) return; // another conversation was opened
  if (isNothing) showAfter(question.parent);
  else showAnswers(question, answers, places);
  updateGauge();
  const isFull = /** @type {{code?: string}} */ (problem)?.code === 'PROMPT_TOO_LONG';
  const path = saidUntil(continued ?? question);
  if (isFull && !(await hasRoom(path, () => answerAnew(question, count)))) return;
  if (problem) throw problem;
  if (!hasBook()) keepState(engine, about.id, messagesOf(saidUntil(answers[0])));
  if (!voice) byId('announcer').textContent = `The model wrote ${count} answers`;
  keepInView();
  log.dispatchEvent(new CustomEvent('answered'));
}

/** @param {Message} continued @returns {ReturnType<typeof addArticle>} */
function reopen(continued) {
  const article = /** @type {HTMLElement} */ (articles.get(continued));
  article.querySelector('footer')?.remove();
  Object.assign(continued, { state: 'writing', writer: tab });
  delete continued.facts;
  const body = /** @type {HTMLElement} */ (article.querySelector('.body'));
  return { article, places: [{ holder: article, body }] };
}

/** @param {Message} question @param {Message[]} answers @param {{holder: HTMLElement}[]} places */
function showAnswers(question, answers, places) {
  articles.get(question)?.querySelector('.again')?.remove();
  if (answers.length === 1) {
    refresh(answers[0]);
    showElsewhere(question);
    return;
  }
  for (const [index, one] of answers.entries()) {
    const button = makeButton(
      'Use this answer',
      () => turnTo(question, one.id),
      'choose branching',
    );
    addFooter(places[index].holder, splitFacts(one.facts ?? '').notes, [button]);
  }
}

/**
 * Returns whether an answer can begin. A missing model is reported.
 * @returns {boolean}
 */
function canAnswer() {
  if (!chat.running && !chat.engine) showNotice('No model is ready yet. Try again in a moment.');
  return !chat.running && chat.engine !== undefined;
}

/** @param {Message} question @param {number} count */
export async function answerAnew(question, count) {
  if (!canAnswer() || !chat.engine) return;
  hideAfter(question);
  log.focus({ preventScroll: true });
  await answer(chat.engine, question, { count }).catch(tell);
}

/** @param {Message} question */
export async function regenerate(question) {
  const hadEngine = chat.engine !== undefined;
  await answerAnew(question, 1);
  if (hadEngine) introduce('variants');
}

/** @param {Message} message an answer */
export async function continueAnswer(message) {
  if (isMeasuring || !canAnswer()) return;
  isMeasuring = true;
  const isRoom = await hasRoom(saidUntil(message), () => continueAnswer(message));
  isMeasuring = false;
  if (!isRoom || chat.running || !chat.engine || !articles.has(message)) return;
  hideAfter(message);
  log.focus({ preventScroll: true });
  const question = /** @type {Message} */ (message.parent);
  await answer(chat.engine, question, { continued: message }).catch(tell);
  if (articles.has(message)) showAfter(message);
}

/**
 * Shows a question and stores it.
 * @param {Place} parent
 * @param {string} content
 * @param {{system?: string, field?: string, isStart?: boolean, fold?: string, media?: Message['media']}} how `field` is that of its draft
 * @returns {Promise<Message | undefined>} undefined if another conversation was opened in the meantime
 */
async function ask(parent, content, { system, field, isStart, fold, media = [] }) {
  chat.running = new AbortController(); // one question at a time
  setBusy(true);
  const { about, tree, model = about.model } = chat;
  const known = allAfter(tree).map((one) => turnOf(one, about));
  const question = add(parent, {
    ...{ id: newId(), role: 'user', content, state: 'whole', created: Date.now() },
    ...(system && { system }),
    ...(isStart && { isStart, ...(fold && { fold }) }),
    ...(media.length > 0 && { media }),
  });
  about.title ||= titleOf(content);
  Object.assign(about, { model, settings: settingsToKeep() });
  const draft = takeDraft(about.id, field);
  if (!field && promptField.value.trim() === content.trim()) setPrompt('');
  if (!field) {
    setAttached([], false);
    keepDraft(promptField.value); // text that is not sent, for example because a suggestion was chosen
  }
  const turn = turnOf(question, about);
  const isEntered = enter(turn.id, { about: { ...about }, question: turn }); // before the draft's entry is removed
  if (draft) strike(draft);
  showAfter(parent);
  log.scrollTo({ top: log.scrollHeight, behavior: 'instant' });
  const storing = keeper.add(async (store) => {
    await store.ask({ ...about }, turn, { draft, known });
    strike(turn.id);
  });
  if (!isEntered) await storing; // otherwise the question is safe already
  if (tree === chat.tree) return question;
  endRunning();
  setBusy(false);
  return undefined;
}

/** @param {Message} message @param {string} text */
export async function reword(message, text) {
  const { engine } = chat;
  if (!canAnswer() || !engine) return;
  const question = await ask(message.parent, text, {
    system: message.system,
    field: message.id,
    media: message.media,
  });
  log.focus({ preventScroll: true });
  if (question) await answer(engine, question).catch(tell);
}

/** @param {unknown} error */
export const tell = (error) => log.dispatchEvent(new CustomEvent('problem', { detail: error }));

// ---- which conversation is open ----

/**
 * Notifies the page of the open conversation.
 * @param {boolean} [isNext] whether the browser's Back returns to the previous conversation
 */
function announce(isNext) {
  const { about, tree } = chat;
  const isEmpty = tree.children.length === 0;
  hideContextNote();
  forgetSession();
  updateGauge();
  showAddress(about, isEmpty, isNext);
  log.dispatchEvent(new CustomEvent('conversation', { detail: about }));
}

/**
 * @param {Conversation} about
 * @param {Place} tree
 * @param {boolean} isCleared whether the message field is cleared
 */
function show(about, tree, isCleared) {
  Object.assign(chat, { about, tree });
  byId('announcer').textContent = '';
  hideAll();
  showAfter(tree);
  log.scrollTo({ top: log.scrollHeight, behavior: 'instant' });
  if (!isCleared) return;
  setPrompt('');
  setAttached([], false);
}

/** Whether the open conversation is in the list: it has messages or a draft. */
const isListed = () => chat.tree.children.length > 0 || promptField.value.trim() !== '';

/**
 * @param {string} id
 * @param {{isStill?: () => boolean, isFirst?: boolean}} [how] `isStill`: whether it is still requested when it has loaded.
 * `isFirst`: the text typed now was typed for it
 * @returns {Promise<boolean>} whether it exists
 */
export async function openConversation(id, { isStill = () => true, isFirst = false } = {}) {
  await keeper.untilIdle();
  const whole = await keeper.store.open(id).catch(() => undefined);
  if (!whole || whole.conversation.deleted > 0 || !isStill()) return false;
  stop();
  const isNext = !isFirst && isListed();
  const { conversation: about, turns, drafts } = whole;
  const before = chat.about;
  useSettings(about.settings);
  show(about, fromTurns(turns, about.shown), !isFirst);
  announce(isNext);
  const texts = await takeUpDrafts(about, drafts);
  if (chat.about !== about) return true;
  joinDraft(texts.get('') ?? '');
  if (isFirst) dropDraft(before); // this conversation has taken it over
  for (const [field, text] of texts) {
    const message = field && find(chat.tree, field);
    if (message) openEdit(message, text);
  }
  watchWriters();
  log.dataset.conversation = about.id; // set once all messages are shown
  return true;
}

/** Text that was typed while the conversation opened is appended to its draft. @param {string} draft */
function joinDraft(draft) {
  const typed = promptField.value;
  const isJoined = typed !== '' && typed !== draft;
  setPrompt(isJoined ? [draft, typed].filter(Boolean).join('\n') : draft);
  if (isJoined || attachedMedia().length > 0) keepDraft(promptField.value);
}

/** The number of URL changes so far. */
let followed = 0;

/** Opens the target of the browser's Back or Forward button, or of a link. @param {string} id */
export async function followAddress(id) {
  const own = ++followed;
  // Back may have been pressed again in the meantime
  const isStill = () => own === followed && location.hash === `#${id}`;
  if (id === chat.about.id || (await openConversation(id, { isStill }))) return;
  const kept = await keeper.store.open(id).catch(() => undefined);
  if (!isStill()) return;
  const { isEmpty, book } = history.state ?? {};
  if (!kept && isEmpty) return openNew({ id, ...(book && { book }) });
  showAddress(chat.about, chat.tree.children.length === 0);
  tellGone(id, kept?.conversation, openConversation);
}

/**
 * Opens an empty conversation. It is stored once its first letter is typed.
 * @param {Partial<Conversation>} [known] its known properties, such as its book
 * @param {boolean} [isInstead] whether it replaces the previously open one, which was deleted
 */
export function openNew(known, isInstead = false) {
  stop();
  const isNext = !isInstead && isListed();
  show(newConversation({ settings: settingsToKeep(), ...known }), newTree(), true);
  announce(isNext);
  log.dataset.conversation = chat.about.id;
}

/** Begins with an empty conversation in a browser that has none. */
export function restoreNone() {
  joinDraft(''); // stores the text that was typed before the page's modules ran
  announce();
  log.dataset.conversation = chat.about.id;
}

/** Opens the conversation in the URL, or the latest one. */
export async function restore() {
  const asked = location.hash.slice(1);
  const isFirst = true;
  if (asked !== '' && (await openConversation(asked, { isFirst }))) return;
  const { store } = keeper;
  const all = asked === '' ? await store.list().catch(() => []) : [];
  const [last] = all.filter(({ deleted }) => deleted === 0).sort((a, b) => b.changed - a.changed);
  if (last && (await openConversation(last.id, { isFirst }))) return;
  const kept = asked === '' ? undefined : await store.open(asked).catch(() => undefined);
  const { isEmpty, book } = history.state ?? {}; // stored before a reload
  if (!kept && book) chat.about.book = book;
  restoreNone();
  if (kept || !isEmpty) tellGone(asked, kept?.conversation, openConversation);
}

// ---- calls of the page ----

/** Settles when the last question that was sent has been answered. @type {Promise<unknown>} */
let asking = Promise.resolve();

/**
 * @param {string} text
 * @returns {Promise<boolean>} false if the model was replaced before the question could be asked
 */
export function say(text) {
  const asked = sayNow(text);
  asking = asked.catch(() => {}); // the caller reports the error
  return asked;
}

/** @param {string} text @returns {ReturnType<typeof say>} */
async function sayNow(text) {
  if (chat.running || isMeasuring) return true;
  if (!chat.engine) return false;
  if (unreadMedium()) {
    (await loadMedia()).tellUnread();
    return true;
  }
  if (offered === text && isOffered()) {
    takeOffer(); // Enter was pressed again
    return true;
  }
  const columns = log.querySelector('.columns');
  const compared = columns && [...articles].find(([, article]) => article.contains(columns));
  if (compared) showAfter(compared[0].parent); // the first answer, unless the user has chosen one
  const { tree } = chat;
  const path = shownAfter(tree);
  const media = attachedMedia();
  const typed = { id: '', role: 'user', content: text, media, state: 'whole', created: 0 };
  const again = (/** @type {boolean} */ isAlone, /** @type {string | undefined} */ fold) =>
    askNext(text, isAlone, fold).catch(tell);
  isMeasuring = true; // until it is known whether this question fits, no other one is accepted
  const isRoom = await Promise.all([bookReady(), untilHeld([...path, { media }])])
    .then(() => hasRoom([...path, /** @type {any} */ (typed)], again))
    .finally(() => {
      isMeasuring = false;
    });
  offered = isRoom ? '' : text;
  if (!isRoom || tree !== chat.tree) return true;
  if (!chat.engine) return false;
  await askNext(text);
  return true;
}

/**
 * @param {string} text
 * @param {boolean} [isStart] whether the model reads nothing before it
 * @param {string} [fold] a summary that the model still reads
 */
async function askNext(text, isStart, fold) {
  const { engine, tree } = chat;
  if (chat.running || !engine) return;
  const end = shownAfter(tree).at(-1);
  const isLost = end?.role === 'user' && isForgotten(end);
  const media = attachedMedia();
  const question = await ask(isLost ? end.parent : (end ?? tree), text, { isStart, fold, media });
  if (question) await answer(engine, question);
}

/** @param {Engine | undefined} engine @param {number} [temperature] recommended for its model @param {ModelName} [model] */
export function setEngine(engine, temperature = 0.7, model = undefined) {
  Object.assign(chat, { engine, temperature, model });
  forgetSession();
  updateGauge();
  log.dispatchEvent(new CustomEvent('engine'));
}

/**
 * Records that the current model was renamed.
 * @param {ModelName} model
 * @param {boolean} [isOpen] whether the open conversation uses it
 */
export function nameModel(model, isOpen = true) {
  chat.model = model;
  if (isOpen) changeAbout({ model });
}

/** @param {Partial<Conversation>} change of the open conversation, which is stored if it has messages */
function changeAbout(change) {
  const { about, tree } = chat;
  Object.assign(about, change);
  if (tree.children.length > 0) keeper.add((store) => store.changeConversation(about.id, change));
}

/** @returns {Promise<void>} a promise that settles as soon as nothing is being generated */
export async function untilAnswered() {
  const ended = (/** @type {any} */ settle) =>
    log.addEventListener('ended', settle, { once: true });
  while (chat.running) await new Promise(ended);
}

/** Waits until no question is being asked or answered. */
export const untilQuiet = () => asking.then(untilAnswered);

function endRunning() {
  chat.running = undefined;
  log.dispatchEvent(new CustomEvent('ended'));
}

/** @returns {string} an empty string if there is none yet */
export const lastAnswer = () =>
  shownAfter(chat.tree).findLast(({ role }) => role === 'assistant')?.content ?? '';

export const isAnswering = () => chat.running !== undefined;

/** Stores the changed settings of the open conversation. */
export const keepSettings = () => changeAbout({ settings: settingsToKeep() });

export function stop() {
  chat.running?.abort();
}

log.addEventListener('memory', async () => {
  await untilAnswered(); // an answer ends with the session that it began with
  forgetSession();
  updateGauge();
});
promptField.addEventListener('input', () => {
  hideContextNote();
  updateGauge();
});
promptField.addEventListener('keydown', (event) => {
  const { key, shiftKey, ctrlKey, metaKey, altKey } = event;
  if (key !== 'ArrowUp' || shiftKey || ctrlKey || metaKey || altKey) return;
  const isMeant = (/** @type {Message} */ one) => one.role === 'user' && !isForgotten(one);
  const last = shownAfter(chat.tree).findLast(isMeant);
  if (!last || chat.running || promptField.value !== '' || attachedMedia().length > 0) return;
  event.preventDefault();
  openEdit(last);
});
