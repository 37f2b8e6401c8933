// examples/chat/loader.js — loads the requested model: from the store, into which it is downloaded first, from the page's own
// files, or from a user's file. The previous engine stays in use until the new one is ready.

import { createEngine, WickError } from 'wick-llm';
import { useStops } from './answer_request.js';
import { useReadable } from './attachments.js';
import { SHARED } from './built_in.js';
import { CONTEXT_USUAL } from './context_sizes.js';
import * as conversation from './conversation.js';
import { note } from './developer.js';
import { byId, formatNumber, make, makeButton } from './dom.js';
import { download, findDownload, onDownload, pause, want } from './downloads.js';
import { takeStarted, workerOption } from './engine_start.js';
import { takeInLater } from './file_import.js';
import { encodersNameOf, hubAddress, hubNameOf } from './hub.js';
import { isKept, keptModels, listKept, storeNameOf } from './kept_models.js';
import { useWords } from './known_words.js';
import { markLoad } from './load_mark.js';
import {
  hideLoading,
  hideProblem,
  showLoading,
  showProblem,
  showProgress,
  showWaiting,
} from './loading.js';
import { readValue } from './local_storage.js';
import { showNotice } from './notice.js';
import { keepPage } from './offline.js';
import { chat } from './open_chat.js';
import { builtIn, isSame, modelOf, rememberModel, temperatureOf } from './requested_model.js';
import { contextWanted, settings } from './settings.js';
import { askToPersist, makeRoom, offerRoom } from './storage_quota.js';

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {import('./templates.js').Template} Template */
/** @typedef {import('./requested_model.js').Wish} Wish */

/** The delay after the start of the first answer until the page's files are cached for later visits. */
const KEEP_MS = 1000;

/** @type {AbortController | undefined} */
let loading;
/** The model that is loaded, or was loaded last. @type {Wish | undefined} */
let wished;
/** The model that was used last. @type {Wish | undefined} */
let loaded;
/** The context that was requested when the model was loaded. @type {number | undefined} */
let contextOfLoaded;

export const current = () => {
  const { engine } = chat;
  return { engine, loaded, wished, isLoading: loading !== undefined };
};

/** @param {unknown} error @returns {string} */
export function inWords(error) {
  const code = error instanceof WickError ? error.code : '';
  const text = error instanceof Error ? error.message : String(error);
  if (code === 'PROMPT_TOO_LONG') {
    const [sizes] = text.split(' (option');
    return `This conversation is longer than the model can read: ${sizes}. Start a new chat, or edit an earlier question.`;
  }
  if (code === 'UNSUPPORTED' && typeof Worker !== 'function')
    return 'this browser offers no web workers, in which models run. Allow them in its settings and extensions, or use a current Chrome, Edge, Firefox or Safari.';
  if (code === 'CSP' && /worker/.test(text))
    return "a Content Security Policy blocks the web worker in which models run. Turn off extensions that block scripts on this page. On your own server, let worker-src allow 'self'.";
  // code could not be loaded on demand: each browser words the error differently, with the file's
  // URL
  return /imported module|module script/.test(text)
    ? 'A part of this page could not be loaded. Check the network connection.'
    : text;
}

/** @param {unknown} error */
export const sentence = (error) => inWords(error).replace(/[^.!?]$/, '$&.');

export async function showFacts() {
  const info = await chat.engine?.info();
  if (!info) return;
  const parameters = info.shape ? info.shape.parameters : 0;
  const size =
    parameters > 1e9 ? `${(parameters / 1e9).toFixed(1)} B` : `${(parameters / 1e6).toFixed(1)} M`;
  const threads = info.threads > 1 ? `${info.threads} threads` : 'one thread';
  const facts = {
    Name: loaded?.name,
    Size: parameters > 0 && `${size} parameters`,
    Context: `${formatNumber(info.contextSize)} tokens`,
    Processor: crossOriginIsolated ? threads : `${threads}: the page is not cross-origin isolated`,
    'WebAssembly code': info.kernels,
    Engine: info.sharing === 'follower' && 'the one in another tab',
  };
  const rows = Object.entries(facts).filter(([, text]) => text);
  byId('facts').replaceChildren(
    ...rows.flatMap(([name, text]) => [make('dt', {}, name), make('dd', {}, String(text))]),
  );
}

/** @param {boolean} isReady @param {boolean} [isBuiltIn] */
function setReady(isReady, isBuiltIn = false) {
  /** @type {HTMLButtonElement} */ (byId('send')).disabled = !isReady;
  byId('suggestions').hidden = !(isReady && isBuiltIn);
}

/** @param {Engine | undefined} made @param {Wish} [wish] its model */
function setEngine(made, wish) {
  // A very small model answers best with its most likely tokens.
  conversation.setEngine(made, temperatureOf(wish), wish && modelOf(wish));
  const words = async () => {
    await conversation.untilQuiet();
    if (chat.engine === made) await useWords(wish?.isBuiltIn ? made : undefined);
  };
  words().catch((error) => note('Known words', error.message));
}

/**
 * Continues with the previous model after a failure, or else with the built-in one.
 * @typedef {{reason: string, again: () => void}} Failure an empty reason means that the user did
 * not want to wait
 * @param {Wish} wish the model that could not be loaded
 * @param {Failure} failure
 * @param {boolean} wasBefore whether it was the previous model
 * @returns {Promise<void> | undefined}
 */
function goBack(wish, failure, wasBefore) {
  if (chat.engine && loaded) {
    wished = loaded;
    if (failure.reason)
      showProblem(`${failure.reason} ${loaded.name} is still loaded.`, failure.again);
    return undefined;
  }
  byId('model-name').textContent = 'No model';
  byId('facts').textContent = '';
  byId('suggestions').hidden = true;
  const candidates = wasBefore ? [builtIn] : [loaded, builtIn];
  const back = candidates.find((one) => one && !isSame(one, wish));
  const { reason, again } = failure;
  if (reason) showProblem(back ? `${reason} Going back to ${back.name}.` : reason, again);
  return back && load(back, failure);
}

/** Closes the previous model, which stops answering. */
export async function closeEngine() {
  const before = chat.engine;
  if (!before) return;
  conversation.stop();
  setEngine(undefined);
  setReady(false);
  await before.close();
}

/**
 * Generates a token, so that a model that does not work does not replace one that does.
 * @param {Engine} made
 * @param {AbortSignal} signal
 */
const sayWord = (made, signal) => made.generate('Hello', { maxTokens: 1, signal }).text();

// ---- the source of its bytes ----

/** @param {AbortSignal} signal @returns {Promise<never>} */
const untilAborted = (signal) =>
  new Promise((_, fail) => {
    if (signal.aborted) fail(signal.reason);
    signal.addEventListener('abort', () => fail(signal.reason));
  });

/**
 * Downloads a model into the store. The download continues even when no caller waits for it any
 * more.
 * @param {Parameters<typeof download>[0]} wanted
 * @param {AbortSignal} signal
 */
async function fetchModel(wanted, signal) {
  const aborted = untilAborted(signal);
  aborted.catch(() => {});
  try {
    await Promise.race([download(wanted, true), aborted]);
  } catch (error) {
    const isFull = error instanceof WickError && error.code === 'STORAGE_FULL';
    if (!isFull || signal.aborted || !(await makeRoom())) throw error;
    await Promise.race([download(wanted, true), aborted]);
  }
}

/**
 * Returns the option for the encoders of images and audio, if the model has any. A model from the hub has them if
 * they were loaded with it before.
 * @param {Wish} wish
 * @returns {Promise<{mmproj?: Blob | string, hub?: object}>}
 */
async function encodersOf({ url = '', kept, mmproj }) {
  if (mmproj instanceof Blob) return { mmproj };
  if (kept !== undefined) {
    const blob = mmproj && (await (await keptModels())?.blob(String(mmproj)));
    return blob ? { mmproj: blob } : {};
  }
  const name = encodersNameOf(hubNameOf(url));
  const isWanted = name !== '' && (mmproj || (await isKept(name)));
  return isWanted ? { mmproj: name, hub: { endpoint: hubAddress() } } : {};
}

/** Models that the user loads although the storage cannot hold them. @type {Set<string>} */
const notToKeep = new Set();

/**
 * @param {Wish} wish
 * @param {AbortSignal} signal
 * @returns {Promise<{options: object, isNew?: boolean}>} `isNew`: whether it was not stored before
 */
async function bringModel(wish, signal) {
  const { name, url = '', file, kept, isBuiltIn } = wish;
  const shared = SHARED;
  const encoders = await encodersOf(wish);
  if (file) return { options: { file, ...encoders } };
  if (kept !== undefined) return { options: { model: kept, cache: 'only', shared, ...encoders } };
  // the service worker caches it with the page
  const unkept = { options: { url, cache: false, shared, ...encoders } };
  if (isBuiltIn || notToKeep.has(url) || !(await keptModels())) return unkept;
  const fromStore = async () => {
    const stored = await storeNameOf(url);
    const how = { hub: { endpoint: hubAddress() }, shared, ...encoders };
    return stored === url ? { url, cache: true, ...how } : { model: stored, ...how };
  };
  if (await isKept(url)) return { options: await fromStore() };
  const address = new URL(url, document.baseURI).href;
  try {
    await fetchModel({ url: address, name, ...(wish.mmproj === true && { mmproj: true }) }, signal);
  } catch (error) {
    const isFull = error instanceof WickError && error.code === 'STORAGE_FULL';
    if (!isFull) throw error;
    const part = (await listKept()).find(({ urls }) =>
      urls.some((one) => [address, hubNameOf(address)].includes(one)),
    );
    if (part?.storedBytes) {
      offerRoom(`Storage has no room for the rest of ${name}. The downloaded part is kept.`, [
        makeButton('Load it without saving', () => {
          notToKeep.add(url);
          load({ name, url, mmproj: wish.mmproj });
        }),
      ]);
      throw error;
    }
    offerRoom(`Storage has no room for ${name}: it is loaded, but not saved.`);
    return unkept;
  }
  return { options: await fromStore(), isNew: true };
}

onDownload((one) => {
  const isWaited = loading && wished?.url !== undefined && one.isWanted;
  if (!isWaited || one.isPaused) return;
  if (one.isWaiting) return showWaiting();
  const { progress, bytesPerSecond } = one;
  const { received: bytes, total } = progress;
  const secondsLeft = total && bytesPerSecond > 0 ? (total - bytes) / bytesPerSecond : undefined;
  showProgress({ loaded: bytes, total, bytesPerSecond, secondsLeft, phase: 'loading' });
});

/** Removes a new model that cannot generate a word. @param {Wish} wish @param {unknown} error */
async function dropBad(wish, error) {
  const code = error instanceof WickError ? error.code : '';
  const isOurs = ['NOMEM', 'NO_SHARED_MEMORY', 'WORKER_CRASHED', 'CLOSED', 'WASM', 'CSP', ''];
  if (isOurs.includes(code) || wish.url === undefined) return;
  await (await keptModels())?.delete(await storeNameOf(wish.url)).catch(() => {});
}

// ---- its context ----

/**
 * Creates an engine. A context above the default size adds only its own part of the KV cache; the memory for
 * forks and the prefix cache is unchanged.
 * @param {number | undefined} context in tokens
 * @param {any} options
 * @returns {Promise<Engine>} an engine with the default context if this one is impossible
 */
async function createSized(context, options) {
  if (context === undefined) return takeStarted(options) ?? createEngine(options);
  const kvTokens = context + 3 * CONTEXT_USUAL;
  try {
    return await createEngine({ ...options, contextSize: context, kvTokens });
  } catch (error) {
    if (!(error instanceof WickError) || options.signal.aborted) throw error;
    const made = await createEngine(options);
    const { contextSize } = await made.info();
    showNotice(
      `The context has ${formatNumber(contextSize)} tokens instead of ${formatNumber(context)}: ${sentence(error)}`,
    );
    return made;
  }
}

/**
 * @param {number | undefined} context in tokens
 * @param {any} options
 * @param {Wish} wish without encoders afterwards if they are damaged or of an unknown kind
 * @returns {Promise<Engine>} an engine without the encoders if they cannot be loaded
 */
async function createWith(context, { mmproj, ...options }, wish) {
  if (mmproj === undefined) return createSized(context, options);
  try {
    return await createSized(context, { ...options, mmproj });
  } catch (error) {
    if (options.signal.aborted) throw error;
    const made = await createSized(context, options);
    const isNetwork =
      error instanceof WickError && ['NETWORK', 'HTTP', 'CORS'].includes(error.code);
    if (!isNetwork) delete wish.mmproj;
    showNotice(`It reads text only: its encoders could not be loaded. ${sentence(error)}`);
    return made;
  }
}

/** Reloads the model if the open conversation needs a different context size. */
export async function followContext() {
  const isOther = () => chat.engine && loaded && !loading && contextOfLoaded !== contextWanted();
  if (!isOther()) return;
  await conversation.untilAnswered();
  if (isOther() && loaded) await load(loaded);
}

// ---- loading ----

/** Settles when a conversation is open. A new engine waits for this. @type {Promise<unknown>} */
let opened = Promise.resolve();

/**
 * Loads the page's own model while the page opens its store.
 * @param {Promise<unknown>} opening settles when the conversation is open
 */
export function loadMeanwhile(opening) {
  opened = opening.catch(() => {}); // the page reports the error
  return load(builtIn);
}

/**
 * @param {Wish} wish
 * @param {Failure} [failed] the failure of the model that was requested before this one
 * @returns {Promise<void>}
 */
export async function load(wish, failed) {
  wished = wish;
  loading?.abort();
  want(); // the download continues, but its model does not start to answer automatically
  const own = new AbortController();
  const { signal } = own;
  loading = own;
  // the same model with different settings; another model stays in use until the new one is ready
  if (loaded && isSame(loaded, wish)) await closeEngine();
  showLoading(wish.name);
  /** @type {Engine | undefined} */
  let made;
  let isNew = false;
  let endMark = () => {};
  try {
    const brought = await bringModel(wish, signal);
    isNew = brought.isNew === true;
    signal.throwIfAborted();
    endMark = markLoad(wish);
    const context = contextWanted();
    const create = (/** @type {Template | undefined} */ template) =>
      createWith(
        context,
        {
          ...brought.options,
          ...workerOption(),
          signal,
          onProgress: showProgress,
          ...(settings.threads && { threads: settings.threads }),
          ...(template && { chatTemplate: template.source }),
        },
        wish,
      );
    let template = await knownTemplate(wish, isNew, { ...brought.options, signal });
    signal.throwIfAborted();
    made = await create(template);
    signal.throwIfAborted();
    if (!wish.isBuiltIn && !template && (await hasNoTemplate(made))) {
      template = await rememberedFor(wish);
      await made.close();
      made = await create(template);
    }
    if (isNew || wish.file) await sayWord(made, signal);
    await opened;
    await conversation.untilAnswered();
    signal.throwIfAborted();
    await closeEngine();
    contextOfLoaded = context;
    await begin(made, wish, template);
    if (isNew) askToPersist(true); // the downloaded model should not be evicted
  } catch (error) {
    await made?.close(); // it could not generate a token
    if (isNew) await dropBad(wish, error);
    if (loading !== own) return;
    const isCancelled = /** @type {Error} */ (error).name === 'AbortError';
    const reason = isCancelled ? '' : `${wish.name} could not be loaded: ${sentence(error)}`;
    const failure = {
      reason: [failed?.reason, reason].filter(Boolean).join(' '),
      again: failed?.again ?? (() => load(wish)),
    };
    await goBack(wish, failure, failed !== undefined);
  } finally {
    endMark();
    if (loading === own) {
      loading = undefined;
      hideLoading();
    }
  }
}

// ---- models without a chat template ----

/** @param {Engine} made */
const hasNoTemplate = async (made) => (await made.info()).chatTemplate === null;

/**
 * @param {Wish} wish a model without its own template
 * @returns {Promise<Template>} the template that it uses
 */
async function rememberedFor(wish) {
  const { rememberTemplate, templateFor } = await import('./templates.js');
  const template = templateFor(wish);
  rememberTemplate(wish, template);
  return template;
}

/**
 * Returns the template, which the engine needs when it is created. It is known for a model that was
 * loaded before; for a new model, the file's header is read first.
 * @param {Wish} wish
 * @param {boolean} isNew
 * @param {any} options of its engine
 * @returns {Promise<Template | undefined>} undefined if the model has its own template, as far as
 * is known
 */
async function knownTemplate(wish, isNew, options) {
  if (wish.isBuiltIn) return undefined;
  const areKnown = readValue('wick-chat-templates') !== undefined;
  const known = areKnown && (await import('./templates.js')).knownTemplate(wish);
  if (known) return known;
  if (!isNew && !wish.file) return undefined;
  const { shared, mmproj, ...own } = options;
  const header = await createEngine({ ...own, directoryOnly: true, threads: 1 });
  const isWithout = await hasNoTemplate(header).finally(() => header.close());
  return isWithout ? rememberedFor(wish) : undefined;
}

/** Hides the template of a different model. */
let hideTemplate = () => {};

/** @param {Wish} wish @param {Template | undefined} template */
async function showTemplateOf(wish, template) {
  useStops(template?.stops ?? []);
  hideTemplate();
  if (!template) return;
  const templates = await import('./templates.js');
  hideTemplate = templates.hideTemplate;
  templates.showTemplate(template, async (chosen) => {
    templates.rememberTemplate(wish, chosen);
    await load(wish);
    try {
      if (loaded && isSame(loaded, wish)) await chat.engine?.applyTemplate(templates.trial);
    } catch (error) {
      templates.rememberTemplate(wish, template);
      await load(wish);
      throw error;
    }
  });
}

/** @param {Engine} made @param {Wish} wish @param {Template} [template] */
async function begin(made, wish, template) {
  await showTemplateOf(wish, template);
  useReadable(wish.isBuiltIn ? [] : (await made.info()).media);
  setEngine(made, wish);
  loaded = wish;
  rememberModel(wish);
  byId('model-name').textContent = wish.name;
  setReady(true, wish.isBuiltIn);
  setTimeout(keepPage, KEEP_MS);
  // a question that was waiting is answered first
  conversation
    .untilQuiet()
    .then(showFacts)
    .catch(() => {}); // the engine may be closed
  if (wish.file) takeInLater(wish, keepName);
}

/** Records that the current model's file is now in the store. @param {Wish} kept */
function keepName(kept) {
  if (!loaded?.file || loaded.name !== kept.name) return;
  if (wished === loaded) wished = kept;
  loaded = kept;
  rememberModel(kept);
  const isOpen = chat.about.model?.name === kept.name;
  conversation.nameModel(modelOf(kept), isOpen);
}

/** Adds encoders that were chosen without a model to the loaded model. @param {File} mmproj */
export async function addEncoders(mmproj) {
  if (!loaded || loaded.isBuiltIn)
    return showNotice(`${mmproj.name} contains only encoders: choose it together with its model.`);
  return choose({ ...loaded, mmproj });
}

/**
 * Loads the user's new choice, also for the open conversation, and clears earlier errors.
 * @param {Wish} wish
 */
export async function choose(wish) {
  hideProblem();
  const { about } = chat;
  await load(wish);
  if (loaded && wished === loaded && isSame(loaded, wish) && about.id === chat.about.id)
    conversation.nameModel(modelOf(loaded));
}

/** Cancels loading. The stored part of a download is kept. */
export function cancelLoading() {
  const underWay = wished && downloadOf(wished);
  if (underWay) pause(underWay.url);
  loading?.abort(new DOMException('It was cancelled', 'AbortError'));
}

/** Continues the download in the background and keeps the previous model. */
export function leaveInBackground() {
  if (!wished) return;
  const { name } = wished;
  const wasFetched = downloadOf(wished) !== undefined;
  want();
  loading?.abort(new DOMException('It continues in the background', 'AbortError'));
  if (wasFetched) showNotice(`${name} is being downloaded in the background.`);
}

/** @param {Wish} wish */
const downloadOf = ({ url }) =>
  url === undefined ? undefined : findDownload(new URL(url, document.baseURI).href);
