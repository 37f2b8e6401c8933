// examples/chat/media_files.js — files to attach: reads the text of documents, checks whether this browser can decode images and
// recordings, makes images smaller, and writes all of them as text into exported conversations.

import { held } from './attachments.js';
import { readText } from './file_text.js';
import { contentIn, keepMedium, readMedium } from './media_store.js';
import { newId } from './records.js';

/** @import { Medium } from './attachments.js' */
/** @import { Whole } from './records.js' */

/** A larger image is reduced to this size, because models do not use more pixels. */
const PIXELS_MAX = 2 ** 23;
const IMAGE_BYTES_MAX = 8e6;
const AUDIO_BYTES_MAX = 50e6;
const AUDIO_MINUTES_MAX = 30;
const JPEG_QUALITY = 0.92;

/** @typedef {{medium: Medium, content: Blob | string} | {refusal: string}} Read */

/**
 * @param {File} file
 * @param {(page: number, pages: number) => void} [onPage] called for each page of a PDF
 * @returns {Promise<Read>}
 */
export async function readFile(file, onPage) {
  const { name } = file;
  const [kind] = file.type.split('/');
  let refusal = 'videos are not supported. Attach a frame of it as an image';
  if (kind === 'image' || kind === 'audio') {
    const found = kind === 'image' ? await readImage(file) : await readAudio(file);
    if (typeof found !== 'string')
      return { medium: { id: await hashOf(found), kind, name, type: found.type }, content: found };
    refusal = found;
  }
  const found = await readText(file, onPage); // browsers take TypeScript (.mts) for a video, and playlists for recordings
  if ('refusal' in found) return ['image', 'audio', 'video'].includes(kind) ? { refusal } : found;
  const id = await hashOf(new Blob([found.text]));
  return { medium: { id, kind: 'text', name, type: 'text/plain' }, content: found.text };
}

/**
 * @param {Blob} blob
 * @returns {Promise<string>} a name that is the same for the same content if the page may compute
 * hashes
 */
async function hashOf(blob) {
  if (!globalThis.crypto?.subtle) return newId();
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', await blob.arrayBuffer()));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

// ---- images ----

/**
 * Decodes an image. Drawings (SVG) can only be decoded by an element, which would show half of a
 * broken image.
 * @param {Blob} blob
 * @returns {Promise<ImageBitmap | HTMLImageElement>}
 */
async function decoded(blob) {
  if (blob.type !== 'image/svg+xml') {
    return createImageBitmap(blob, { imageOrientation: 'from-image' });
  }
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  await image.decode().finally(() => URL.revokeObjectURL(image.src));
  return image;
}

/** @param {File} file @returns {Promise<Blob | string>} a string is the reason why it is rejected */
async function readImage(file) {
  const image = await decoded(file).catch(() => undefined);
  if (!image) return 'this browser cannot read this image';
  const isElement = image instanceof HTMLImageElement;
  const [width, height] = isElement
    ? [image.naturalWidth || 1024, image.naturalHeight || 1024]
    : [image.width, image.height];
  const isSmall = width * height <= PIXELS_MAX && file.size <= IMAGE_BYTES_MAX;
  if (isSmall && !isElement) {
    image.close();
    return new Blob([file], { type: file.type });
  }
  const scale = Math.min(1, Math.sqrt(PIXELS_MAX / (width * height)));
  const made = await drawn(image, Math.round(width * scale), Math.round(height * scale));
  if (!isElement) image.close();
  return made ?? 'the browser has too little memory for an image of this size';
}

/** @param {CanvasImageSource} image @param {number} width @param {number} height @returns {Promise<Blob | undefined>} */
async function drawn(image, width, height) {
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const context = canvas.getContext('2d', { alpha: false });
  if (!context) return undefined;
  context.fillStyle = '#fff';
  context.fillRect(0, 0, width, height);
  context.drawImage(image, 0, 0, width, height);
  const blob = await new Promise((settle) => canvas.toBlob(settle, 'image/jpeg', JPEG_QUALITY));
  return blob ?? undefined;
}

// ---- recordings ----

/** @param {File} file @returns {Promise<Blob | string>} a string is the reason why it is rejected */
async function readAudio(file) {
  if (file.size > AUDIO_BYTES_MAX)
    return `the recording is larger than ${AUDIO_BYTES_MAX / 1e6} MB`;
  const context = new OfflineAudioContext(1, 1, 16000);
  const sound = await context.decodeAudioData(await file.arrayBuffer()).catch(() => undefined);
  if (!sound) return 'this browser cannot read this recording';
  const isLong = sound.duration > AUDIO_MINUTES_MAX * 60;
  return isLong
    ? `the recording is longer than ${AUDIO_MINUTES_MAX} minutes`
    : new Blob([file], { type: file.type });
}

// ---- exported conversations ----

/** @param {Blob} blob @returns {Promise<string>} base64 */
const base64Of = (blob) =>
  new Promise((settle, fail) => {
    const reader = new FileReader();
    reader.onload = () => settle(String(reader.result).replace(/^[^,]*,/, ''));
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(blob);
  });

/** @param {Medium} medium @returns {Promise<Medium & {data?: string}>} */
async function withData(medium) {
  const bytes = await readMedium(medium.id).catch(() => undefined);
  const content = held.get(medium.id) ?? bytes;
  return content === undefined ? medium : { ...medium, data: await base64Of(new Blob([content])) };
}

/**
 * @param {Whole[]} wholes
 * @returns {Promise<Whole[]>} the conversations with the bytes of their attachments, for export
 */
export const dataOf = (wholes) =>
  Promise.all(
    wholes.map(async ({ conversation, turns }) => ({
      conversation,
      turns: await Promise.all(
        turns.map(async (turn) =>
          turn.media ? { ...turn, media: await Promise.all(turn.media.map(withData)) } : turn,
        ),
      ),
    })),
  );

/** @param {string} data base64 @returns {Uint8Array<ArrayBuffer> | undefined} undefined if it is damaged */
function bytesIn(data) {
  try {
    return Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/**
 * Stores the attachments that imported conversations contain.
 * @param {Whole[]} wholes
 * @returns {Promise<boolean>} false if the browser does not store all of them
 */
export async function takeOut(wholes) {
  let isKept = true;
  for (const { turns } of wholes) {
    for (const { media = [] } of turns) {
      for (const one of /** @type {(Medium & {data?: string})[]} */ (media)) {
        const { data } = one;
        delete one.data;
        const bytes = data === undefined ? undefined : bytesIn(data);
        if (!bytes) continue;
        one.id = await hashOf(new Blob([bytes])); // a file may contain another image's id
        const content = contentIn(one, bytes.buffer);
        held.set(one.id, content);
        await keepMedium(one, content).catch(() => {
          isKept = false;
        });
      }
    }
  }
  return isKept;
}
