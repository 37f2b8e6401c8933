// js/page/media_parts.js — finds images and recordings in prompts and messages, and decodes them before the request starts
// (media_decode.js, which is loaded on first use).

import { argumentError, WickError, wordsOf } from '../base/errors.js';
import { randomName } from '../base/random.js';
import { loadTasks } from './later.js';

/** @import { PlainMessage } from '../connection/messages.js' */
/** @import { Medium } from '../wasm/media_table.js' */
/** @typedef {{decodeImage?: import('../index.js').DecodeImage | null | undefined}} Decoders */
/**
 * A part that is not text: its location in the prompt, and its content.
 * @typedef {{kind: 'image' | 'audio', place: string, from: unknown}} MediaPart
 */

/** The sample rate of decoded recordings, in Hz. */
export const MEDIA_RATE = 16000;

/** The content of a part of each type. @type {Record<string, (part: any) => unknown>} */
const contents = {
  image: ({ image }) => image,
  image_url: ({ image_url: url }) => url?.url ?? url,
  audio: ({ audio }) => audio,
  input_audio: ({ input_audio: audio }) =>
    typeof audio?.data === 'string' ? `data:audio/${audio.format};base64,${audio.data}` : undefined,
};

/** @param {any} part @param {string} place @returns {MediaPart | undefined} undefined for text */
export function mediaPartOf(part, place) {
  if (part?.type === 'text' && typeof part.text === 'string') return undefined;
  const type = part?.type;
  if (typeof type !== 'string' || !Object.hasOwn(contents, type)) {
    const message = `${place}: unknown part type ${wordsOf(type)}. Text, image, image_url, audio and input_audio are supported`;
    throw new WickError('UNSUPPORTED', message);
  }
  const from = contents[type](part);
  if ((from ?? undefined) === undefined)
    throw argumentError(`${place}: part of type ${type} is empty`);
  return { kind: type.startsWith('image') ? 'image' : 'audio', place, from };
}

/**
 * Returns text parts, with a marker in place of each image and recording.
 * @param {{type?: string, text?: string}[]} parts
 * @param {string} place
 * @param {string} marker
 * @param {MediaPart[]} found receives the images and recordings
 */
const marked = (parts, place, marker, found) =>
  parts.map((part, index) => {
    const medium = mediaPartOf(part, `${place}[${index}]`);
    if (!medium) return /** @type {{type: 'text', text: string}} */ (part);
    found.push(medium);
    return { type: /** @type {const} */ ('text'), text: marker };
  });

/**
 * @param {PlainMessage[]} messages that were checked, with images or recordings
 * @returns {{messages: PlainMessage[], marker?: string, parts?: MediaPart[]}}
 */
export function splitMedia(messages) {
  /** @type {MediaPart[]} */
  const parts = [];
  const marker = markerOf();
  const texts = messages.map((message, index) => {
    const { content } = message;
    if (!Array.isArray(content)) return message;
    return { ...message, content: marked(content, `messages[${index}].content`, marker, parts) };
  });
  return { messages: texts, marker, parts };
}

/**
 * @param {unknown} prompt
 * @returns {{text: string, marker: string, parts: MediaPart[]} | undefined} undefined if it has no
 * parts
 */
export function mediaPromptOf(prompt) {
  if (!Array.isArray(prompt) || typeof prompt[0] !== 'object') return undefined;
  /** @type {MediaPart[]} */
  const parts = [];
  const marker = markerOf();
  const text = marked(prompt, 'prompt', marker, parts)
    .map((part) => part.text)
    .join('');
  return { text, marker, parts };
}

/** Returns a marker: a string that occurs nowhere else. */
const markerOf = () => `<media-${randomName()}>`;

/** @param {MediaPart[]} parts @param {Decoders} decoders @returns {Promise<Medium[]>} */
export async function decodeMedia(parts, decoders) {
  const { decodePart } = await loadTasks();
  return Promise.all(parts.map((part) => decodePart(part, decoders)));
}

/**
 * @param {any} part an image or a recording
 * @param {Decoders} decoders
 * @returns {Promise<Medium>}
 */
export async function mediumOf(part, decoders) {
  const found = mediaPartOf(part, 'part');
  if (!found) throw argumentError('part: must be an image or a recording');
  const [medium] = await decodeMedia([found], decoders);
  return medium;
}

/**
 * @param {any} part
 * @param {Decoders} decoders
 * @returns {Promise<any>} the part with pixels or samples, which do not change and are not decoded
 * again
 */
export async function decodedPart(part, decoders) {
  if (part?.type === 'text') return part;
  const medium = await mediumOf(part, decoders);
  if (medium.kind === 'audio') {
    return { type: 'audio', audio: { samples: medium.samples, sampleRate: MEDIA_RATE } };
  }
  const { width, height, data } = medium;
  return { type: 'image', image: { width, height, data } };
}
