// examples/chat/conversation.js — the open conversation: its messages, and the answers that are being
// generated. The model reads a new branch only from the message where it leaves an older one: the rest
// is in the engine's prefix cache.

import { makeCopyIcons, makeIconButton, makeMenu } from './actions.js';
import { showAddress, tellGone } from './address.js';
import { Voice } from './announcer.js';
import { messagesOf, request, splitFacts, write } from './answer_request.js';
import { attachedMedia, loadMedia, setAttached, unreadMedium, untilHeld } from './attachments.js';
import { bookReady, hasBook, keepFork } from './book.js';
import { forgetSession, hideContextNote, isOffered, sessionFor, takeOffer } from './context.js';
import { hasRoom, readAll, updateGauge } from './context_overflow.js';
import { note, updatePanel } from './developer.js';
import { byId, hasTouchScreen, make, makeButton, makeSureButton } from './dom.js';
import { dropDraft, keepDraft, setPrompt, takeDraft, takeUpDrafts } from './drafts.js';
import { introduce } from './introductions.js';
import { enter, enterForgotten, strike, strikeForgotten } from './journal.js';
import { addArticle, addFooter, editQuestion, keepInView, makeArrows } from './message.js';
import { showNotice } from './notice.js';
import { chat } from './open_chat.js';
import { Live } from './progress_line.js';
import { newConversation, newId, titleOf, wholeFrom } from './records.js';
import { beginAnswers, endAnswers, keepAnswer, makeWriter, turnOf } from './running_answers.js';
import { keepState, showConversation, untilTakenUp } from './saved_visits.js';
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
  idOf,
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

/** The number of answers that are generated side by side. */
const VARIANTS = 3;

const UNFINISHED = 'the answer is incomplete';
const REGENERATE = 'regenerate branching';

/** The number of characters shown of another version's text. */
const FORK_LETTERS_MAX = 90;

/** The question whose answers are shown side by side. @type {Message | undefined} */
let compared;
/** Whether the page is checking that a question fits. */
let isMeasuring = false;
/** The question that did not fit the context. */
let offered = '';

const log = byId('log');
const promptField = /** @type {HTMLTextAreaElement} */ (byId('prompt'));

// ---- the messages ----

/** Returns whether Continue can resume an answer. @param {Message} message */
const isOpenEnded = ({ state }) => state !== 'whole';

/** Returns menu items for rare actions on an answer. @param {Message} message @param {Message} question @returns {import('./actions.js').Item[]} */
const itemsOf = (message, question) => [
  {
    name: `${VARIANTS} variants`,
    hint: 'Write several answers side by side, and continue with one of them.',
    action: () => answerAnew(question, VARIANTS),
    className: 'compare',
  },
  {
    name: 'Words',
    hint: 'Choose another word in the answer, and the model continues from there.',
    action: () => openWords(message),
    className: 'open-words',
  },
  {
    name: 'New chat from here',
    hint: 'Copy the conversation up to this answer, and continue the copy.',
    action: () => copyUntil(message).catch(tell),
    className: 'copy-chat',
  },
  forgetItem(question),
];

/** Opens a copy of the conversation that ends with a message. @param {Message} message */
async function copyUntil(message) {
  const { about } = chat;
  const title = `Copy of ${about.title}`;
  const turns = saidUntil(message).map((one) => ({ ...turnOf(one, about), shown: undefined }));
  const whole = wholeFrom({ conversation: { ...about, title, isPinned: false }, turns });
  if (!whole) return;
  Object.assign(whole.conversation, { changed: Date.now(), book: about.book });
  await keeper.add((store) => store.takeIn(whole));
  await openConversation(whole.conversation.id);
}

/** Draws the buttons of a message. @param {Message} message @param {HTMLElement} article */
export function addControls(message, article) {
  const arrows = makeArrows(message, (id, direction) => turnTo(message.parent, id, direction));
  if (message.role === 'user' && message.forgotten) return addForgotten(message, article, arrows);
  if (message.role === 'user') {
    const again = makeButton('Answer again', () => answerAnew(message, 1), 'branching again');
    const edit = makeIconButton('edit', 'Edit', () => openEdit(message), 'open-edit branching');
    if (message.isStart)
      arrows.unshift(makeButton('Read all again', () => readAll(message), 'branching'));
    const copy = makeCopyIcons(() => message.content);
    const all = [...arrows, ...copy, edit, ...(message.children.length === 0 ? [again] : [])];
    const isBeingAnswered = message.children.some(({ state }) => state === 'writing');
    if (!isBeingAnswered) all.push(...makeMenu([forgetItem(message)]));
    addFooter(article, '', all);
    return;
  }
  const question = /** @type {Message} */ (message.parent);
  if (question.forgotten) return;
  const isElsewhere = message.state === 'writing' && message.writer !== tab;
  article.querySelector('.body')?.classList.toggle('waiting', isElsewhere);
  if (isElsewhere) return addFooter(article, 'being written in another tab', arrows);
  const goOn = makeButton('Continue', () => continueAnswer(message), 'continue branching');
  const { figures, notes } = splitFacts(message.facts ?? (isOpenEnded(message) ? UNFINISHED : ''));
  addFooter(article, notes, [
    ...arrows,
    ...(isOpenEnded(message) ? [goOn] : []),
    ...makeCopyIcons(() => message.content),
    makeIconButton('regenerate', 'Regenerate', () => regenerate(question), REGENERATE),
    ...makeMenu(itemsOf(message, question), figures),
  ]);
  showFork(message, article);
}

// ---- another word in an answer ----

/** @param {Message} message an answer */
async function openWords(message) {
  const words = await import('./words.js').catch((error) => void tell(error));
  const article = articles.get(message);
  if (!chat.engine || chat.running || !article) return;
  await words?.toggleWords(chat.engine, message, article, branchFrom).catch(tell);
}

/**
 * Forks an answer: continues from a different beginning, and leaves the answer itself unchanged.
 * @param {Message} message
 * @param {number} at where the fork begins
 * @param {string} piece the new text at that position
 * @param {boolean} isEnd whether the fork ends there
 */
async function branchFrom(message, at, piece, isEnd) {
  if (chat.running || !chat.engine) return;
  const question = /** @type {Message} */ (message.parent);
  const { rounds, reasoning, reasoningMs } = message;
  compared = undefined;
  const branch = add(question, {
    ...{ id: newId(), role: 'assistant', content: message.content.slice(0, at) + piece },
    ...{ state: isEnd ? 'whole' : 'stopped', created: Date.now(), fork: { of: message.id, at } },
    ...(rounds && { rounds }),
    ...(reasoning && { reasoning, ...(reasoningMs !== undefined && { reasoningMs }) }),
  });
  keepAnswer(branch, chat.about, true);
  showAfter(question);
  if (isEnd)
    log.dispatchEvent(new CustomEvent('memory')); // the conversation's session belongs to the other version
  else await continueAnswer(branch);
}

/**
 * Shows the continuation of the answer from which this one was forked.
 * @param {Message} message
 * @param {HTMLElement} article
 */
function showFork({ fork, parent }, article) {
  article.querySelector('.fork')?.remove();
  const other = fork && parent.children.find(({ id }) => id === fork.of);
  if (!other) return;
  const rest = other.content.slice(fork.at).trim();
  const words = rest.length > FORK_LETTERS_MAX ? `${rest.slice(0, FORK_LETTERS_MAX)}…` : rest;
  const line = `Version ${parent.children.indexOf(other) + 1} continues here: “${words}” `;
  const show = makeButton('Show it', () => turnTo(parent, other.id), 'branching');
  article.append(make('p', { className: 'fork', dir: 'auto' }, line, show));
}

// ---- text that the model no longer sees ----

/** @param {Message} question @returns {import('./actions.js').Item} */
const forgetItem = (question) => ({
  name: 'Forget',
  hint: 'The model no longer sees this question and its answer.',
  action: () => forget(question, 'forget'),
  className: 'forget',
});

/** @param {Message} question @param {'forget' | 'bringBack' | 'erase'} how */
async function forget(question, how) {
  if (chat.running) return;
  const { id, forgotten = 0 } = question;
  const isForGood = how === 'erase';
  const at = { forget: Date.now(), bringBack: 0, erase: forgotten }[how];
  enterForgotten(id, chat.about, at, isForGood); // the page may be closed before the code has loaded
  const forgetting = await import('./forgotten_turns.js').catch((error) => void tell(error));
  if (forgetting && !chat.running) await forgetting[how](question, chat.about, at);
  else strikeForgotten(id, at, isForGood);
}

/**
 * Shows a forgotten question as a single line.
 * @param {Message} question
 * @param {HTMLElement} article
 * @param {HTMLElement[]} arrows
 */
function addForgotten(question, article, arrows) {
  const answer = shownAfter(question).slice(0, 1);
  const versions = answer.flatMap((one) =>
    one.role === 'user' ? [] : makeArrows(one, (id, direction) => turnTo(question, id, direction)),
  );
  const back = makeButton('Bring back', () => forget(question, 'bringBack'), 'branching');
  const erase = makeSureButton('Forget permanently', () => forget(question, 'erase'), 'branching');
  const isThere = question.content !== '' && [back, erase];
  addFooter(article, '', [...arrows, ...versions, ...(isThere || [])]);
}

byId('open-memory').addEventListener('click', async () => {
  const map = await import('./memory_map.js').catch((error) => void tell(error));
  await map?.openMemory().catch(tell);
});

/** Shows the branch of a message. @param {Message} message */
export function goTo(message) {
  for (const one of saidUntil(message)) if (one.parent.shown !== one.id) choose(one.parent, one.id);
  redraw(chat.tree);
  articles.get(message)?.scrollIntoView({ behavior: 'instant' }); // a smooth one would miss it: old messages get their height on the way
}

/** Redraws all messages after a place in the tree. @param {Place} place */
export function redraw(place) {
  compared = undefined;
  showAfter(place);
}

/** @param {Message} message @param {string} [draft] its edited text so far */
function openEdit(message, draft) {
  const article = articles.get(message);
  const field = article?.querySelector('.edit textarea');
  if (field) return /** @type {HTMLElement} */ (field).focus();
  if (!article) return;
  editQuestion(article, message.content, {
    draft,
    onInput: (text) => keepDraft(text === message.content ? '' : text, message.id),
    onClose: () => holdButtons(article),
    send: (text) => reword(message, text),
  });
}

/** @param {Place} parent @param {string} id */
function choose(parent, id) {
  parent.shown = id;
  const at = idOf(parent);
  if (at) keeper.add((store) => store.changeTurn(at, { shown: id }));
  else keeper.add((store) => store.changeConversation(chat.about.id, { shown: id }));
}

/** Shows another version of a message. @param {Place} parent @param {string} id @param {string} [direction] */
export function turnTo(parent, id, direction = 'next') {
  if (chat.running) return;
  choose(parent, id);
  compared = undefined;
  showAfter(parent);
  const index = parent.children.findIndex((one) => one.id === id);
  const article = articles.get(parent.children[index]);
  const arrow = article?.querySelector(`[data-direction=${direction}]`);
  /** @type {HTMLElement | null | undefined} */ (arrow)?.focus();
  byId('announcer').textContent = `Version ${index + 1} of ${parent.children.length}`;
}

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
  compared = question; // the user will choose one of the answers
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
async function answerAnew(question, count) {
  if (!canAnswer() || !chat.engine) return;
  compared = undefined;
  hideAfter(question);
  log.focus({ preventScroll: true });
  await answer(chat.engine, question, { count }).catch(tell);
}

/** @param {Message} question */
async function regenerate(question) {
  const hadEngine = chat.engine !== undefined;
  await answerAnew(question, 1);
  if (hadEngine) introduce('variants');
}

/** @param {Message} message an answer */
async function continueAnswer(message) {
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
  compared = undefined;
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
async function reword(message, text) {
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
  // nothing is saved for a conversation without messages
  showConversation(isEmpty ? undefined : about.id);
  log.dispatchEvent(new CustomEvent('conversation', { detail: about }));
}

/**
 * @param {Conversation} about
 * @param {Place} tree
 * @param {boolean} isCleared whether the message field is cleared
 */
function show(about, tree, isCleared) {
  Object.assign(chat, { about, tree });
  compared = undefined;
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
  if (compared) showAfter(compared); // the first answer, unless the user has chosen one
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

/** The callers that are waiting for the end of the answer. @type {Set<() => void>} */
const waiting = new Set();

/** @returns {Promise<void>} a promise that settles as soon as nothing is being generated */
export async function untilAnswered() {
  while (chat.running) await new Promise((settle) => waiting.add(() => settle(undefined)));
}

/** Waits until no question is being asked or answered. */
export const untilQuiet = () => asking.then(untilAnswered);

function endRunning() {
  chat.running = undefined;
  for (const settle of waiting) settle();
  waiting.clear();
}

/** @returns {string} an empty string if there is none yet */
export const lastAnswer = () =>
  shownAfter(chat.tree).findLast(({ role }) => role === 'assistant')?.content ?? '';

export const isAnswering = () => chat.running !== undefined;

/** Stores the changed settings of the open conversation. */
export const keepSettings = () => changeAbout({ settings: settingsToKeep() });

export const current = () => chat.about;

/** The open conversation, and its model. */
export const state = () => ({ ...chat, isRunning: isAnswering() });

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
