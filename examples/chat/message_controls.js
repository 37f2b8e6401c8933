// examples/chat/message_controls.js — the actions below each message: versions, editing, another
// word, forgetting, and a copy of the conversation.

import { makeCopyIcons, makeIconButton, makeMenu } from './actions.js';
import { splitFacts } from './answer_request.js';
import { readAll } from './context_overflow.js';
import {
  answerAnew,
  continueAnswer,
  holdButtons,
  openConversation,
  regenerate,
  reword,
  tell,
} from './conversation.js';
import { byId, make, makeButton, makeSureButton } from './dom.js';
import { keepDraft } from './drafts.js';
import { enterForgotten, strikeForgotten } from './journal.js';
import { addFooter, editQuestion, makeArrows } from './message.js';
import { chat } from './open_chat.js';
import { newId, wholeFrom } from './records.js';
import { keepAnswer, turnOf } from './running_answers.js';
import { articles, showAfter } from './shown_branch.js';
import { tab } from './tabs.js';
import { add, idOf, saidUntil, shownAfter } from './tree.js';
import { keeper } from './write_queue.js';

/** @import { Message, Place } from './tree.js' */

/** The number of answers that are generated side by side. */
const VARIANTS = 3;

const UNFINISHED = 'the answer is incomplete';
const REGENERATE = 'regenerate branching';

/** The number of characters shown of another version's text. */
const FORK_LETTERS_MAX = 90;

const log = byId('log');

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

// ---- text that is hidden from the model ----

/** @param {Message} question @returns {import('./actions.js').Item} */
const forgetItem = (question) => ({
  name: 'Forget',
  hint: 'Hide this question and its answer from the model.',
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
  showAfter(chat.tree);
  // smooth scrolling would miss it, because old messages get their heights on the way
  articles.get(message)?.scrollIntoView({ behavior: 'instant' });
}

/** @param {Message} message @param {string} [draft] its edited text so far */
export function openEdit(message, draft) {
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
  showAfter(parent);
  const index = parent.children.findIndex((one) => one.id === id);
  const article = articles.get(parent.children[index]);
  const arrow = article?.querySelector(`[data-direction=${direction}]`);
  /** @type {HTMLElement | null | undefined} */ (arrow)?.focus();
  byId('announcer').textContent = `Version ${index + 1} of ${parent.children.length}`;
}
