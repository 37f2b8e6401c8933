// examples/chat/page.js — the page's buttons, and its actions when it is opened.

import { WickError } from 'wick-llm';
import suggestions from '../models/suggestions.json' with { type: 'json' };
import { takeOpened, takeShared } from './app_install.js';
import { questionOfMedia } from './attachments.js';
import { startBooks } from './book.js';
import * as conversation from './conversation.js';
import { byId, hasTouchScreen, isSending, make, makeButton } from './dom.js';
import { findDownload, onDownload, takeUpDownloads } from './downloads.js';
import { startAhead, update as updateAhead } from './draft_answers.js';
import { asSent, writePrompt } from './drafts.js';
import { isFirstVisit } from './engine_start.js';
import { canBeAsked, parseUrl } from './hub.js';
import { isKept, problemOfKept } from './kept_models.js';
import { startList } from './list.js';
import { clearLoadMark, findDeadLoad } from './load_mark.js';
import {
  cancelLoading,
  choose,
  closeEngine,
  current,
  followContext,
  inWords,
  leaveInBackground,
  load,
  loadMeanwhile,
  sentence,
  showFacts,
} from './loader.js';
import { hideProblem, showProblem } from './loading.js';
import { nameOfUrl } from './models.js';
import { hideNotice, showNotice } from './notice.js';
import { chat } from './open_chat.js';
import { followSetting, isNothingStored, openStore } from './open_store.js';
import { startPageMenu } from './page_menu.js';
import { stopAttaching, untilAttached } from './pasting.js';
import { startPicker, takeFiles } from './picker.js';
import { builtIn, isSame, keyOf, lastModel, wishOf } from './requested_model.js';
import { forget } from './saved_visits.js';
import { settings } from './settings.js';
import { askToPersist, checkRoom } from './storage_quota.js';
import { knowsTools } from './tools.js';
import { startViewport } from './viewport.js';

/** @typedef {import('./requested_model.js').Wish} Wish */

/** The part of a wrong URL that is shown. */
const URL_LETTERS_MAX = 100;

byId('cancel-loading').addEventListener('click', cancelLoading);
byId('hide-loading').addEventListener('click', leaveInBackground);

// ---- talking ----

const promptField = /** @type {HTMLTextAreaElement} */ (byId('prompt'));
const composer = /** @type {HTMLFormElement} */ (byId('composer'));

/** @param {string} text */
async function send(text) {
  const asked = text.trim() === '' ? questionOfMedia() : asSent(text);
  if (asked === '') return;
  hideProblem();
  const isAsked = await conversation.say(asked).catch(tell);
  if (isAsked === false) return sendLater(asked);
  if (current().loaded?.isBuiltIn)
    import('./model_offer.js')
      .then((one) => one.offerLarger(conversation.lastAnswer(), load))
      .catch(() => {});
  askToPersist();
  checkRoom().catch(() => {}); // the browser may not report its storage space
  await showFacts().catch(() => {}); // more threads may have started; the engine may be closed
}

/** @param {unknown} error of an answer */
function tell(error) {
  const isGone = error instanceof WickError && error.code === 'WORKER_CRASHED';
  const { wished } = current();
  const again = isGone && wished ? load.bind(undefined, wished, undefined) : undefined;
  if (isGone) closeEngine().catch(() => {});
  showProblem(inWords(error), again);
}

/** Stops waiting with a message that was sent before the model was ready. */
let endWaiting = () => {};

/**
 * Keeps the message in its field until the model is ready, and then sends it.
 * @param {string} text
 */
function sendLater(text) {
  if (text.trim() === '' && questionOfMedia() === '') return;
  if (promptField.value.trim() === '') writePrompt(text); // the message was chosen instead of typed
  endWaiting();
  const { isLoading, wished } = current();
  if (wished && !isLoading)
    return showNotice('No model is loaded.', () => byId('choose-model').click(), 'Choose a model');
  const { id } = chat.about;
  const waiting = new AbortController();
  endWaiting = () => waiting.abort();
  const end = () => {
    endWaiting();
    hideNotice();
  };
  const onEngine = () => {
    if (!current().engine) return;
    end();
    if (chat.about.id === id) composer.requestSubmit();
  };
  byId('log').addEventListener('engine', onEngine, { signal: waiting.signal });
  const words = 'Your message will be answered when the model is ready.';
  showNotice(words, end, 'Cancel the message', true);
  return undefined;
}

composer.addEventListener('submit', async (event) => {
  event.preventDefault();
  const { id } = chat.about;
  const attached = untilAttached(id); // a file that is being read belongs to the message
  if (attached && !(await attached)) return;
  if (conversation.isAnswering() || chat.about.id !== id) return; // keeps the typed text
  if (current().engine) send(promptField.value);
  else sendLater(promptField.value);
});
promptField.addEventListener('input', () => {
  // on a touch keyboard, Enter does not send
  const isEmpty = promptField.value.trim() === '' && questionOfMedia() === '';
  if (!current().engine) byId('send').toggleAttribute('disabled', isEmpty);
});
promptField.addEventListener('keydown', (event) => {
  if (!isSending(event)) return;
  event.preventDefault();
  composer.requestSubmit();
});
addEventListener('keydown', (event) => {
  const { key, shiftKey, ctrlKey, metaKey, isComposing } = event;
  if (isComposing || document.querySelector('dialog:modal')) return;
  const isCopy = shiftKey && (ctrlKey || metaKey) && key.toLowerCase() === 'c';
  const text = isCopy ? conversation.lastAnswer() : '';
  const isGoing = key === 'Escape' && shiftKey;
  if (isGoing) promptField.focus();
  else if (key === 'Escape') {
    conversation.stop();
    stopAttaching();
  }
  const canCopy = text !== '' && navigator.clipboard;
  if (isGoing || canCopy) event.preventDefault(); // browsers would open their task list or developer tools
  if (!canCopy) return;
  navigator.clipboard.writeText(text).then(
    () => showNotice('The last answer was copied.'),
    () => showNotice('This page may not use the clipboard.'),
  );
});
byId('stop').addEventListener('click', conversation.stop);
byId('new-chat').addEventListener('click', () => {
  conversation.openNew();
  promptField.focus();
});
byId('log').addEventListener('problem', (event) => tell(/** @type {CustomEvent} */ (event).detail));

/** Questions that the built-in model can answer, without a system prompt. */
const known =
  /** @type {{label: string, group?: string, prompt: string, system?: string, follows?: string[]}[]} */ (
    suggestions
  ).filter(({ system }) => !system);

/**
 * Questions that follow from the conversation and that the built-in model can answer.
 * @param {string} said
 */
const followingFrom = (said) =>
  known
    .filter(({ follows = [] }) => follows.some((word) => said.toLowerCase().includes(word)))
    .map(({ prompt }) => prompt);

for (const name of new Set(known.flatMap(({ group }) => group ?? []))) {
  const buttons = known
    .filter(({ group }) => group === name)
    .map(({ label, prompt }) =>
      Object.assign(
        makeButton(label, () => send(prompt)),
        { title: prompt },
      ),
    );
  byId('suggestions').append(make('section', {}, make('h3', {}, name), ...buttons));
}

byId('settings-dialog').addEventListener('close', () => {
  conversation.keepSettings();
  followSetting(chat.about.id).catch(tell);
  if (!settings.remember) forget();
  updateAhead();
  followContext().catch(tell);
});

byId('open-settings').addEventListener('click', async () => {
  const { fillSizes } = await import('./context_choice.js');
  const field = /** @type {HTMLSelectElement} */ (document.querySelector('[name="context"]'));
  const { engine } = current();
  await fillSizes(field, byId('context-hint'), engine).catch(() => {}); // the model was replaced
  const knows = engine && (await knowsTools(engine).catch(() => true));
  byId('tools-hint').hidden = knows !== false;
});

// ---- which model ----

/** Returns whether the model is stored, so that nothing has to be fetched. @param {Wish} wish */
const isHere = async (wish) => wish.isBuiltIn === true || (await isKept(keyOf(wish)));

/** @param {Wish} wish for a model that this browser does not have */
function offer(wish) {
  const problem = problemOfKept();
  const where = problem ? `could not be loaded: ${sentence(problem)}` : 'is not in this browser.';
  showNotice(
    `This conversation used ${wish.name}, which ${where}`,
    wish.url === undefined ? undefined : () => choose(wish),
    'Download it',
  );
}

/** Loads the model of a conversation that was opened. */
async function wantModel() {
  const about = chat.about;
  const { engine, loaded, wished, isLoading } = current();
  const wish = about.model && wishOf(about.model);
  if (about.model && !wish && about.model.name !== loaded?.name)
    return showNotice(
      `${about.model.name} was loaded from a file: choose the file again to continue with it.`,
    );
  if (!wish) return undefined;
  const isThere = engine && loaded && isSame(wish, loaded);
  if (isThere) return isLoading ? leaveInBackground() : undefined;
  if (!wished || isSame(wish, wished)) return undefined;
  if (!(await isHere(wish))) return offer(wish);
  return about === chat.about ? choose(wish) : undefined;
}

byId('log').addEventListener(
  'conversation',
  () => void wantModel().then(followContext).catch(tell),
);

// a download for which no caller waits
onDownload((one) => {
  if (one.done || one.isPaused || one.isWanted || findDownload(one.url)) return;
  const wish = wishOf({ name: one.name, url: one.url, mmproj: one.mmproj });
  if (wish) showNotice(`${one.name} has been downloaded.`, () => choose(wish), 'Use it');
});

/**
 * Reports that the browser ended an earlier page while it was loading this model.
 * @param {Wish} wish
 */
function tellDeath(wish) {
  const reason = `The browser closed this page while ${wish.name} was loading: it probably needs more memory than a page gets here.`;
  const { loaded } = current();
  const instead = loaded ? ` ${loaded.name} is used instead.` : '';
  showProblem(reason + instead, () => choose(wish));
}

/** Returns the model in the page's URL, and reports a URL that the page cannot load. @returns {Wish | undefined} */
function readLink() {
  const text = new URL(location.href).searchParams.get('model');
  if (!text) return undefined;
  const url = parseUrl(text, document.baseURI);
  const isOwn = url?.protocol === 'http:' && url.host === location.host;
  if (url && (isOwn || canBeAsked(url))) return wishOf({ name: nameOfUrl(text), url: url.href });
  const allowed = "https:// (http:// only for this page's server, localhost and 127.0.0.1)";
  const shown = `“${text.length > URL_LETTERS_MAX ? `${text.slice(0, URL_LETTERS_MAX)}…` : text}”`;
  showProblem(`${shown} is not a model URL, which must begin with ${allowed}.`);
  return undefined;
}

/**
 * Loads the model in the URL, or the model that was used last. Until it is loaded, the page's own
 * model is used.
 */
async function loadFirst() {
  const asked = readLink();
  const underWay = takeUpDownloads();
  const named = asked ?? wishOf(chat.about.model ?? lastModel());
  const dead = await findDeadLoad();
  const wouldDie = dead && named && isSame(dead, named);
  if (dead && !wouldDie) clearLoadMark(); // otherwise it would not be loaded at the next start either
  const first = named && !wouldDie && (await isHere(named)) ? named : builtIn;
  await (isSame(first, builtIn) && early ? early : load(first)); // a question may have named it already
  if (dead) tellDeath(dead);
  if (wouldDie) return undefined;
  if (asked && asked !== first) return load(asked);
  if (underWay) return load(/** @type {Wish} */ (wishOf(underWay)));
  if (named && named !== first) offer(named);
  return undefined;
}

const isNoneKnown = isNothingStored(); // the store is opened afterwards, because that creates the database
const storing = openStore();
const isNothing = Promise.race([isNoneKnown, storing.then(() => false)]); // the browser may never respond
/** Settles when a conversation is open. */
const opening = isNothing.then(async (isNew) => {
  if (isNew) return conversation.restoreNone();
  await storing;
  return conversation.restore();
});
/** The early load of the built-in model on a first visit, when no other model can have been requested. */
const early = isFirstVisit() ? loadMeanwhile(opening) : undefined;

startAhead({
  say: send,
  known: (said) => (current().loaded?.isBuiltIn ? followingFrom(said) : undefined),
});
startBooks();
startPicker();
const openShortcuts = () => import('./shortcuts.js').then((one) => one.showShortcuts());
byId('open-shortcuts').addEventListener('click', openShortcuts);
addEventListener('keydown', (event) => {
  const isTyping =
    event.target instanceof Element && event.target.closest('input, textarea, select');
  if (event.key !== '?' || isTyping || document.querySelector('dialog:modal')) return;
  event.preventDefault();
  openShortcuts();
});
startPageMenu();
startViewport();
startList(storing);
// there is a keyboard; on a touch screen, the focus would open one
if (!hasTouchScreen() && document.activeElement === document.body)
  promptField.focus({ preventScroll: true });
await opening;
if (/** @type {any} */ (globalThis).isSentEarly) composer.requestSubmit(); // noted by first_paint.js
const { problem } = await storing;
const follow = () => conversation.followAddress(location.hash.slice(1)).catch(tell);
addEventListener('hashchange', follow);
follow(); // Back may have been pressed while the page was starting
takeShared(conversation.openNew, writePrompt);
if (problem)
  showProblem(
    `Conversations are lost when you close this page, because the browser cannot save them: ${sentence(problem)}`,
  );
await loadFirst();
takeOpened(takeFiles);
