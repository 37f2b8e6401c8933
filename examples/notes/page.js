// examples/notes/page.js — the page: its folder, its model, the index built from both, and the
// search.

import { byId } from '../chat/dom.js';
import { keepPage } from '../chat/offline.js';
import { inWords, useModelChoice } from '../shared/model_choice.js';
import { forgetAll, readNotes, readSetting, readVectors, writeSetting } from './database.js';
import { embedders, examineEmbedder, prefixesOf } from './embedders.js';
import { countEmbedded, embedNotes } from './embedding.js';
import { listDropped, listFiles, listHandle, listTexts } from './folder.js';
import { idOfFolder } from './folders.js';
import { readFolder } from './reading.js';
import { showHits } from './results.js';
import { searchMeaning, WordIndex } from './searching.js';

/** @typedef {import('./database.js').Note} Note */
/** @typedef {import('./database.js').Vectors} Vectors */
/** @typedef {import('./folder.js').Listing} Listing */

const LOCK = 'wick-notes';
const NEWS_MS = 1000;
const SEARCH_MS = 120;
const SKIPPED_SHOWN = 200;
/** The number of notes whose words are indexed before control returns to the page. */
const NOTES_AT_ONCE = 100;

let folder = '';
/** @type {FileSystemDirectoryHandle | undefined} */
let handle;
/** The notes by path. @type {Map<string, Note>} */
let notes = new Map();
/** The loaded model's vectors, by note path. @type {Map<string, Vectors>} */
let vectors = new Map();
let words = new WordIndex();
/** @type {{id: string, prefixes: import('./embedders.js').Prefixes} | undefined} */
let model;

/** The channel to other tabs of this page. */
const news = new BroadcastChannel('wick-notes');
const number = (/** @type {number} */ value) => value.toLocaleString('en');

/** @param {string} id @param {unknown} [error] */
function showProblem(id, error) {
  byId(id).hidden = error === undefined;
  byId(id).textContent = error === undefined ? '' : inWords(error);
}

// ---- the folder ----

/** @param {Note[]} all */
async function useNotes(all) {
  notes = new Map(all.map((note) => [note.path, note]));
  for (const [index, note] of all.entries()) {
    words.put(note);
    if (index % NOTES_AT_ONCE === 0) await new Promise((settle) => setTimeout(settle));
  }
  await readKeptVectors();
  searchSoon();
}

async function readKeptVectors() {
  vectors = new Map();
  if (!model || !folder) return;
  const kept = await readVectors(model.id, folder);
  vectors = new Map(kept.map((one) => [one.path, one]));
}

/** @type {AbortController | undefined} */
let reading;

/** @param {Listing} taken */
async function takeFolder(taken) {
  reading?.abort();
  const own = new AbortController();
  reading = own;
  stopEmbedding();
  showProblem('folder-problem');
  byId('reading-bar').hidden = false;
  try {
    const listing = { ...taken, name: await idOfFolder(taken, handle).catch(() => taken.name) };
    own.signal.throwIfAborted();
    const found = await readFolder(listing, {
      signal: own.signal,
      onProgress: (done, all) => {
        /** @type {HTMLProgressElement} */ (byId('reading-bar')).value = done / all;
        byId('folder-state').textContent = `Reading ${number(done)} of ${number(all)} notes`;
      },
    });
    own.signal.throwIfAborted();
    if (folder !== listing.name) words = new WordIndex();
    folder = listing.name;
    const there = new Set(found.notes.map(({ path }) => path));
    for (const path of notes.keys()) if (!there.has(path)) words.remove(path);
    await useNotes(found.notes);
    showFolder(found, listing.isCut);
    const setting = { name: folder, ...(handle && { handle }) };
    await writeSetting('folder', setting).catch((error) =>
      showProblem('folder-problem', storageWords(error)),
    );
    if (found.unkept > 0) showProblem('folder-problem', unkeptWords(found.unkept));
    news.postMessage('changed');
    if (pausedBy === 'problem') pausedBy = undefined; // the problem may be solved: users choose a folder again once there is space
    embed();
  } catch (error) {
    if (!own.signal.aborted) showProblem('folder-problem', storageWords(error));
    if (reading !== own) return;
    if (folder) showFolder();
    else byId('folder-state').textContent = 'No folder yet.';
  } finally {
    if (reading === own) {
      reading = undefined;
      byId('reading-bar').hidden = true;
    }
  }
}

const unkeptWords = (/** @type {number} */ count) =>
  `The storage of this browser is full. ${number(count)} notes can be searched until you leave the page. Free some space, and choose the folder again.`;

/** @param {unknown} error @returns {Error} */
function storageWords(error) {
  const isFull = /** @type {any} */ (error)?.name === 'QuotaExceededError';
  const full =
    'The storage of this browser is full. The index so far is kept. Free some space, and resume.';
  return new Error(isFull ? full : inWords(error));
}

/** @param {import('./reading.js').Reading} [found] @param {boolean} [isCut] */
function showFolder(found, isCut = false) {
  const count = [...notes.values()].reduce((sum, { passages }) => sum + passages.length, 0);
  const changes = found
    ? ` ${number(found.read)} new or changed, ${number(found.removed)} removed.`
    : ' Unchanged since the last visit.';
  const empty = found?.isEmpty
    ? ' The folder has no notes now: these are from the last visit.'
    : '';
  byId('folder-state').textContent =
    `${folder}: ${number(notes.size)} notes, ${number(count)} passages.${empty || changes}` +
    (isCut ? ' The folder has more files than are read.' : '');
  byId('again').hidden = !handle;
  byId('try-example').hidden = true;
  byId('forget').hidden = false;
  const skipped = found?.skipped ?? [];
  byId('skipped').hidden = skipped.length === 0;
  byId('skipped-title').textContent = `${number(skipped.length)} files are left out`;
  byId('skipped-list').replaceChildren(
    ...skipped
      .slice(0, SKIPPED_SHOWN)
      .map(({ path, reason }) =>
        Object.assign(document.createElement('li'), { textContent: `${path}: ${reason}` }),
      ),
  );
}

async function chooseFolder() {
  const pick = /** @type {any} */ (globalThis).showDirectoryPicker;
  if (!pick) {
    byId('folder-files').click();
    return;
  }
  try {
    handle = await pick({ id: 'notes', mode: 'read' });
    await takeFolder(await listHandle(/** @type {FileSystemDirectoryHandle} */ (handle)));
  } catch (error) {
    if (/** @type {any} */ (error)?.name !== 'AbortError') showProblem('folder-problem', error);
  }
}

async function tryExample() {
  try {
    handle = undefined;
    const answer = await fetch('guide.json');
    if (!answer.ok) throw new Error(`The guide could not be fetched (status ${answer.status}).`);
    await takeFolder(listTexts(await answer.json(), 'Guide of Wick'));
  } catch (error) {
    showProblem('folder-problem', error);
  }
}

async function lookAgain() {
  if (!handle) return;
  try {
    const state = await /** @type {any} */ (handle).requestPermission?.({ mode: 'read' });
    if (state === 'denied') throw new Error('The browser may not read the folder.');
    await takeFolder(await listHandle(handle));
  } catch (error) {
    showProblem('folder-problem', error);
  }
}

async function openKept() {
  const kept = await readSetting('folder').catch(() => undefined);
  if (!kept) return;
  folder = kept.name;
  handle = kept.handle;
  await useNotes(await readNotes(folder));
  showFolder();
}

/** @param {DragEvent} event */
async function drop(event) {
  event.preventDefault();
  const item = event.dataTransfer?.items[0];
  const entry = item?.webkitGetAsEntry?.();
  if (!entry?.isDirectory) {
    showProblem('folder-problem', new Error('Choose a folder, not a file.'));
    return;
  }
  // requested immediately, because the items are not available after the event
  const asked = /** @type {any} */ (item).getAsFileSystemHandle?.();
  handle = await asked?.catch(() => undefined);
  await takeFolder(await listDropped(entry));
}

// ---- the index ----

/** @type {AbortController | undefined} */
let embedding;
/** @type {'visitor' | 'problem' | undefined} */
let pausedBy;

function stopEmbedding() {
  embedding?.abort();
  embedding = undefined;
}

/** @param {string} words */
function sayEmbedding(words) {
  byId('embedding').hidden = words === '';
  byId('embedding-state').textContent = words;
}

function progressOf() {
  let all = 0;
  let done = 0;
  for (const note of notes.values()) {
    all += note.passages.length;
    done += countEmbedded(note, vectors.get(note.path));
  }
  return { all, done };
}

/** @param {AbortController} own */
async function embedWhileAlone(own) {
  const engine = choice.engine();
  if (!engine || !model) return;
  await readKeptVectors(); // another tab may have continued
  const { all, done } = progressOf();
  if (done === all) return;
  const start = performance.now();
  let count = 0;
  let reportedAt = start;
  await embedNotes([...notes.values()], new Map(vectors), {
    engine,
    model: model.id,
    prefix: model.prefixes.passage,
    signal: own.signal,
    onPassages: (more) => {
      if (own.signal.aborted) return; // these were computed while indexing was being paused
      count += more;
      const seconds = (performance.now() - start) / 1000;
      const rate = count / Math.max(seconds, 0.1);
      const left = Math.max(0, all - done - count) / rate;
      const time = left > 90 ? `${Math.round(left / 60)} minutes` : `${Math.ceil(left)} s`;
      /** @type {HTMLProgressElement} */ (byId('embedding-bar')).value = (done + count) / all;
      sayEmbedding(
        `${number(Math.min(all, done + count))} of ${number(all)} passages, ${rate.toFixed(rate < 10 ? 1 : 0)} per second, ${time} left`,
      );
    },
    onVectors: (made) => {
      for (const one of made) vectors.set(one.path, one);
      searchSoon();
      if (performance.now() - reportedAt < NEWS_MS) return;
      reportedAt = performance.now();
      news.postMessage('changed');
    },
  });
  news.postMessage('changed');
}

/** Embeds the missing passages, in one tab at a time. */
async function embed() {
  stopEmbedding();
  if (!choice.engine() || !model || notes.size === 0 || pausedBy) return showIndex();
  const own = new AbortController();
  embedding = own;
  showProblem('embedding-problem');
  byId('pause').textContent = 'Pause';
  try {
    const { all, done } = progressOf();
    if (done < all) sayEmbedding('Starting, unless another tab is building the index …');
    const work = () => embedWhileAlone(own);
    if (navigator.locks) await navigator.locks.request(LOCK, { signal: own.signal }, work);
    else await work();
  } catch (error) {
    if (own.signal.aborted) return;
    pausedBy = 'problem';
    showProblem('embedding-problem', storageWords(error));
  } finally {
    if (embedding === own) {
      embedding = undefined;
      showIndex();
    }
  }
}

function showIndex() {
  const { all, done } = progressOf();
  const isWhole = done === all;
  byId('pause').hidden = isWhole;
  byId('pause').textContent = 'Resume';
  byId('embedding-bar').hidden = isWhole;
  if (!model || all === 0) sayEmbedding('');
  else if (isWhole) sayEmbedding(`The index is complete: ${number(all)} passages.`);
  else sayEmbedding(`Paused at ${number(done)} of ${number(all)} passages.`);
  searchSoon();
}

function togglePause() {
  pausedBy = embedding && 'visitor';
  if (pausedBy) {
    stopEmbedding();
    showIndex();
  } else embed();
}

// ---- the search ----

/** @type {ReturnType<typeof setTimeout> | undefined} */
let waiting;

function searchSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(() => search().catch(() => {}), SEARCH_MS);
}

/** @param {string} text */
async function search(text = queryText()) {
  if (text === '') {
    showHits('words', []);
    showHits('meaning', []);
    for (const id of ['words-note', 'meaning-note']) byId(id).textContent = '';
    return;
  }
  const found = words.search(text, notes);
  showHits('words', found);
  const none =
    notes.size > 0 ? 'No note contains these words.' : 'No folder of notes is chosen yet.';
  byId('words-note').textContent = found.length > 0 ? '' : none;
  const engine = choice.engine();
  if (!engine || !model) {
    byId('meaning-note').textContent = 'This search needs a model, see above.';
    return;
  }
  const [query] = await engine.embed([text], { prefix: model.prefixes.query, truncate: true });
  if (text !== queryText()) return; // more was typed
  const near = searchMeaning(query, notes, vectors);
  showHits('meaning', near);
  byId('meaning-note').textContent = near.length > 0 ? '' : 'Nothing is indexed yet.';
}

const queryText = () => /** @type {HTMLInputElement} */ (byId('query')).value.trim();

// ---- the page ----

const choice = useModelChoice({
  key: 'wick-notes-model',
  offers: embedders.map(({ name, note, url }) => ({ name, note, source: { url } })),
  begin: false,
  onEngine: async (engine, { name }) => {
    const { isEmbedder } = await examineEmbedder(engine);
    const info = await engine.info();
    await engine.embed(['a note']); // a model that does not work must not replace one that does
    stopEmbedding();
    model = { id: info.fingerprint ?? name, prefixes: prefixesOf(`${name} ${info.name ?? ''}`) };
    showProblem(
      'model-warning',
      isEmbedder
        ? undefined
        : `${name} was made to write text, not to compare texts: expect poor results. The models in the list are better.`,
    );
    byId('model-hint').hidden = true;
    setTimeout(async () => {
      await readKeptVectors();
      embed();
    });
  },
});

let newsWaiting = false;
news.addEventListener('message', () => {
  if (newsWaiting || embedding || reading) return;
  newsWaiting = true;
  setTimeout(async () => {
    newsWaiting = false;
    const kept = await readSetting('folder').catch(() => undefined);
    if (!kept || kept.name !== folder) return;
    if (embedding || reading) return;
    await useNotes(await readNotes(folder));
    if (!embedding) showIndex();
  }, NEWS_MS);
});

byId('choose-folder').addEventListener('click', chooseFolder);
byId('try-example').addEventListener('click', tryExample);
byId('again').addEventListener('click', lookAgain);
byId('folder-files').addEventListener('change', (event) => {
  const input = /** @type {HTMLInputElement} */ (event.target);
  const listing = listFiles(/** @type {FileList} */ (input.files));
  handle = undefined;
  takeFolder(listing).finally(() => {
    input.value = ''; // the same folder may be chosen again
  });
});
byId('forget').addEventListener('click', async () => {
  stopEmbedding();
  await forgetAll();
  location.reload();
});
byId('pause').addEventListener('click', togglePause);
byId('query').addEventListener('input', searchSoon);
document.addEventListener('dragover', (event) => event.preventDefault());
document.addEventListener('drop', (event) =>
  drop(event).catch((error) => showProblem('folder-problem', error)),
);

try {
  await openKept();
} catch (error) {
  showProblem('folder-problem', error);
}
await choice.start();
keepPage();
