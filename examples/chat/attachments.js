// examples/chat/attachments.js — images and recordings in messages: those in the message field, and
// the parts of a model's prompt. media.js, which is loaded with the first one, shows, stores and
// records them.

import { byId } from './dom.js';
import { readValue } from './local_storage.js';

/**
 * `id` is its name in the media store, `type` the file's type.
 * @typedef {{id: string, kind: 'image' | 'audio', name: string, type: string}} Medium
 */

/** The bytes of images and recordings, by id. @type {Map<string, Blob>} */
export const held = new Map();
/** The media of the message field. @type {Medium[]} */
let attached = [];
/** The kinds that the loaded model supports. @type {string[]} */
let readable = [];

export const loadMedia = () => import('./media.js');

/** @param {File} file */
export const isMediaFile = ({ type }) => /^(image|audio|video)\//.test(type);

export const attachedMedia = () => attached;

/**
 * @param {Medium[]} media the new media of the message field
 * @param {boolean} [isNew] whether the draft has changed
 */
export function setAttached(media, isNew = true) {
  if (media.length === 0 && attached.length === 0) return;
  attached = media;
  if (isNew) byId('prompt').dispatchEvent(new Event('input'));
  loadMedia().then(({ drawAttached }) => drawAttached());
}

/** @param {string[]} kinds the kinds that the current model supports */
export function useReadable(kinds = []) {
  readable = kinds;
  if (attached.length > 0 || kinds.includes('audio') || document.getElementById('record'))
    loadMedia().then(({ drawAttached }) => drawAttached());
}

/** @param {Medium['kind']} kind */
export const isReadable = (kind) => readable.includes(kind);

/** Returns the first attached medium that the model does not support. */
export const unreadMedium = () => attached.find(({ kind }) => !isReadable(kind));

/** Returns the question for a message without text. */
export function questionOfMedia() {
  if (attached.length === 0) return '';
  if (attached.every(({ kind }) => kind === 'audio')) return 'Transcribe this recording.';
  return attached.length === 1 ? 'Describe this image.' : 'Describe these images.';
}

/**
 * @param {string} text of a message
 * @param {Medium[] | undefined} media
 * @returns {any} its content for the model, with the names of media that it cannot read
 */
export function contentOf(text, media = []) {
  if (media.length === 0) return text;
  const parts = media.map(({ id, kind, name }) => {
    const blob = isReadable(kind) ? held.get(id) : undefined;
    const word = kind === 'image' ? 'image' : 'recording';
    if (!blob) return { type: 'text', text: `[${word}: ${name}]\n` };
    return { type: kind, [kind]: blob, id };
  });
  const all = [...parts, { type: 'text', text }];
  return parts.some(({ type }) => type !== 'text') ? all : all.map((one) => one.text).join('');
}

/** @param {any} content of a message for the model @returns {string} */
export const textIn = (content) =>
  Array.isArray(content) ? content.map(({ text = '' }) => text).join('') : String(content ?? '');

/**
 * @param {{media?: Medium[]}[]} path
 * @returns {Promise<void>} a promise that settles when the bytes of all its stored media are loaded
 */
export async function untilHeld(path) {
  const missing = path.flatMap(({ media = [] }) => media).filter(({ id }) => !held.has(id));
  if (missing.length > 0) await (await loadMedia()).hold(missing);
}

/** Shows media above the text of a message. @param {HTMLElement} body its text @param {Medium[]} [media] */
export function showMedia(body, media = []) {
  const holder = /** @type {HTMLElement} */ (body.parentElement);
  holder.querySelector(':scope > .media')?.remove();
  if (media.length === 0) return;
  const list = document.createElement('ul');
  list.className = 'media';
  list.setAttribute('aria-label', 'Attached');
  body.before(list);
  loadMedia().then(
    (one) => one.fillMedia(list, media),
    () => list.remove(),
  );
}

/** The key that is set after images have been attached in this browser. */
export const USED = 'wick-chat-media';
export const wasUsed = () => readValue(USED) !== undefined;
