// examples/chat/picker.js — the dialog in which a model is chosen: one of a list, a file, or what is searched for or pasted.
// Its header is read and judged before its weights come.

import { attach } from './attaching.js';
import { byId, formatBytes, makeButton } from './dom.js';
import { examine, readDevice, speedsHere } from './examine.js';
import { isModel } from './first_bytes.js';
import { hubAddress, listHubFiles, mirrored, searchHub, useHub } from './hub.js';
import { refresh } from './manager.js';
import { models, nameOfUrl } from './models.js';
import { specOf } from './specs.js';
import { judge } from './verdict.js';
import { wishFor } from './wishes.js';

/** @typedef {import('./wishes.js').Wish} Wish */
/** @typedef {import('./verdict.js').Verdict} Verdict */

/** Who types rests so long. */
const SETTLE_MS = 400;

const dialog = /** @type {HTMLDialogElement} */ (byId('model-dialog'));
const field = /** @type {HTMLInputElement} */ (byId('model-url'));
const fileField = /** @type {HTMLInputElement} */ (byId('model-file'));
const found = byId('found');

/** @type {(wish: Wish) => unknown} */
let load = () => {};
/** @type {AbortController | undefined} */
let looking;
/** What was judged last. @type {{url: string, verdict: Verdict} | undefined} */
let judged;

/** An address or a file would take precedence over the choice in the list. */
function forgetOwn() {
  fileField.value = '';
  field.value = '';
  looking?.abort();
  judged = undefined;
  found.replaceChildren();
}

// ---- what is found ----

/** @param {string} text @param {string} [className] */
function line(text, className = 'hint') {
  const element = document.createElement('p');
  element.className = className;
  element.textContent = text;
  return element;
}

/** @param {[text: string, note: string, action: () => void][]} rows */
function listOf(rows) {
  const list = document.createElement('ul');
  for (const [text, note, action] of rows) {
    const button = makeButton('', action, 'row');
    const small = document.createElement('small');
    small.textContent = note;
    button.append(text, ' ', small);
    const item = document.createElement('li');
    item.append(button);
    list.append(item);
  }
  return list;
}

/** @param {string} text */
function pick(text) {
  field.value = text;
  lookUp();
}

/** @param {string} text @param {AbortSignal} signal */
async function showSearch(text, signal) {
  const all = await searchHub(text, signal);
  if (all.length === 0) return [line('The hub has no GGUF model of these words.')];
  return [
    listOf(
      all.map(({ name, downloads, isGated }) => [
        name,
        `${downloads.toLocaleString('en')} downloads${isGated ? ', asks for a login' : ''}`,
        () => pick(name),
      ]),
    ),
  ];
}

/** @param {{name: string, revision: string, type?: string}} spec @param {AbortSignal} signal */
async function showRepository({ name, revision, type }, signal) {
  const all = await listHubFiles(name, revision, signal);
  const wanted = type
    ? all.filter(({ path }) => path.toLowerCase().includes(type.toLowerCase()))
    : all;
  if (wanted.length === 1 && type) {
    queueMicrotask(() => pick(wanted[0].url));
    return [];
  }
  if (wanted.length === 0)
    return [line(`${name} has no GGUF file${type ? ` of type ${type}` : ''}.`)];
  return [
    listOf(wanted.map(({ path, bytes, url }) => [path, formatBytes(bytes), () => pick(url)])),
  ];
}

/** @param {Verdict} verdict @param {string} name */
function cardOf({ fits, verdict, facts }, name) {
  const card = document.createElement('section');
  card.className = `verdict ${fits}`;
  card.setAttribute('aria-label', `What is known of ${name}`);
  const list = document.createElement('dl');
  for (const [term, text] of facts) {
    const [dt, dd] = ['dt', 'dd'].map((tag) => document.createElement(tag));
    dt.textContent = term;
    dd.textContent = text;
    list.append(dt, dd);
  }
  card.append(line(name, 'name'), line(verdict, 'says'), list);
  return card;
}

/** @param {string} url @param {AbortSignal} signal */
async function showFile(url, signal) {
  const { facts, limitBytes } = await examine({ url: mirrored(url) }, signal);
  const verdict = judge(facts, await readDevice(limitBytes), speedsHere());
  if (signal.aborted) return [];
  judged = { url, verdict };
  return [cardOf(verdict, nameOfUrl(url))];
}

const spec = () => specOf(mirrored(field.value.trim()), hubAddress(), document.baseURI);

async function lookUp() {
  looking?.abort();
  const own = new AbortController();
  looking = own;
  judged = undefined;
  const wanted = spec();
  if (wanted.kind === 'none') return found.replaceChildren();
  found.replaceChildren(line(wanted.kind === 'file' ? 'Reading its header …' : 'Asking the hub …'));
  try {
    const { signal } = own;
    const shown =
      wanted.kind === 'search'
        ? await showSearch(wanted.text, signal)
        : wanted.kind === 'repository'
          ? await showRepository(wanted, signal)
          : await showFile(wanted.url, signal);
    if (looking === own) found.replaceChildren(...shown);
  } catch (error) {
    if (looking !== own) return undefined;
    found.replaceChildren(line(/** @type {Error} */ (error).message, 'says bad'));
  }
  return undefined;
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

function lookUpSoon() {
  clearTimeout(timer);
  timer = setTimeout(lookUp, SETTLE_MS);
}

// ---- choosing ----

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

/** @returns {Wish | undefined} a file, or one of the list */
function readWish() {
  const files = [...(fileField.files ?? [])];
  if (files.length > 0) return { name: files[0].name, source: { file: files } };
  const id = new FormData(/** @type {HTMLFormElement} */ (byId('model-form'))).get('model');
  const model = models.find((one) => one.id === id);
  return model && wishFor(model);
}

/** @param {Wish | undefined} wish */
function take(wish) {
  dialog.close();
  forgetOwn();
  if (wish) load(wish);
}

/** What was typed is judged before it is loaded; what does not fit is loaded when the user insists. */
async function takeTyped() {
  clearTimeout(timer);
  const wanted = spec();
  if (wanted.kind !== 'file') return lookUp();
  const { url } = wanted;
  const wasJudged = judged?.url === url;
  if (!wasJudged) await lookUp();
  const known = /** @type {typeof judged} */ (judged);
  const isFine = known === undefined || known.verdict.fits !== 'no' || wasJudged;
  const isStill = dialog.open && /** @type {any} */ (spec()).url === url;
  if (isStill && isFine) take({ name: nameOfUrl(url), source: { url } });
  return undefined;
}

/** @param {File[]} files that were dropped or opened: models are loaded, texts go into the message */
export async function takeFiles(files) {
  const areModels = await Promise.all(files.map(isModel));
  const own = files.filter((_, index) => areModels[index]);
  const others = files.filter((_, index) => !areModels[index]);
  if (own.length > 0) load({ name: own[0].name, source: { file: own } });
  if (others.length > 0) await attach(others);
}

/** @param {DragEvent} event @returns {boolean} text that is dragged into a field goes there by itself */
const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes('Files') ?? false;

function takeDrops() {
  addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    byId('drop-hint').hidden = false;
  });
  addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) byId('drop-hint').hidden = true;
  });
  addEventListener('drop', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    byId('drop-hint').hidden = true;
    const files = [...(event.dataTransfer?.files ?? [])];
    takeFiles(files).catch(() => {}); // the file is gone
  });
}

/** The hub is asked before its address is kept. */
async function takeHub() {
  const says = byId('hub-state');
  const address = /** @type {HTMLInputElement} */ (byId('hub-address'));
  says.textContent = 'Asking it …';
  try {
    await useHub(address.value);
    address.value = hubAddress();
    says.textContent = 'Models are searched for and downloaded there.';
    lookUp();
  } catch (error) {
    says.textContent = /** @type {Error} */ (error).message;
  }
}

/** @param {(wish: Wish) => unknown} loadWish */
export function startPicker(loadWish) {
  load = loadWish;
  listModels();
  byId('choose-model').addEventListener('click', () => {
    dialog.returnValue = '';
    /** @type {HTMLInputElement} */ (byId('hub-address')).value = hubAddress();
    byId('hub-state').textContent = '';
    dialog.showModal();
    refresh();
  });
  field.addEventListener('input', lookUpSoon);
  byId('use-hub').addEventListener('click', takeHub);
  byId('hub-address').addEventListener('keydown', (event) => {
    if (event.key !== 'Enter') return;
    event.preventDefault(); // the dialog's own button is Load
    takeHub();
  });
  byId('model-form').addEventListener('submit', (event) => {
    event.preventDefault();
    if (fileField.files?.length || field.value.trim() === '') take(readWish());
    else takeTyped();
  });
  dialog.addEventListener('close', forgetOwn);
  byId('cancel-choice').addEventListener('click', () => dialog.close());
  takeDrops();
}
