// examples/chat/media.js — images and recordings in messages: they are checked and made smaller
// when they are attached, and shown with the message. This file is loaded with the first one.

import { createElement, Mic, Square, X } from 'lucide';
import { attachedMedia, held, isReadable, setAttached, unreadMedium } from './attachments.js';
import { byId, make, makeButton } from './dom.js';
import { readFile } from './media_files.js';
import { keepMedium, readMedium } from './media_store.js';
import { showNotice } from './notice.js';

export { dataOf, takeOut } from './media_files.js';
export { followSetting, tidy } from './media_store.js';

/** @typedef {import('./attachments.js').Medium} Medium */
/** @typedef {import('wick-llm').Engine} Engine */

/** The maximum number per message. */
const MEDIA_MAX = 10;
const RECORDING_MS_MAX = 5 * 60 * 1000;

const composer = byId('composer');
const strip = make('ul', {
  ...{ className: 'media attached', hidden: true, ariaLabel: 'Attached to your message' },
});
const note = make('p', { className: 'hint attached-note', role: 'status' });
composer.before(strip, note);

// ---- their bytes ----

/** @param {Medium[]} media whose bytes are not loaded yet */
export async function hold(media) {
  await Promise.all(
    media.map(async ({ id, type }) => {
      const bytes = await readMedium(id).catch(() => undefined);
      if (bytes && !held.has(id)) held.set(id, new Blob([bytes], { type }));
    }),
  );
}

/** @type {Map<string, string>} */
const addresses = new Map();

/** @param {string} id @returns {string | undefined} a URL for an element of the page */
function addressOf(id) {
  const blob = held.get(id);
  if (blob && !addresses.has(id)) addresses.set(id, URL.createObjectURL(blob));
  return addresses.get(id);
}

// ---- attaching ----

/** @param {File[]} files */
export async function attachFiles(files) {
  /** @type {string[]} */
  const refused = [];
  for (const file of files) {
    if (attachedMedia().length >= MEDIA_MAX) {
      refused.push(`A message has at most ${MEDIA_MAX} images and recordings.`);
      break;
    }
    note.textContent = `Reading ${file.name} …`;
    const found = await readFile(file);
    if ('refusal' in found) refused.push(`${file.name}: ${found.refusal}.`);
    else await addMedium(found.medium, found.blob);
  }
  drawAttached();
  if (refused.length > 0) showNotice(refused.join(' '));
}

/** @param {Medium} medium @param {Blob} blob */
async function addMedium(medium, blob) {
  held.set(medium.id, blob);
  await keepMedium(medium, blob).catch(() =>
    showNotice(`There is no storage left for ${medium.name}: it will be lost after a reload.`),
  );
  if (!attachedMedia().some(({ id }) => id === medium.id))
    setAttached([...attachedMedia(), medium]);
}

/** @param {Medium} medium */
function remove(medium) {
  const index = attachedMedia().indexOf(medium);
  setAttached(attachedMedia().filter((one) => one !== medium));
  setTimeout(() => {
    const buttons = strip.querySelectorAll('.remove'); // because they were redrawn
    const next = buttons[Math.min(index, buttons.length - 1)] ?? byId('prompt');
    /** @type {HTMLElement} */ (next).focus();
  });
}

// ---- showing ----

const picture = make('img');
const close = makeButton('Close', () => dialog.close());
const dialog = make('dialog', { className: 'enlarged', ariaLabel: 'Image' }, picture, close);
dialog.addEventListener('click', ({ target }) => target === dialog && dialog.close());
document.body.append(dialog);

/** @param {Medium} medium @param {string} address */
function enlarge({ name }, address) {
  picture.src = address;
  picture.alt = name;
  dialog.showModal();
  close.focus();
}

/** @param {Medium} medium @returns {HTMLElement} */
function pictureOf(medium) {
  const { id, kind, name } = medium;
  const address = addressOf(id);
  if (!address) return make('span', { className: 'missing' }, `${name} is not in this browser.`);
  if (kind === 'audio') return make('audio', { controls: true, src: address, ariaLabel: name });
  const button = makeButton('', () => enlarge(medium, address), 'thumbnail');
  button.title = `Enlarge ${name}`;
  button.append(make('img', { src: address, alt: name }));
  return button;
}

/** The media that each list shows or will show. @type {WeakMap<HTMLElement, Medium[]>} */
const latest = new WeakMap();

/** @param {HTMLElement} list @param {Medium[]} media @param {(medium: Medium) => HTMLElement[]} [controls] */
export async function fillMedia(list, media, controls = () => []) {
  latest.set(list, media);
  await hold(media.filter(({ id }) => !held.has(id)));
  if (latest.get(list) !== media) return; // it has changed in the meantime
  list.replaceChildren(...media.map((one) => make('li', {}, pictureOf(one), ...controls(one))));
}

/** @param {Medium} medium */
function removeButton(medium) {
  const button = makeButton('', () => remove(medium), 'remove');
  button.append(createElement(X, { 'aria-hidden': 'true' }));
  button.setAttribute('aria-label', `Remove ${medium.name}`);
  button.title = 'Remove';
  return button;
}

/** @param {Medium} medium that the model cannot read */
function wordsFor({ kind }) {
  const model = byId('model-name').textContent;
  return kind === 'image'
    ? `${model} cannot read images. Choose SmolVLM from the list of models, or a model file of yours together with its mmproj file.`
    : `${model} cannot read recordings. Choose Ultravox or Voxtral together with its mmproj file.`;
}

const chooseModel = makeButton('Choose a model', () => byId('choose-model').click());

/** Shows the message field's current attachments, and the microphone. */
export async function drawAttached() {
  const media = attachedMedia();
  await fillMedia(strip, media, (one) => [removeButton(one)]);
  strip.hidden = media.length === 0;
  const unread = unreadMedium();
  drawMicrophone();
  if (recorder) return;
  note.replaceChildren();
  const isLoaded = !(/** @type {HTMLButtonElement} */ (byId('send')).disabled);
  if (unread && isLoaded) note.append(wordsFor(unread), ' ', chooseModel);
  note.classList.toggle('says', Boolean(unread));
}

/** Reports media that the model cannot read: a message is not sent without them. */
export function tellUnread() {
  const unread = unreadMedium();
  if (!unread) return;
  const what = unread.kind === 'image' ? 'images' : 'recordings';
  const words = `Not sent: ${byId('model-name').textContent} cannot read ${what}. Remove them, or choose another model.`;
  showNotice(words, () => byId('choose-model').click(), 'Choose a model');
}

// ---- their cost ----

/** The costs by engine and medium. @type {WeakMap<Engine, Map<string, Promise<number>>>} */
const costs = new WeakMap();

/** @param {Engine} engine @param {any} part @returns {Promise<number>} the tokens of a medium */
function costOf(engine, part) {
  const known = costs.get(engine) ?? new Map();
  costs.set(engine, known);
  const count = async () => (await engine.mediaCost(part)).tokens;
  if (!known.has(part.id)) known.set(part.id, count());
  known.get(part.id).catch(() => known.delete(part.id));
  return known.get(part.id);
}

/**
 * Counts the tokens of a conversation; the cost of each image is computed once.
 * @param {Engine} engine
 * @param {import('wick-llm').ChatMessage[]} messages
 * @param {object} options of countTokens
 */
export async function countMessages(engine, messages, options) {
  /** @type {any[]} */
  const parts = [];
  const texts = messages.map((message) => {
    const { content } = message;
    if (!Array.isArray(content)) return message;
    parts.push(...content.filter(({ type }) => type !== 'text'));
    const said = content.filter(({ type }) => type === 'text');
    return { ...message, content: said.map((/** @type {any} */ { text }) => text).join('') };
  });
  const all = [engine.countTokens(texts, options), ...parts.map((part) => costOf(engine, part))];
  return (await Promise.all(all)).reduce((sum, tokens) => sum + tokens, 0);
}

// ---- the microphone ----

const microphone = makeButton('', () => (recorder ? recorder.stop() : record()), 'icon');
microphone.id = 'record';
/** @type {MediaRecorder | undefined} */
let recorder;

function drawMicrophone() {
  const canRecord = navigator.mediaDevices && globalThis.MediaRecorder;
  if (!canRecord || !isReadable('audio')) return microphone.remove();
  const name = recorder ? 'Stop recording' : 'Record speech';
  microphone.replaceChildren(createElement(recorder ? Square : Mic, { 'aria-hidden': 'true' }));
  microphone.setAttribute('aria-label', name);
  microphone.title = name;
  microphone.classList.toggle('recording', recorder !== undefined);
  if (!microphone.isConnected) byId('send').before(microphone);
  return undefined;
}

async function record() {
  /** @type {MediaStream} */
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch (error) {
    const isRefused = /** @type {Error} */ (error).name === 'NotAllowedError';
    showNotice(isRefused ? 'This page may not use the microphone.' : 'No microphone was found.');
    return;
  }
  const own = new MediaRecorder(stream);
  /** @type {Blob[]} */
  const pieces = [];
  own.addEventListener('dataavailable', ({ data }) => pieces.push(data));
  const begun = performance.now();
  const clock = setInterval(() => {
    const ms = performance.now() - begun;
    note.textContent = `Recording: ${Math.floor(ms / 1000)} s`;
    if (ms > RECORDING_MS_MAX) own.stop();
  }, 500);
  own.addEventListener('stop', () => {
    clearInterval(clock);
    for (const track of stream.getTracks()) track.stop();
    recorder = undefined;
    note.textContent = '';
    const type = own.mimeType.split(';')[0];
    const name = `Recording of ${new Date().toLocaleTimeString()}`;
    attachFiles([new File(pieces, name, { type })]);
  });
  recorder = own;
  own.start();
  note.textContent = 'Recording …';
  drawMicrophone();
}
