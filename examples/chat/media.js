// examples/chat/media.js — files, images and recordings in messages: they are read and checked when
// they are attached, and shown with the message. This file is loaded with the first one.

import { createElement, FileText, Mic, Square, X } from 'lucide';
import { attachedMedia, held, isReadable, setAttached, unreadMedium } from './attachments.js';
import { addBooks } from './book.js';
import { byId, formatBytes, hasTouchScreen, make, makeButton } from './dom.js';
import { mediaIn, setMediaIn } from './drafts.js';
import { reportReading } from './file_text.js';
import { beginsWith } from './file_type.js';
import { readFile } from './media_files.js';
import { hold, keepMedium } from './media_store.js';
import { showNotice } from './notice.js';
import { chat } from './open_chat.js';
import { attach, offerBooks, stopAttaching } from './pasting.js';
import { withRoom } from './storage_quota.js';

export { dataOf, takeOut } from './media_files.js';
export { followSetting, hold, tidy } from './media_store.js';

/** @import { Medium } from './attachments.js' */
/** @import { Engine } from 'wick-llm' */

/** The maximum number per message. */
const MEDIA_MAX = 20;
/** A longer text should become a book, which is read only once. */
const BOOK_LETTERS_MIN = 6000;
/** More text would make the page slow. */
const SHOWN_LETTERS_MAX = 100_000;
const RECORDING_MS_MAX = 5 * 60 * 1000;
const UNREADABLE = { refusal: 'it could not be read. It may be a folder, or have been moved' };

const composer = byId('composer');
const strip = make('ul', {
  ...{ className: 'media attached', hidden: true, ariaLabel: 'Attached to your message' },
});
const note = make('p', { className: 'hint attached-note', role: 'status' });
composer.before(strip, note);
byId('log').addEventListener('conversation', () => {
  reading = ''; // a file that is still being read belongs to the other conversation
  drawAttached();
});

// ---- attaching ----

/** Words about the file that is being read for the open conversation; empty if none is. */
let reading = '';
const cancelReading = makeButton('Cancel', stopAttaching);

/**
 * Attaches files to the next message of a conversation. Exported books are put on the shelf instead.
 * @param {File[]} files
 * @param {import('./records.js').Conversation} about may not be open any more
 * @param {AbortSignal} signal ends the reading; files that have been read stay
 */
export async function attachFiles(files, about, signal) {
  const isOpen = () => about.id === chat.about.id;
  /** @param {string} words about the file that is being read; empty if none is */
  const tell = (words) => {
    if (!isOpen()) return;
    reading = words;
    drawNote();
  };
  /** @type {string[]} */
  const refused = [];
  /** Files with a long text, by the ids of their media. @type {Map<string, File>} */
  const long = new Map();
  for (const file of files) {
    if (await beginsWith(file, 'WICKBOOK')) {
      addBooks([file]);
      continue;
    }
    if (mediaIn(about).length >= MEDIA_MAX) {
      refused.push(`A message has at most ${MEDIA_MAX} attachments.`);
      break;
    }
    const onPage = reportReading(file.name, tell, signal);
    const found = await readFile(file, onPage).catch(() => UNREADABLE);
    if (signal.aborted) break;
    if ('refusal' in found) {
      refused.push(`${file.name}: ${found.refusal}.`);
      continue;
    }
    const { medium, content } = found;
    await addMedium(medium, content, about);
    if (typeof content === 'string' && content.length > BOOK_LETTERS_MIN) long.set(medium.id, file);
  }
  tell('');
  const leave = () =>
    setMediaIn(
      about,
      mediaIn(about).filter(({ id }) => !long.has(id)),
    );
  if (refused.length > 0) showNotice(refused.join(' '));
  else if (long.size > 0) offerBooks([...long.values()], leave);
  const isTyping = document.activeElement?.matches('input, textarea, select');
  if (!isOpen() || hasTouchScreen() || isTyping || document.querySelector('dialog:modal')) return;
  byId('prompt').focus();
}

/** @param {Medium} medium @param {Blob | string} content @param {import('./records.js').Conversation} about */
async function addMedium(medium, content, about) {
  held.set(medium.id, content);
  await withRoom(() => keepMedium(medium, content)).catch(() =>
    showNotice(`The browser could not store ${medium.name}: it will be lost after a reload.`),
  );
  const isSame = (/** @type {Medium} */ one) => one.id === medium.id && one.name === medium.name;
  const media = mediaIn(about);
  if (!media.some(isSame)) setMediaIn(about, [...media, medium]);
  byId('announcer').textContent = `${medium.name} is attached.`;
}

/** @param {Medium} medium */
async function remove(medium) {
  const index = attachedMedia().indexOf(medium);
  setAttached(attachedMedia().filter((one) => one !== medium));
  await drawAttached();
  const buttons = strip.querySelectorAll('.remove');
  const next = buttons[Math.min(index, buttons.length - 1)] ?? byId('prompt');
  /** @type {HTMLElement} */ (next).focus();
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

/** The URLs of images and recordings for elements of the page, by id. @type {Map<string, string>} */
const addresses = new Map();

/**
 * Makes a chip with the name and size of a file, which unfolds its text.
 * @param {string} name
 * @param {string} text
 */
function chipOf(name, text) {
  const size = formatBytes(Math.max(1000, new Blob([text]).size));
  const icon = createElement(FileText, { 'aria-hidden': 'true' });
  const label = make('span', { dir: 'auto' }, name);
  const content = make('pre', { tabIndex: 0, dir: 'auto' }); // so that it can be scrolled with the keyboard
  const chip = make('details', { className: 'chip' });
  chip.append(make('summary', {}, icon, label, ' ', make('small', {}, size)), content);
  chip.addEventListener('toggle', () => {
    const rest = text.length > SHOWN_LETTERS_MAX ? '\n…' : '';
    content.textContent = chip.open ? text.slice(0, SHOWN_LETTERS_MAX) + rest : '';
  });
  return chip;
}

/** @param {Medium} medium @returns {HTMLElement} */
function pictureOf(medium) {
  const { id, kind, name } = medium;
  const content = held.get(id);
  if (content === undefined)
    return make('span', { className: 'missing' }, `${name} is not in this browser.`);
  if (typeof content === 'string') return chipOf(name, content);
  const address = addresses.get(id) ?? URL.createObjectURL(content);
  addresses.set(id, address);
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
  if (latest.get(list) === media) return; // keeps the focus, and unfolded files open
  latest.set(list, media);
  await hold(media);
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
  drawMicrophone();
  drawNote();
}

function drawNote() {
  if (recorder) return;
  const unread = unreadMedium();
  const isLoaded = !(/** @type {HTMLButtonElement} */ (byId('send')).disabled);
  if (reading && note.contains(cancelReading))
    note.childNodes[0].textContent = reading; // the button keeps the focus
  else if (reading) note.replaceChildren(reading, cancelReading);
  else if (unread && isLoaded) note.replaceChildren(wordsFor(unread), ' ', chooseModel);
  else note.replaceChildren();
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
    attach([new File(pieces, name, { type })]);
  });
  recorder = own;
  own.start();
  note.textContent = 'Recording …';
  drawMicrophone();
}
