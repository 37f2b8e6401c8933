// examples/chat/picker.js — the dialog in which a model is chosen: from a list, as a file, by a
// search or by a URL. Its header is read and checked before its weights are loaded.

import { byId, make, makeLine, openDialog } from './dom.js';
import { isModel, isProjector } from './file_type.js';
import { hubAddress } from './hub.js';
import { isKept } from './kept_models.js';
import { addEncoders, choose, inWords } from './loader.js';
import { models, nameOfUrl } from './models.js';
import { attach, watchPastes } from './pasting.js';
import { wishFor } from './requested_model.js';

/** @import { Wish } from './requested_model.js' */
/** @import { Judged } from './model_search.js' */

/** The pause after which typing counts as finished. */
const SETTLE_MS = 400;

const dialog = /** @type {HTMLDialogElement} */ (byId('model-dialog'));
const field = /** @type {HTMLInputElement} */ (byId('model-url'));
const fileField = /** @type {HTMLInputElement} */ (byId('model-file'));
const found = byId('found');
/** The text below the list, about the chosen model. */
const listed = byId('listed');

/** @type {AbortController | undefined} */
let looking;
/** The file that was checked last. @type {Judged | undefined} */
let judged;

/** Clears the URL and the file, which would take precedence over the choice in the list. */
function forgetOwn() {
  clearTimeout(timer);
  fileField.value = '';
  field.value = '';
  looking?.abort();
  judged = undefined;
  found.replaceChildren();
  listed.replaceChildren();
}

// ---- results ----

/** @param {string} text */
function pick(text) {
  field.value = text;
  lookUp(found, text);
}

/**
 * Shows the facts about the typed or chosen model.
 * @param {HTMLElement} place @param {string} text
 * @returns {Promise<Judged | undefined>} the verdict, if it is a model file
 */
async function lookUp(place, text) {
  looking?.abort();
  const own = new AbortController();
  looking = own;
  judged = undefined;
  for (const one of [found, listed]) if (one !== place) one.replaceChildren();
  if (text.trim() === '') return void place.replaceChildren();
  place.replaceChildren(makeLine('Reading its details …'));
  try {
    const { lookFor } = await import('./model_search.js');
    const { elements, file } = await lookFor(text, pick, own.signal);
    if (looking !== own) return undefined;
    judged = file;
    place.replaceChildren(...elements);
  } catch (error) {
    if (looking !== own) return undefined;
    place.replaceChildren(makeLine(inWords(error), 'says bad'));
  }
  place.scrollIntoView({ block: 'nearest' });
  return judged;
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** @param {HTMLElement} place @param {string} text */
function lookUpSoon(place, text) {
  clearTimeout(timer);
  timer = setTimeout(() => lookUp(place, text), SETTLE_MS);
}

// ---- choosing ----

function listModels() {
  for (const model of models) {
    const known = { name: 'model', value: model.id, checked: model.isBuiltIn ?? false };
    const radio = make('input', { type: 'radio', ...known });
    radio.addEventListener('change', async () => {
      forgetOwn();
      label.after(listed); // its details are below it, even in a long list
      const isHere = model.isBuiltIn || (await isKept(model.url));
      if (!isHere && radio.checked && dialog.open) lookUpSoon(listed, model.url);
    });
    const text = make('span', {}, model.name, ' ', make('small', {}, model.note));
    const label = make('label', { className: 'choice' }, radio, text);
    byId('model-list').append(label);
  }
}

/** @param {File[]} files of a model, its encoders, or both */
async function loadFiles(files) {
  const are = await Promise.all(files.map(isProjector));
  const file = files.filter((_, index) => !are[index]);
  const mmproj = files[are.indexOf(true)];
  if (file.length === 0) return addEncoders(mmproj);
  return choose({ name: file[0].name, file, mmproj });
}

/** @returns {Wish | undefined} the choice in the list */
function readWish() {
  const id = new FormData(/** @type {HTMLFormElement} */ (byId('model-form'))).get('model');
  const model = models.find((one) => one.id === id);
  return model && wishFor(model);
}

/**
 * Handles a user's file. The file dialog accepts any name, so unsupported kinds of files are reported
 * here.
 * @param {File[]} files
 */
async function takeOwn(files) {
  if (await isModel(files[0])) {
    take();
    return loadFiles(files);
  }
  fileField.after(listed);
  listed.replaceChildren(
    makeLine(
      `${files[0].name} is not a GGUF file. Attach texts and PDFs next to the message field.`,
      'says bad',
    ),
  );
  fileField.value = '';
  return undefined;
}

/** @param {Wish} [wish] */
function take(wish) {
  dialog.close();
  forgetOwn();
  if (wish) choose(wish);
}

/**
 * Checks a model before it is loaded. A model that does not fit is loaded if the user insists.
 * @param {HTMLElement} place
 * @param {string} text typed text or a URL
 * @param {(url: string) => Wish | undefined} wishOf
 */
async function takeJudged(place, text, wishOf) {
  clearTimeout(timer);
  if (await isKept(text)) return take(wishOf(text));
  const isAgain = judged?.text === text;
  const known = isAgain ? judged : await lookUp(place, text);
  if (!dialog.open || !known || !(isAgain || known.fits !== 'no')) return;
  const wish = wishOf(known.url);
  if (wish && known.mmproj) wish.mmproj = true;
  take(wish);
}

async function takeListed() {
  const wish = readWish();
  const url = (!wish?.isBuiltIn && wish?.url) || '';
  if (url === '' || (await isKept(url))) return take(wish);
  return takeJudged(listed, url, () => wish);
}

/** @param {File[]} files that were dropped or opened: models are loaded, others are attached */
export async function takeFiles(files) {
  const checking = Promise.all(files.map(isModel));
  const attached = attach(checking.then((are) => files.filter((_, index) => !are[index])));
  const areModels = await checking;
  const own = files.filter((_, index) => areModels[index]);
  if (own.length > 0) loadFiles(own);
  await attached;
}

/** @param {DragEvent} event */
const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes('Files') ?? false;

/**
 * Ignores text dropped outside of fields (which handle it natively), because the browser would open a
 * dropped link in place of the page.
 * @param {DragEvent} event
 */
function refuseText(event) {
  if (/** @type {Element | null} */ (event.target)?.closest?.('textarea, input')) return;
  event.preventDefault();
  if (event.dataTransfer) event.dataTransfer.dropEffect = 'none';
}

function takeDrops() {
  addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return refuseText(event);
    event.preventDefault();
    byId('drop-hint').hidden = false;
  });
  addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) byId('drop-hint').hidden = true;
  });
  addEventListener('drop', (event) => {
    if (!hasFiles(event)) return refuseText(event);
    event.preventDefault();
    byId('drop-hint').hidden = true;
    const files = [...(event.dataTransfer?.files ?? [])];
    takeFiles(files).catch(() => {}); // the file is gone
  });
}

/** Queries the hub before its URL is stored. */
async function takeHub() {
  const says = byId('hub-state');
  const address = /** @type {HTMLInputElement} */ (byId('hub-address'));
  says.textContent = 'Checking …';
  try {
    const { useHub } = await import('./hub_search.js');
    await useHub(address.value);
    address.value = hubAddress();
    says.textContent = 'Models are now found on and downloaded from this hub.';
    lookUp(found, field.value);
  } catch (error) {
    says.textContent = /** @type {Error} */ (error).message;
  }
}

/** The list of stored models, loaded when the dialog is first opened. @type {Promise<typeof import('./manager.js')> | undefined} */
let manager;

async function showKept() {
  manager ??= import('./manager.js').then(async (found) => {
    await found.startManager();
    return found;
  });
  await (await manager).refresh();
}

export function startPicker() {
  listModels();
  byId('choose-model').addEventListener('click', () => {
    dialog.returnValue = '';
    /** @type {HTMLInputElement} */ (byId('hub-address')).value = hubAddress();
    byId('hub-state').textContent = '';
    openDialog(dialog);
    showKept().catch(() => {
      manager = undefined; // no network: opening the dialog again retries
    });
  });
  field.addEventListener('input', () => lookUpSoon(found, field.value));
  const attachField = /** @type {HTMLInputElement} */ (byId('attach-file'));
  byId('attach').addEventListener('click', () => attachField.click());
  attachField.addEventListener('change', () => {
    const files = [...(attachField.files ?? [])];
    attachField.value = ''; // the same file can be chosen again
    takeFiles(files).catch(() => {}); // the file is gone
  });
  byId('use-hub').addEventListener('click', takeHub);
  byId('hub-address').addEventListener('keydown', (event) => {
    if (event.key !== 'Enter') return;
    event.preventDefault(); // the dialog's default button is Load
    takeHub();
  });
  byId('model-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const wishOf = (/** @type {string} */ url) => ({ name: nameOfUrl(url), url });
    if (fileField.files?.length) takeOwn([...fileField.files]);
    else if (field.value.trim() === '') takeListed();
    else takeJudged(found, field.value, wishOf);
  });
  dialog.addEventListener('close', forgetOwn);
  byId('cancel-choice').addEventListener('click', () => dialog.close());
  takeDrops();
  watchPastes();
}
