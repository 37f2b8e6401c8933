// examples/chat/attachments.js — files, images and recordings in messages: those in the message field,
// and the parts of a model's prompt. media.js, which is loaded with the first one, shows, stores and
// records them.

import { asBlock } from './blocks.js';
import { byId, make } from './dom.js';
import { readValue } from './local_storage.js';

/**
 * `id` is its name in the media store, `type` the file's type. Of a PDF, only the text is attached.
 * @typedef {{id: string, kind: 'image' | 'audio' | 'text', name: string, type: string}} Medium
 */

/** The text of files, and the bytes of images and recordings, by id. @type {Map<string, Blob | string>} */
export const held = new Map();
/** The media of the message field. @type {Medium[]} */
let attached = [];
/** The kinds that the loaded model supports. @type {string[]} */
let readable = [];

export const loadMedia = () => import('./media.js');

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
export const isReadable = (kind) => kind === 'text' || readable.includes(kind);

/** Returns the first attached medium that the model does not support. */
export const unreadMedium = () => attached.find(({ kind }) => !isReadable(kind));

/** The verb of the default question, and the noun, by the kind of the attachments. */
const KINDS = {
  image: ['Describe', 'image'],
  audio: ['Transcribe', 'recording'],
  text: ['Summarise', 'file'],
};

/** Returns the question for a message without text. */
export function questionOfMedia() {
  const [kind, ...others] = new Set(attached.map((one) => one.kind));
  if (!kind) return '';
  const [verb, noun] = others.length > 0 ? ['Describe', 'file'] : KINDS[kind];
  return `${verb} ${attached.length === 1 ? `this ${noun}` : `these ${noun}s`}.`;
}

/** @param {Medium} medium @returns {string} the text of a file, or the name of an image or a recording */
export function asText({ id, kind, name }) {
  const content = held.get(id);
  if (typeof content === 'string') return asBlock(name, content);
  return `[${KINDS[kind][1]}: ${name.replaceAll(/[\r\n]/g, ' ')}]`;
}

/**
 * @param {string} text of a message
 * @param {Medium[] | undefined} media
 * @returns {any} its content for the model: files come first, so that an edited question does not
 * make the model read them again; of media that it cannot read, the names
 */
export function contentOf(text, media = []) {
  if (media.length === 0) return text;
  const parts = media.map((one) => {
    const { id, kind } = one;
    const content = held.get(id);
    if (content instanceof Blob && isReadable(kind)) return { type: kind, [kind]: content, id };
    return { type: 'text', text: `${asText(one)}\n` };
  });
  const all = [...parts, { type: 'text', text }];
  return parts.some(({ type }) => type !== 'text') ? all : all.map((one) => one.text).join('');
}

/** @param {any} content of a message for the model @returns {string} */
export const textIn = (content) =>
  Array.isArray(content) ? content.map(({ text = '' }) => text).join('') : String(content ?? '');

/**
 * @param {{media?: Medium[]}[]} path
 * @returns {Promise<void>} a promise that settles when all its stored attachments are loaded
 */
export async function untilHeld(path) {
  const missing = path.flatMap(({ media = [] }) => media).filter(({ id }) => !held.has(id));
  if (missing.length > 0) await (await loadMedia()).hold(missing);
}

/** Shows attachments above the text of a message. @param {HTMLElement} body its text @param {Medium[]} [media] */
export function showMedia(body, media = []) {
  const holder = /** @type {HTMLElement} */ (body.parentElement);
  holder.querySelector(':scope > .media')?.remove();
  if (media.length === 0) return;
  const className = media.every(({ kind }) => kind === 'text') ? 'media files' : 'media';
  const list = make('ul', { className, ariaLabel: 'Attached' });
  body.before(list);
  loadMedia().then(
    (one) => one.fillMedia(list, media),
    () => list.remove(),
  );
}

/** The key that is set after something has been attached in this browser. */
export const USED = 'wick-chat-media';
export const wasUsed = () => readValue(USED) !== undefined;
