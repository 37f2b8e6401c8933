// examples/chat/page.js — the page: the choice of a model, the conversation, the buttons.

import { createEngine, WickError } from 'wick-llm';
import suggestions from '../models/suggestions.json' with { type: 'json' };
import * as conversation from './conversation.js';
import { showEngine } from './developer.js';
import { byId } from './dom.js';
import { followSetting, openStore } from './keeping.js';
import { startList } from './list.js';
import { hideLoading, hideProblem, showLoading, showProblem, showProgress } from './loading.js';
import { keepInView } from './message.js';
import { models, nameOfUrl } from './models.js';
import { showNotice } from './notice.js';
import { Arrival, keepPage } from './offline.js';
import { askToPersist, checkRoom } from './room.js';
import { settings } from './settings.js';
import { forget, takeUpState } from './visits.js';

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {import('./models.js').ModelChoice} ModelChoice */
/** @typedef {{name: string, source: {url: string} | {file: File[]}, isBuiltIn?: boolean}} Wish */

/** @param {ModelChoice} model @returns {Wish} */
const wishFor = ({ name, url, isBuiltIn }) => ({ name, source: { url }, isBuiltIn });

const builtIn = wishFor(/** @type {ModelChoice} */ (models.find((m) => m.isBuiltIn)));

/** @param {Wish} wish @returns {import('./records.js').ModelName} to keep with a conversation */
const modelOf = ({ name, source }) => ({ name, ...('url' in source && { url: source.url }) });

/** @returns {Wish | undefined} the model of the conversation that is open, else the last one; files are not kept */
function rememberedWish() {
  const { name, url } = conversation.current().model ?? lastModel() ?? {};
  if (!name || !url) return undefined;
  const choice = models.find((one) => one.url === url || one.name === name);
  return choice ? wishFor(choice) : { name, source: { url } };
}

/** @type {Engine | undefined} */
let engine;
/** @type {AbortController | undefined} */
let loading;
/** What is loaded, or was last. @type {Wish | undefined} */
let wished;
/** What answered last. @type {Wish | undefined} */
let loaded;

/** @param {unknown} error @returns {string} */
function inWords(error) {
  if (error instanceof WickError && error.code === 'PROMPT_TOO_LONG') {
    const [sizes] = error.message.split(' (option');
    return `This conversation is longer than the model can read: ${sizes}. Begin a new chat, or edit an earlier question.`;
  }
  return error instanceof Error ? error.message : String(error);
}

/** @param {unknown} error */
const sentence = (error) => inWords(error).replace(/[^.!?]$/, '$&.');

async function showFacts() {
  const info = await engine?.info();
  if (!info) return;
  const parameters = info.shape ? info.shape.parameters : 0;
  const size =
    parameters > 1e9 ? `${(parameters / 1e9).toFixed(1)} B` : `${(parameters / 1e6).toFixed(1)} M`;
  byId('facts').textContent = [
    `${size} parameters`,
    `context ${info.contextSize}`,
    info.threads > 1 ? `${info.threads} threads` : 'one thread',
    info.kernels,
    info.sharing === 'follower' ? 'the engine is in another tab' : '',
    crossOriginIsolated ? '' : 'not isolated: no threads',
  ]
    .filter(Boolean)
    .join(' · ');
}

/** @param {boolean} isReady @param {boolean} [isBuiltIn] */
function setReady(isReady, isBuiltIn = false) {
  /** @type {HTMLButtonElement} */ (byId('send')).disabled = !isReady;
  byId('suggestions').hidden = !(isReady && isBuiltIn);
}

/** @param {Engine | undefined} made @param {Wish} [wish] what it is */
function setEngine(made, wish) {
  engine = made;
  // A very small model is best with its likeliest tokens.
  conversation.setEngine(made, wish?.isBuiltIn ? 0 : 0.7, wish && modelOf(wish));
}

const LAST_MODEL = 'wick-chat-model';

/** @returns {import('./records.js').ModelName | undefined} that answered last in this browser */
function lastModel() {
  try {
    return JSON.parse(localStorage.getItem(LAST_MODEL) ?? 'null') ?? undefined;
  } catch {
    return undefined; // no storage here, or unknown content
  }
}

/** @param {Wish} wish */
function rememberModel(wish) {
  try {
    if (settings.remember) localStorage.setItem(LAST_MODEL, JSON.stringify(modelOf(wish)));
  } catch {
    // a page without storage begins with its own model
  }
}

/** @param {Wish} a @param {Wish} b */
const isSame = (a, b) =>
  a === b || ('url' in a.source && 'url' in b.source && a.source.url === b.source.url);

/**
 * A chat needs a model: after a failure it continues with the previous one, else with the built-in one.
 * @typedef {{reason: string, again: () => void}} Failure empty reason: the user did not want to wait
 * @param {Wish} wish that could not be loaded
 * @param {Failure} failure
 * @param {boolean} wasBefore it was the one before
 */
function goBack(wish, failure, wasBefore) {
  if (engine && loaded) {
    wished = loaded;
    if (failure.reason) showProblem(`${failure.reason} ${loaded.name} goes on.`, failure.again);
    return;
  }
  byId('model-name').textContent = 'No model';
  byId('facts').textContent = '';
  const candidates = wasBefore ? [builtIn] : [loaded, builtIn];
  const back = candidates.find((one) => one && !isSame(one, wish));
  const { reason, again } = failure;
  if (reason) showProblem(back ? `${reason} Going back to ${back.name}.` : reason, again);
  if (back) load(back, failure);
}

/** What answered before answers no longer. */
async function closeEngine() {
  const before = engine;
  if (!before) return;
  conversation.stop();
  setEngine(undefined);
  showEngine(undefined);
  setReady(false);
  await before.close();
}

/**
 * Generates a token before a new model replaces the stored one: a model that cannot compute does not.
 * @param {Engine} made
 * @param {AbortSignal} signal
 */
const sayWord = (made, signal) => made.generate('Hello', { maxTokens: 1, signal }).text();

/**
 * @param {Wish} wish
 * @param {Failure} [failed] of what was wished before this one
 * @param {boolean} [isFromKept] the server's model was no model, the one that is kept here may be
 */
async function load(wish, failed, isFromKept = false) {
  wished = wish;
  loading?.abort();
  if (!failed) hideProblem();
  const own = new AbortController();
  loading = own;
  // the same model with other settings; any other one answers until the new one is ready
  if (loaded && isSame(loaded, wish)) await closeEngine();
  showLoading(wish.name);
  const arrival = new Arrival({ isFromKept });
  let isWhole = false;
  /** @type {Engine | undefined} */
  let made;
  try {
    made = await createEngine({
      ...wish.source,
      // tabs with the same model share one engine
      ...('url' in wish.source && { shared: 'wick-chat' }),
      // what is kept is kept here: the built-in model with the page, others as they arrive
      cache: false,
      ...('url' in wish.source && !wish.isBuiltIn && { fetch: arrival.fetch }),
      signal: own.signal,
      onProgress: showProgress,
      ...(settings.threads && { threads: settings.threads }),
    });
    if (loading !== own) return void made.close();
    if (arrival.isNew) await sayWord(made, own.signal);
    if (loading !== own) return void made.close();
    isWhole = true;
    await conversation.untilAnswered();
    if (loading !== own) return void made.close();
    await closeEngine();
    showEngine(made);
    await takeUpState(made);
    if (loading !== own) return void made.close();
    setEngine(made, wish);
    loaded = wish;
    rememberModel(wish);
    byId('model-name').textContent = wish.name;
    setReady(true, wish.isBuiltIn);
    keepPage();
    await showFacts();
  } catch (error) {
    await made?.close(); // it could not generate a token
    if (loading !== own) return;
    const isCancelled = /** @type {Error} */ (error).name === 'AbortError';
    const reason = isCancelled ? '' : `${wish.name} could not be loaded: ${sentence(error)}`;
    const failure = {
      reason: [failed?.reason, reason].filter(Boolean).join(' '),
      again: failed?.again ?? (() => load(wish)),
    };
    if (arrival.hasPassedBy && !isCancelled) {
      failure.reason += ' The one that is kept in this browser is used.';
      showProblem(failure.reason, failure.again);
      load(wish, failure, true);
    } else {
      goBack(wish, failure, failed !== undefined);
    }
  } finally {
    if (isWhole) arrival.keep();
    else arrival.drop();
    if (loading === own) {
      loading = undefined;
      hideLoading();
    }
  }
}

// ---- choosing a model ----

const modelDialog = /** @type {HTMLDialogElement} */ (byId('model-dialog'));
const urlField = /** @type {HTMLInputElement} */ (byId('model-url'));
const fileField = /** @type {HTMLInputElement} */ (byId('model-file'));

/** An address or a file would take precedence over the choice in the list. */
function forgetOwn() {
  fileField.value = '';
  urlField.value = '';
}

function listModels() {
  for (const model of models) {
    const label = document.createElement('label');
    label.className = 'choice';
    const radio = document.createElement('input');
    radio.type = 'radio';
    radio.name = 'model';
    radio.value = model.id;
    radio.checked = model.isBuiltIn ?? false;
    radio.addEventListener('change', forgetOwn);
    const note = document.createElement('small');
    note.textContent = model.note;
    const text = document.createElement('span');
    text.append(model.name, ' ', note);
    label.append(radio, text);
    byId('model-list').append(label);
  }
}

/** @returns {Wish | undefined} what the dialog says: a file, an address, or one of the list */
function readWish() {
  const files = [...(fileField.files ?? [])];
  if (files.length > 0) return { name: files[0].name, source: { file: files } };
  const url = urlField.value.trim();
  if (url !== '') return { name: nameOfUrl(url), source: { url } };
  const id = new FormData(/** @type {HTMLFormElement} */ (byId('model-form'))).get('model');
  const model = models.find((m) => m.id === id);
  return model && wishFor(model);
}

byId('choose-model').addEventListener('click', () => {
  modelDialog.returnValue = '';
  modelDialog.showModal();
});
modelDialog.addEventListener('close', () => {
  const wish = modelDialog.returnValue === 'load' ? readWish() : undefined;
  forgetOwn();
  if (wish) load(wish);
});
byId('cancel-choice').addEventListener('click', () => modelDialog.close());
byId('cancel-loading').addEventListener('click', () => loading?.abort());

// ---- a file dropped on the page ----

addEventListener('dragover', (event) => {
  event.preventDefault();
  byId('drop-hint').hidden = false;
});
addEventListener('dragleave', (event) => {
  if (event.relatedTarget === null) byId('drop-hint').hidden = true;
});
addEventListener('drop', (event) => {
  event.preventDefault();
  byId('drop-hint').hidden = true;
  const files = [...(event.dataTransfer?.files ?? [])];
  if (files.length > 0) load({ name: files[0].name, source: { file: files } });
});

// ---- talking ----

const promptField = /** @type {HTMLTextAreaElement} */ (byId('prompt'));

/** @param {string} text @param {string} [system] */
async function send(text, system) {
  if (!engine || text.trim() === '') return;
  hideProblem();
  await conversation.say(text.trim(), system).catch(tell);
  askToPersist();
  checkRoom().catch(() => {}); // the browser does not tell
  await showFacts().catch(() => {}); // more threads may have started; the engine may be closed
}

/** @param {unknown} error of an answer */
function tell(error) {
  const isGone = error instanceof WickError && error.code === 'WORKER_CRASHED';
  const again = isGone && wished ? load.bind(undefined, wished) : undefined;
  if (isGone) closeEngine().catch(() => {});
  showProblem(inWords(error), again);
  keepInView(); // the message takes space
}

byId('composer').addEventListener('submit', (event) => {
  event.preventDefault();
  if (!engine || conversation.isAnswering()) return; // the typed text stays
  const text = promptField.value;
  send(text);
});
promptField.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  /** @type {HTMLFormElement} */ (byId('composer')).requestSubmit();
});
addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && document.querySelector('dialog:modal') === null)
    conversation.stop();
});
byId('stop').addEventListener('click', conversation.stop);
byId('new-chat').addEventListener('click', () => {
  conversation.openNew();
  promptField.focus();
});
byId('log').addEventListener('problem', (event) => tell(/** @type {CustomEvent} */ (event).detail));

for (const {
  label,
  prompt,
  system,
} of /** @type {{label: string, prompt: string, system?: string}[]} */ (suggestions)) {
  const button = document.createElement('button');
  button.textContent = label;
  button.title = prompt;
  button.addEventListener('click', () => send(prompt, system));
  byId('suggestions').append(button);
}

byId('settings-dialog').addEventListener('close', () => {
  conversation.keepSettings();
  followSetting(conversation.current().id).catch(tell);
  if (!settings.remember) forget();
});

/** The model of a conversation comes back with it. */
function wantModel() {
  const { model } = conversation.current();
  const wish = model && rememberedWish();
  const isThere = wish && engine && loaded && isSame(wish, loaded);
  if (isThere) loading?.abort();
  else if (wish && wished && !isSame(wish, wished)) load(wish);
  if (!model || model.url || model.name === loaded?.name) return;
  showNotice(`${model.name} was a file of yours: choose it again to go on with it.`);
}

byId('log').addEventListener('conversation', wantModel);

listModels();
startList({ ...conversation, tell });
const { problem, taken } = await openStore();
await conversation.restore(taken);
const asked = new URL(location.href).searchParams.get('model');
load(asked ? { name: nameOfUrl(asked), source: { url: asked } } : (rememberedWish() ?? builtIn));
if (problem) showProblem(`This browser keeps no conversations: ${sentence(problem)}`);
