// The models, images and recordings of vectors/vision, and files in formats that every host can
// decode.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { locate } from './locate.mjs';

const { path, skip } = locate('shared');

export { skip };
export const folder = join(path, 'vectors', 'vision');
/** @type {any} */
export const manifest = skip
  ? { types: [], refuse: [] }
  : JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));

/** A chat template for string content. */
export const texts = '{% for m in messages %}{{ m.content }}{% endfor %}';
/** A chat template like SmolVLM's: content must be a list, of which only text is written. */
export const lists =
  "{% for m in messages %}{% for p in m.content %}{% if p['type'] == 'text' %}{{ p['text'] }}{% endif %}{% endfor %}{% endfor %}";

/**
 * @param {string} id the id of a type
 * @returns {{model: string, mmproj: string, cases: any[]}} paths, and cases
 */
export function typeOf(id) {
  const type = manifest.types.find((/** @type {any} */ one) => one.id === id);
  const [model, mmproj] = [type?.text_model, type?.mmproj].map((name) => join(folder, name ?? ''));
  return { model, mmproj, cases: type?.cases ?? [] };
}

/**
 * @param {string} id of a type
 * @param {string} name of a case
 * @returns {any} its part that is not text
 */
export const partOf = (id, name) =>
  typeOf(id)
    .cases.find((one) => one.id === name)
    ?.parts.find((/** @type {any} */ part) => part.text === undefined);

/** @param {Uint8Array} rgb @param {number} width @param {number} height @returns {Buffer} a PPM file */
export const ppmOf = (rgb, width, height) =>
  Buffer.concat([Buffer.from(`P6\n${width} ${height}\n255\n`), rgb]);

/** @param {Uint8Array} samples mono floats @param {number} [rate] @returns {Buffer} a WAV file */
export function wavOf(samples, rate = 16000) {
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + samples.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(3, 20); // 3: floats
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(4 * rate, 28);
  head.writeUInt16LE(4, 32);
  head.writeUInt16LE(32, 34);
  head.write('data', 36);
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}

/** @param {any} part of a case @returns {Buffer} its file, PPM or WAV */
export function fileOf({ image, audio, width, height }) {
  const raw = readFileSync(join(folder, image ?? audio));
  return image ? ppmOf(raw, width, height) : wavOf(raw);
}

/** @param {Buffer} ppm @returns {any} a message part in the format of OpenAI's clients */
export const imagePartOf = (ppm) => ({
  type: 'image_url',
  image_url: { url: `data:image/x-portable-pixmap;base64,${ppm.toString('base64')}` },
});

/** @param {any} part of a case @returns {any} a part of a message */
export function messagePartOf(part) {
  const file = fileOf(part);
  if (part.image) return imagePartOf(file);
  return { type: 'input_audio', input_audio: { data: file.toString('base64'), format: 'wav' } };
}

/** @param {any} part of a message @returns {any} the body of a chat completion with a question about it */
export const bodyAbout = (part) => ({
  messages: [{ role: 'user', content: [part, { type: 'text', text: 'What is the word for it?' }] }],
  ...{ temperature: 0, max_tokens: 12, ignore_eos: true },
});

const png = 'iVBORw0KGgoAAAANSUhEUg==';
/** Parts that a host without decoders rejects, with the code and the message. @type {[any, string, RegExp][]} */
export const refusedParts = [
  [
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
    'unsupported_value',
    /^messages\[0\]\.content\[0\]: this host decodes only PPM images/,
  ],
  [
    { type: 'image_url', image_url: { url: 'https://example.org/fox.png' } },
    'unsupported_value',
    /^messages\[0\]\.content\[0\] must have a data URL: this server does not fetch URLs/,
  ],
  [{ type: 'image_url', image_url: {} }, 'invalid_value', /content\[0\] must have a url/],
  [
    { type: 'image_url', image_url: { url: `data:image/ppm;base64,${btoa('P6 9 9 255\n...')}` } },
    'invalid_value',
    /^messages\[0\]\.content\[0\]: PPM image/,
  ],
  [{ type: 'input_audio', input_audio: { format: 'wav' } }, 'invalid_value', /data and a format/],
  [{ type: 'video' }, 'unsupported_value', /content\[0\] is of type video: text, image_url and/],
];
