// examples/chat/draft_answers.js — answers before Enter: at a pause in typing, the page starts to
// answer the draft, and the questions that could follow. This file decides when that happens: never
// on battery, and not if the user has switched it off. The requests to the engine are in
// early_answers.js, which is loaded at the first pause.

import { bodyFor } from './answer_request.js';
import { attachedMedia, untilHeld } from './attachments.js';
import { bookReady } from './book.js';
import { sessionFor } from './context.js';
import { note } from './developer.js';
import { byId, hasTouchScreen, make, makeButton } from './dom.js';
import { asSent } from './drafts.js';
import { keepInView } from './message.js';
import { chat } from './open_chat.js';
import { untilTakenUp } from './saved_visits.js';
import { settings } from './settings.js';
import { saidUntil, shownAfter } from './tree.js';

/** @import { Engine } from 'wick-llm' */
/** @import { Message, Place } from './tree.js' */
/** @typedef {{getBattery?: () => Promise<EventTarget & {charging: boolean}>}} Powered */

const PAUSE_MS = 350;

const promptField = /** @type {HTMLTextAreaElement} */ (byId('prompt'));
const log = byId('log');
const chips = make('div', {
  ...{ className: 'suggestions follow-ups', role: 'group', ariaLabel: 'You could ask' },
});

/** @type {(text: string) => unknown} */
let say = () => {};
/**
 * Returns questions that the model is known to answer and that follow from the conversation; undefined if
 * the model should write some.
 * @type {(said: string) => string[] | undefined}
 */
let known = () => undefined;
/** @type {typeof import('./early_answers.js') | undefined} */
let early;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let pausing;
/** Counts events that invalidate earlier plans. */
let turn = 0;

// ---- conditions ----

/** The reason why no answer may be started; empty if answers may be started. */
let power = 'not known yet';

/** @returns {string} */
const reasonOff = () => (settings.ahead ? power : 'switched off');

async function watchPower() {
  const { getBattery } = /** @type {Powered} */ (navigator);
  const battery = await getBattery?.call(navigator).catch(() => undefined);
  const read = () => {
    if (battery) power = battery.charging ? '' : 'on battery';
    else power = hasTouchScreen() ? 'this device may be on battery' : '';
    update();
  };
  battery?.addEventListener('chargingchange', read);
  read();
}

/** Called when the switch or the power has changed. */
export function update() {
  const reason = reasonOff();
  note('Before Enter', reason && `off: ${reason}`);
  if (reason) drop();
  else plan();
}

// ---- drafts ----

/** @param {Place} tree @param {string} content @returns {Message} the question as it will be asked */
function typed(tree, content) {
  const parent = shownAfter(tree).at(-1) ?? tree;
  const said = { content, media: attachedMedia(), parent, children: [] };
  return { id: '', role: 'user', state: 'whole', created: 0, ...said };
}

/** @param {string} text */
function wanted(text) {
  const question = typed(chat.tree, text);
  return { body: bodyFor({ question, count: 1 }), path: saidUntil(question) };
}

/** @param {number} own the plan's number */
const isVoid = (own) =>
  own !== turn || reasonOff() !== '' || chat.running !== undefined || !chat.engine;

async function load() {
  early ??= await import('./early_answers.js');
  await Promise.all([untilTakenUp(), bookReady()]);
  return early;
}

/** Starts to answer the typed text after a pause. */
function plan() {
  clearTimeout(pausing);
  const own = ++turn;
  const text = asSent(promptField.value);
  if (text.trim() === '') return void early?.dropDraft();
  if (isVoid(own)) return undefined;
  note('Before Enter', 'waiting for a pause');
  pausing = setTimeout(
    () => begin(own, text).catch((error) => note('Before Enter', `not started: ${error.message}`)),
    PAUSE_MS,
  );
  return undefined;
}

/** @param {number} own the plan's number @param {string} text of the draft */
async function begin(own, text) {
  const { beginDraft } = await load();
  const { engine } = chat;
  if (isVoid(own) || !engine || asSent(promptField.value) !== text) return;
  await untilHeld([...shownAfter(chat.tree), { media: attachedMedia() }]);
  const { body, path } = wanted(text);
  await beginDraft(engine, body, sessionFor(engine, path));
}

/** @param {string[]} questions */
function showChips(questions) {
  chips.replaceChildren(...questions.map((text) => makeButton(text, () => say(text))));
  keepInView(() => log.append(chips));
}

/** Prepares questions that could come next, and the beginnings of their answers. */
async function followUp() {
  const own = turn;
  const { engine, tree } = chat;
  if (!engine || isVoid(own) || document.body.classList.contains('continuing')) return;
  const path = shownAfter(tree);
  if (path.at(-1)?.state !== 'whole') return; // the next message would continue it
  if (path.some(({ media }) => media?.some(({ kind }) => kind !== 'text'))) return; // images would be decoded again for each of them
  const { beginFollowUps, suggest } = await load();
  const isStill = () => tree === chat.tree && path.at(-1) === shownAfter(tree).at(-1);
  const asked = new Set(path.map(({ content }) => content));
  const said = path.slice(-2).map(({ content }) => content);
  const some = known(said.join(' '))?.filter((text) => !asked.has(text));
  const { body } = wanted('');
  const questions = some ?? (await suggest(engine, body, sessionFor(engine, path)).catch(() => []));
  if (reasonOff() !== '' || chat.running || !isStill() || questions.length === 0) return;
  const shown = questions.slice(0, 2);
  showChips(shown);
  const all = shown.map((text) => wanted(text));
  await beginFollowUps(
    engine,
    all.map(({ body: one }) => one),
    sessionFor(engine, all[0].path),
  );
}

/** Discards all drafts and frees their pages. */
function drop() {
  clearTimeout(pausing);
  turn++;
  chips.remove();
  early?.dropAll();
}

/**
 * Returns the question that is being answered before it is sent.
 * @returns {{messages: import('wick-llm').ChatMessage[], text: string}[]}
 */
export const begunAhead = () => early?.begunQuestions() ?? [];

/**
 * Calls drop() and waits.
 * @returns {Promise<void>} a promise that settles when all their pages have been freed
 */
export async function giveBack() {
  drop();
  await early?.untilGivenBack();
}

/**
 * Returns the beginning of an answer, and the rest as it streams. All other answers that were started
 * are discarded.
 * @param {Engine} engine
 * @param {object} body of bodyFor
 * @param {{signal: AbortSignal, live: import('./progress_line.js').Live}} how
 * @returns {ReturnType<typeof import('./early_answers.js').take>} undefined if it was not started
 */
export function takeEarly(engine, body, how) {
  clearTimeout(pausing);
  turn++;
  chips.remove();
  if (reasonOff() === '') note('Before Enter', '');
  return early?.take(engine, body, how);
}

/** @param {{say: typeof say, known: typeof known}} page */
export function startAhead(page) {
  say = page.say;
  known = page.known;
  promptField.addEventListener('input', plan);
  log.addEventListener('conversation', drop);
  for (const name of ['memory', 'engine'])
    log.addEventListener(name, () => {
      drop();
      update();
    });
  log.addEventListener('answered', () => {
    plan();
    followUp().catch(() => {}); // the engine is closed
  });
  watchPower();
}
