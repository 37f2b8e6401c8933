// js/pipeline/media.js — the image-text-to-text and automatic-speech-recognition pipelines.

import { WickError } from '../index.js';
import { answersOf, isChat, takerOf, textGeneration } from './text_generation.js';

/** @import { ChatMessage, Engine } from '../index.js' */
/** @import { GenerationOptions as Options } from '../pipeline.js' */

const RATE = 16000;
/** A long recording is split at the quietest of these frames within the last second of a piece. */
const FRAME = RATE / 50;

/** @param {Engine} engine @param {'image' | 'audio'} kind @param {string} task */
async function checkMedia(engine, kind, task) {
  const { media } = await engine.info();
  if (media.includes(kind)) return;
  const words = `${task}: the model does not read ${kind === 'image' ? 'images' : 'audio'}. Pass its mmproj file as the option mmproj`;
  throw new WickError('UNSUPPORTED', words);
}

// ---- image-text-to-text ----

/**
 * @param {ChatMessage[]} chat
 * @param {unknown[]} images for the parts of type image without content
 * @returns {ChatMessage[]}
 */
function withImages(chat, images) {
  const left = [...images];
  const partOf = (/** @type {any} */ part) => {
    if (part?.type !== 'image') return part;
    return { type: 'image', image: part.image ?? part.url ?? left.shift() };
  };
  const filled = chat.map((message) =>
    Array.isArray(message.content) ? { ...message, content: message.content.map(partOf) } : message,
  );
  if (left.length === 0) return /** @type {ChatMessage[]} */ (filled);
  throw new WickError(
    'ARG',
    `images: ${left.length} of ${images.length} have no placeholder in the chat`,
  );
}

/** @param {Engine} engine */
export function imageTextToText(engine) {
  const generate = textGeneration(engine);
  /**
   * The input is a chat, or images with a string or a chat.
   * @param {any} input
   * @param {any} [second]
   * @param {Options} [third]
   */
  return async (input, second, third) => {
    await checkMedia(engine, 'image', 'image-text-to-text');
    const chats = [input].flat(2);
    if (chats.length > 0 && isChat(chats)) {
      const all = isChat(input)
        ? withImages(input, [])
        : input.map((/** @type {ChatMessage[]} */ chat) => withImages(chat, []));
      return generate(all, second);
    }
    const images = [input].flat();
    if (isChat(second)) return generate(withImages(second, images), third);
    if (typeof second !== 'string') {
      throw new WickError('ARG', 'inputs: must be a chat, or images with a string or a chat');
    }
    const parts = images.map((image) => ({ type: /** @type {const} */ ('image'), image }));
    const content = [...parts, { type: /** @type {const} */ ('text'), text: second }];
    const made = await generate([{ role: 'user', content }], third);
    return made.map((/** @type {any} */ { generated_text: said }) => ({
      ...{ input_text: second, generated_text: said.at(-1).content },
    }));
  };
}

// ---- automatic-speech-recognition ----

/** @param {Engine} engine @param {any} input @returns {Promise<Float32Array>} mono samples at 16 kHz */
async function samplesOf(engine, input) {
  const isSamples = input instanceof Float32Array || input instanceof Float64Array;
  const given = isSamples ? { samples: Float32Array.from(input), sampleRate: RATE } : input;
  const { audio } = await engine.decodeMedia({ type: 'audio', audio: given });
  return audio.samples;
}

/**
 * @param {Float32Array} samples
 * @param {number} from
 * @param {number} end
 * @returns {number} a quiet position within the last second before `end`
 */
function quietBefore(samples, from, end) {
  let [best, least] = [end, Number.POSITIVE_INFINITY];
  for (let at = Math.max(from + FRAME, end - RATE); at + FRAME <= end; at += FRAME) {
    let energy = 0;
    for (let i = at; i < at + FRAME; i++) energy += samples[i] ** 2;
    if (energy < least) [best, least] = [at + FRAME / 2, energy];
  }
  return best;
}

/** @param {Float32Array} samples @param {number} seconds the longest piece; 0: one piece @returns {Float32Array[]} */
export function cutSamples(samples, seconds) {
  const most = Math.floor(seconds * RATE);
  const pieces = [];
  let from = 0;
  while (most > 0 && samples.length - from > most) {
    const end = quietBefore(samples, from, from + most);
    pieces.push(samples.subarray(from, end));
    from = end;
  }
  return [...pieces, samples.subarray(from)];
}

/** @param {{prompt?: string, task?: string, language?: string}} options @returns {string} */
function instructionOf({ prompt, task = 'transcribe', language }) {
  if (prompt !== undefined) return prompt;
  if (task !== 'transcribe' && task !== 'translate') {
    throw new WickError('ARG', `task must be transcribe or translate, not ${task}`);
  }
  if (task === 'translate') return 'Translate the speech into English.';
  return language ? `Transcribe the speech, which is in ${language}.` : 'Transcribe the speech.';
}

/** @param {Engine} engine */
export function speechRecognition(engine) {
  /** @param {any} input @param {import('../pipeline.js').RecognitionOptions} [options] */
  return async (input, options = {}) => {
    await checkMedia(engine, 'audio', 'automatic-speech-recognition');
    const { return_timestamps, chunk_length_s = 0, stride_length_s, ...others } = options;
    const { force_full_sequences, num_frames, prompt, task, language, ...rest } = others;
    if (return_timestamps) throw new WickError('UNSUPPORTED', 'return_timestamps is not supported');
    const text = instructionOf(/** @type {any} */ ({ prompt, task, language }));
    const take = takerOf(rest);
    const transcribe = async (/** @type {unknown} */ one) => {
      const texts = [];
      for (const samples of cutSamples(await samplesOf(engine, one), chunk_length_s)) {
        const audio = { samples, sampleRate: RATE };
        const content = [
          { type: /** @type {const} */ ('audio'), audio },
          { type: /** @type {const} */ ('text'), text },
        ];
        const messages = [{ role: /** @type {const} */ ('user'), content }];
        const [{ content: said }] = await answersOf(engine, messages, rest, take);
        texts.push(String(said ?? '').trim());
      }
      rest.streamer?.end();
      return { text: texts.join(' ') };
    };
    if (!Array.isArray(input)) return transcribe(input);
    if (rest.streamer && input.length > 1) {
      throw new WickError('ARG', 'streamer: supports only one output, but the call has several');
    }
    const made = [];
    for (const one of input) made.push(await transcribe(one));
    return made;
  };
}
