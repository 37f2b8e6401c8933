// The fork example. One prompt is evaluated once. Stories fork from it and from each other and are shown
// side by side. A map shows the pages that they share.

import { createEngine } from 'wick-llm';
import { modelUrl } from 'wick-llm-demo-model';
import { drawPages } from './kv_map.js';

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {import('wick-llm').Session} Session */

/**
 * @template {HTMLElement} T
 * @param {string} id @param {new () => T} type
 * @returns {T}
 */
function byId(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no element ${id}`);
  return found;
}

const begin = byId('begin', HTMLButtonElement);
const stop = byId('stop', HTMLButtonElement);
const state = byId('state', HTMLElement);
const problem = byId('problem', HTMLElement);
const branchList = byId('branches', HTMLElement);

const STORIES = 3;
const telling = { maxTokens: 256, temperature: 1, topP: 0.98, minP: 0.02 };

/** @type {Engine} */
let engine;
/** @type {Session[]} */
const sessions = [];
let running = 0;
let seed = 1;
let controller = new AbortController();

/** @param {unknown} error */
function showProblem(error) {
  if (/** @type {any} */ (error)?.name === 'AbortError') return;
  problem.textContent = error instanceof Error ? error.message : String(error);
  problem.hidden = false;
}

const where = {
  picture: byId('pages', HTMLElement),
  legend: byId('legend', HTMLElement),
  words: { shared: 'shared', private: 'used by one story', free: 'free' },
};

async function showPages() {
  const stats = await engine.kvStats({ map: true });
  const { pages, forks, cowCopies, bytes } = stats;
  drawPages(where, stats);
  const megabytes = (bytes.used / 1e6).toFixed(1);
  byId('facts', HTMLElement).textContent =
    `${pages.shared} pages shared, ${forks} forks, ${cowCopies} pages copied, ${megabytes} MB in use`;
}

// A pressed button would lose the focus if it were disabled, so these buttons are marked as off and
// do nothing.
/** @param {HTMLButtonElement} button @param {boolean} isOff */
const setOff = (button, isOff) => button.setAttribute('aria-disabled', String(isOff));

/** @param {HTMLButtonElement} button */
const isOff = (button) => button.getAttribute('aria-disabled') === 'true';

function showState() {
  setOff(stop, running === 0);
  setOff(begin, running > 0);
  state.textContent = running > 0 ? `${running} being written` : 'Ready';
}

/**
 * Shows a story as an article. The text before the fork is grey.
 * @param {string} name @param {string} before
 */
function addArticle(name, before) {
  const article = document.createElement('article');
  article.innerHTML = '<h3></h3><p><span class="kept"></span><span class="new"></span></p>';
  const [title, kept, text] = ['h3', '.kept', '.new'].map(
    (selector) => /** @type {HTMLElement} */ (article.querySelector(selector)),
  );
  title.textContent = name;
  kept.textContent = before;
  const fork = document.createElement('button');
  fork.textContent = 'Fork from its middle';
  fork.disabled = true;
  article.append(fork);
  branchList.append(article);
  return { text, fork };
}

/** @param {Session} session @param {string} name @param {string} before */
async function tell(session, name, before) {
  const { signal } = controller;
  sessions.push(session);
  const { text, fork } = addArticle(name, before);
  const start = (await session.tokens()).length;
  running++;
  showState();
  try {
    for await (const piece of session.prompt('', { ...telling, seed: seed++, signal })) {
      text.textContent += piece;
    }
  } catch (error) {
    showProblem(error);
  }
  running--;
  showState();
  await showPages();
  fork.disabled = false;
  fork.onclick = () => forkFrom(session, name, before, start).catch(showProblem);
}

/** Goes back to the middle of a story and continues it differently. */
async function forkFrom(
  /** @type {Session} */ session,
  /** @type {string} */ name,
  /** @type {string} */ before,
  /** @type {number} */ start,
) {
  const tokens = await session.tokens();
  const middle = Math.max(start + 1, Math.floor((start + tokens.length) / 2));
  const child = await session.fork();
  await child.truncate(Math.min(middle, tokens.length));
  const kept = before + (await engine.detokenize(tokens.slice(start, middle)));
  await tell(child, `${name}, another way`, kept);
}

async function tellAll() {
  problem.hidden = true;
  setOff(begin, true); // disabled until the first story begins
  branchList.replaceChildren();
  for (const session of sessions.splice(0)) await session.close();
  const content = byId('beginning', HTMLTextAreaElement).value;
  const trunk = await engine.createSession();
  sessions.push(trunk);
  await trunk.append(await engine.applyTemplate([{ role: 'user', content }]));
  const forks = [];
  for (let i = 0; i < STORIES; i++) forks.push(await trunk.fork());
  await showPages();
  await Promise.all(forks.map((session, index) => tell(session, `Story ${index + 1}`, '')));
}

byId('form', HTMLFormElement).onsubmit = (event) => {
  event.preventDefault();
  if (isOff(begin)) return;
  tellAll().catch(showProblem).finally(showState);
};
stop.onclick = () => {
  if (isOff(stop)) return;
  controller.abort();
  controller = new AbortController();
};

try {
  engine = await createEngine({
    url: modelUrl,
    contextSize: 1024,
    prefixCache: false, // so that the map shows only pages that stories use
    onProgress: ({ loaded }) => {
      state.textContent = `Loading the model: ${(loaded / 1e6).toFixed(1)} MB`;
    },
  });
  showState();
  // the page is cached for offline use; service workers require HTTPS or localhost
  navigator.serviceWorker?.register('service_worker.js').catch(() => {});
} catch (error) {
  showProblem(error);
  state.textContent = '';
}
