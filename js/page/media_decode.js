// js/page/media_decode.js — converts images to pixels and recordings to samples with the host's
// decoders. PPM images and WAV recordings are supported everywhere.

import { bytesOfBlob } from '../base/blob_bytes.js';
import { argumentError, WickError, wordsOf } from '../base/errors.js';
import { takeTurn } from '../base/take_turn.js';
import { MEDIA_RATE as RATE } from './media_parts.js';

/** @import { Medium } from '../wasm/media_table.js' */
/** @import { Decoders, MediaPart } from './media_parts.js' */
/** @template T @typedef {T extends unknown ? Omit<T, 'place'> : never} Placeless */
/** @typedef {Placeless<Medium>} Content */
/** @typedef {{width: number, height: number, data: ArrayLike<number>}} Pixels with three or four bytes each */
/** @typedef {{samples: Float32Array, sampleRate: number}} Sound in mono */

/** The maximum number of pixels in an image, as in the engine. */
const PIXELS_MAX = 2 ** 28;
/** The maximum size of a file, as in src/media/formats.h. */
const FILE_BYTES_MAX = 2 ** 28 - 1;

/** @param {MediaPart} part @param {Decoders} decoders @returns {Promise<Medium>} */
export async function decodePart({ kind, place, from }, decoders) {
  try {
    return { place, ...(kind === 'image' ? await imageOf(from, decoders) : await soundOf(from)) };
  } catch (error) {
    const code = error instanceof WickError ? error.code : 'UNSUPPORTED';
    const words = error instanceof WickError ? error.message : wordsOf(error);
    throw new WickError(code, `${place}: ${words}`, error);
  }
}

/**
 * @param {any} value
 * @param {string} name
 * @returns {boolean} whether the host has this class and the value is an instance of it
 */
const isA = (value, name) => {
  const type = /** @type {any} */ (globalThis)[name];
  return typeof type === 'function' && value instanceof type;
};

/** @param {unknown} from @returns {boolean} */
const isBytes = (from) => from instanceof ArrayBuffer || ArrayBuffer.isView(from);

/** Checks the size before the file is copied. @param {number} size in bytes */
function checkSize(size) {
  if (size <= FILE_BYTES_MAX) return;
  throw new WickError('ARG', `file: has ${size} bytes, limit is ${FILE_BYTES_MAX}`);
}

/** @param {unknown} from a Blob, bytes or a URL @returns {Promise<Blob | undefined>} */
async function blobOf(from) {
  const blob = await anyBlobOf(from);
  if (blob) checkSize(blob.size);
  return blob;
}

/** @param {any} from @returns {Promise<Blob | undefined>} */
async function anyBlobOf(from) {
  if (from instanceof Blob) return from;
  if (isBytes(from)) {
    checkSize(from.byteLength);
    return new Blob([from]);
  }
  if (typeof from !== 'string' && !(from instanceof URL)) return undefined;
  const url = String(from);
  if (/^data:/i.test(url)) checkSize(Math.floor((url.length - url.indexOf(',') - 1) * 0.75) - 2);
  if (!/^(data|blob|https?):/i.test(url) && !URL.canParse(url, globalThis.location?.href)) {
    throw argumentError('URL: cannot be fetched. Pass a Blob or decoded content');
  }
  /** @type {Response} */
  let response;
  try {
    response = await fetch(url);
  } catch (error) {
    const code = url.startsWith('data:') ? 'ARG' : 'NETWORK';
    throw new WickError(code, `${url.slice(0, 80)} cannot be read: ${wordsOf(error)}`, error);
  }
  checkSize(Number(response.headers.get('content-length') ?? 0));
  if (response.ok) return response.blob();
  throw new WickError('HTTP', `${url.slice(0, 200)} answered ${response.status}`, {
    status: response.status,
  });
}

// ---- images ----

/** @param {any} from @param {Decoders} decoders @returns {Promise<Content>} */
async function imageOf(from, decoders) {
  const blob = await blobOf(from);
  if (blob) return pixelsOf(await decodeImage(blob, decoders));
  if (!drawable.some((name) => isA(from, name))) return pixelsOf(from);
  if (isA(from, 'HTMLImageElement') && !from.complete) await from.decode();
  return pixelsOf(drawn(from));
}

const drawable = [
  ...['ImageBitmap', 'HTMLCanvasElement', 'OffscreenCanvas', 'HTMLImageElement'],
  ...['SVGImageElement', 'HTMLVideoElement', 'VideoFrame'],
];

/** @param {Blob} blob @param {Decoders} decoders @returns {Promise<Pixels>} */
async function decodeImage(blob, { decodeImage: decode }) {
  const head = new Uint8Array(await bytesOfBlob(blob.slice(0, 2)));
  if (head[0] === 0x50 && head[1] === 0x36) return ppmOf(new Uint8Array(await bytesOfBlob(blob)));
  if (decode) return decode(blob);
  if (typeof createImageBitmap !== 'function') {
    throw new WickError(
      'UNSUPPORTED',
      'this host decodes only PPM images: pass decodeImage to createEngine, or pixels as {width, height, data}',
    );
  }
  /** @type {ImageBitmap} */
  let bitmap;
  try {
    bitmap = await createImageBitmap(blob, { imageOrientation: 'from-image' });
  } catch (error) {
    throw new WickError('UNSUPPORTED', `the image cannot be decoded: ${wordsOf(error)}`, error);
  }
  try {
    return drawn(bitmap);
  } finally {
    bitmap.close();
  }
}

/** @param {any} image @returns {number[]} width and height; names differ by class */
const sizeOf = (image) =>
  [
    [image.naturalWidth, image.videoWidth, image.displayWidth, image.width],
    [image.naturalHeight, image.videoHeight, image.displayHeight, image.height],
  ].map((sizes) => {
    const size = sizes.find((one) => one !== undefined);
    return Math.round(size.baseVal?.value ?? size); // an SVG image
  });

/** @param {number} width @param {number} height */
function checkPixels(width, height) {
  if (width * height <= PIXELS_MAX) return;
  throw argumentError(`image: has ${width} x ${height} pixels, limit is 2^28`);
}

/** Beyond this size some browsers draw nothing and report no error. */
const DRAWN_SIDE_MAX = 32_767;

/** @param {any} image @returns {Pixels} its pixels, drawn on white where it is transparent */
function drawn(image) {
  const [width, height] = sizeOf(image);
  if (!(width > 0 && height > 0)) throw argumentError('image: has no pixels');
  checkPixels(width, height);
  if (Math.max(width, height) > DRAWN_SIDE_MAX) {
    throw argumentError(
      `image: has ${width} x ${height} pixels, limit per side is ${DRAWN_SIDE_MAX} (browser canvas)`,
    );
  }
  const canvas =
    typeof OffscreenCanvas === 'function'
      ? new OffscreenCanvas(width, height)
      : Object.assign(document.createElement('canvas'), { width, height });
  const context = /** @type {CanvasRenderingContext2D | null} */ (
    canvas.getContext('2d', { willReadFrequently: true, alpha: false })
  );
  if (!context)
    throw new WickError('NOMEM', `canvas: not enough memory for ${width} x ${height} pixels`);
  context.fillStyle = '#fff';
  context.fillRect(0, 0, width, height);
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, width, height);
}

/** @param {Pixels} pixels @returns {Content} */
function pixelsOf(pixels) {
  const { width, height, data } = pixels ?? {};
  const count = width * height;
  if (!Number.isInteger(width) || !Number.isInteger(height) || !(count > 0) || !data) {
    throw argumentError('image: must be a Blob, a URL, a canvas or {width, height, data}');
  }
  checkPixels(width, height);
  const { BYTES_PER_ELEMENT: size = 1 } = /** @type {any} */ (data);
  if (size !== 1) {
    throw argumentError('data: must have 8-bit values, not 16-bit values or floats');
  }
  const bytes = data.length / count;
  if (bytes !== 3 && bytes !== 4) {
    throw argumentError(
      `data: has ${data.length} bytes, but ${width} x ${height} pixels need 3 or 4 each`,
    );
  }
  return { kind: 'image', width, height, data: bytes === 3 ? Uint8Array.from(data) : opaque(data) };
}

/** @param {ArrayLike<number>} rgba @returns {Uint8Array} RGB on white */
function opaque(rgba) {
  const count = rgba.length / 4;
  const out = new Uint8Array(count * 3);
  for (let i = 0; i < count; i++) {
    const alpha = rgba[4 * i + 3];
    for (let j = 0; j < 3; j++) {
      out[3 * i + j] =
        alpha === 255
          ? rgba[4 * i + j]
          : Math.round((rgba[4 * i + j] * alpha + 255 * (255 - alpha)) / 255);
    }
  }
  return out;
}

/** @param {Uint8Array} bytes of a binary PPM @returns {Pixels} */
function ppmOf(bytes) {
  const text = String.fromCharCode(...bytes.subarray(0, 512)).replaceAll(/#[^\n]*/g, (one) =>
    ' '.repeat(one.length),
  );
  const found = /^P6\s+(\d+)\s+(\d+)\s+(\d+)\s/.exec(text);
  if (found?.[3] !== '255')
    throw new WickError('UNSUPPORTED', 'PPM image: must have 8 bits per value');
  const [width, height] = [Number(found[1]), Number(found[2])];
  const size = width * height * 3;
  const data = bytes.subarray(found[0].length, found[0].length + size);
  if (data.length === size) return { width, height, data };
  throw argumentError(`PPM image: has only ${data.length} of ${size} bytes`);
}

// ---- recordings ----

/** @param {any} from @returns {Promise<Content>} */
async function soundOf(from) {
  const blob = await blobOf(from);
  const sound = blob ? await decodeSound(await bytesOfBlob(blob)) : givenSound(from);
  return { kind: 'audio', samples: await resampled(sound) };
}

/** @param {any} from @returns {Sound} */
function givenSound(from) {
  if (isA(from, 'AudioBuffer')) return bufferSound(from);
  const { samples, sampleRate } = from ?? {};
  if (!(samples instanceof Float32Array) || !(sampleRate > 0)) {
    throw argumentError('recording: must be a Blob, a URL or {samples, sampleRate}');
  }
  return { samples, sampleRate };
}

/** @param {AudioBuffer} buffer @returns {Sound} */
const bufferSound = (buffer) => ({
  samples: mixed(
    Array.from({ length: buffer.numberOfChannels }, (_, index) => buffer.getChannelData(index)),
  ),
  sampleRate: buffer.sampleRate,
});

/** @param {Float32Array[]} channels @returns {Float32Array} their mean */
function mixed(channels) {
  if (channels.length === 1) return channels[0];
  return channels[0].map(
    (_, at) => channels.reduce((sum, channel) => sum + channel[at], 0) / channels.length,
  );
}

/** @param {ArrayBuffer} bytes @returns {Promise<Sound>} */
async function decodeSound(bytes) {
  const head = String.fromCharCode(...new Uint8Array(bytes.slice(0, 12)));
  if (/^RIFF.{4}WAVE$/s.test(head)) return wavOf(new DataView(bytes));
  const Context = /** @type {typeof OfflineAudioContext | undefined} */ (
    globalThis.OfflineAudioContext
  );
  if (!Context) {
    throw new WickError(
      'UNSUPPORTED',
      'this host decodes only WAV recordings: pass samples as {samples, sampleRate}',
    );
  }
  try {
    return bufferSound(await new Context(1, 1, RATE).decodeAudioData(bytes));
  } catch (error) {
    throw new WickError('UNSUPPORTED', `the recording cannot be decoded: ${wordsOf(error)}`, error);
  }
}

/**
 * Functions that read the sample at an offset, by format (1: integers, 3: floats) and bits.
 * @type {Record<string, (view: DataView, at: number) => number>}
 */
const readers = {
  '1 8': (view, at) => (view.getUint8(at) - 128) / 128,
  '1 16': (view, at) => view.getInt16(at, true) / 2 ** 15,
  '1 24': (view, at) =>
    (view.getUint8(at) + view.getUint8(at + 1) * 2 ** 8 + view.getInt8(at + 2) * 2 ** 16) / 2 ** 23,
  '1 32': (view, at) => view.getInt32(at, true) / 2 ** 31,
  '3 32': (view, at) => view.getFloat32(at, true),
};

/**
 * The format of an extensible file, whose `fmt ` chunk specifies the sample format in a different
 * field.
 */
const EXTENSIBLE = 0xfffe;

/** @param {DataView} view @returns {Sound} */
function wavOf(view) {
  let [format, channels, sampleRate, bits] = [0, 0, 0, 0];
  for (let at = 12; at + 8 <= view.byteLength; ) {
    const name = view.getUint32(at);
    const size = view.getUint32(at + 4, true);
    const [from, end] = [at + 8, Math.min(at + 8 + size, view.byteLength)];
    if (name === 0x666d7420 && end - from >= 16) {
      format = view.getUint16(from, true);
      channels = view.getUint16(from + 2, true);
      sampleRate = view.getUint32(from + 4, true);
      bits = view.getUint16(from + 14, true);
      if (format === EXTENSIBLE && end - from >= 26) format = view.getUint16(from + 24, true);
    }
    if (name === 0x64617461) {
      const read = readers[`${format} ${bits}`];
      if (!read || channels === 0) {
        const words = `WAV recording: unknown format ${format} with ${bits} bits and ${channels} channels`;
        throw new WickError('UNSUPPORTED', words);
      }
      return { samples: samplesOf(view, read, from, end, channels, bits / 8), sampleRate };
    }
    at = from + size + (size % 2);
  }
  throw new WickError('UNSUPPORTED', 'WAV recording: has no samples');
}

/**
 * @param {DataView} view
 * @param {(view: DataView, at: number) => number} read
 * @param {number} from
 * @param {number} end
 * @param {number} channels
 * @param {number} bytes per sample
 */
function samplesOf(view, read, from, end, channels, bytes) {
  const samples = new Float32Array(Math.floor((end - from) / (channels * bytes)));
  for (let i = 0; i < samples.length; i++) {
    let sum = 0;
    for (let c = 0; c < channels; c++) sum += read(view, from + (i * channels + c) * bytes);
    samples[i] = sum / channels;
  }
  return samples;
}

/** Sample rates in Hz; the range of a browser's AudioBuffer. */
const [RATE_MIN, RATE_MAX] = [3000, 768_000];
/** The engine's limit, as in src/media/sound.h. */
const SECONDS_MAX = 4 * 3600;
/** Zero crossings of the filter on each side. */
const CROSSINGS = 16;
/** The maximum number of filter values to cache. */
const KEPT_MAX = 2 ** 20;
/** The number of samples after which other tasks get a turn. */
const TURN_SAMPLES = 2 ** 17;

/**
 * Checks a recording before it is resampled.
 * @param {Sound} sound
 * @returns {number} its rate in whole Hz
 */
function rateOf({ samples, sampleRate }) {
  const rate = Math.round(sampleRate);
  if (!(rate >= RATE_MIN && rate <= RATE_MAX)) {
    throw argumentError(`sample rate: ${sampleRate} Hz, limits are ${RATE_MIN} and ${RATE_MAX}`);
  }
  if (samples.length <= SECONDS_MAX * rate) return rate;
  const seconds = Math.round(samples.length / rate);
  throw argumentError(`recording: has ${seconds} seconds, limit is ${SECONDS_MAX}`);
}

/**
 * Makes a sinc filter with a Hann window, which cuts off at half of the lower rate.
 * @param {number} rate
 * @returns {{reach: number, at: (phase: number) => Float64Array}} values from `reach` samples
 * before the position of a phase, in samples of 16 kHz divided by `rate`
 */
function filterOf(rate) {
  const cut = Math.min(1, RATE / rate);
  const reach = Math.ceil(CROSSINGS / cut);
  const count = 2 * reach + 2;
  /** @type {Map<number, Float64Array>} */
  const kept = new Map();
  const valueAt = (/** @type {number} */ distance) => {
    const x = distance * cut;
    if (Math.abs(x) >= CROSSINGS) return 0;
    const sinc = x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
    return sinc * cut * (0.5 + 0.5 * Math.cos((Math.PI * x) / CROSSINGS));
  };
  const at = (/** @type {number} */ phase) => {
    const found = kept.get(phase);
    if (found) return found;
    const values = Float64Array.from({ length: count }, (_, j) =>
      valueAt(j - reach - phase / RATE),
    );
    if ((kept.size + 1) * count <= KEPT_MAX) kept.set(phase, values);
    return values;
  };
  return { reach, at };
}

/** Resamples to 16 kHz. @param {Sound} sound @returns {Promise<Float32Array>} */
async function resampled(sound) {
  const { samples } = sound;
  const rate = rateOf(sound);
  const wrong = samples.findIndex((sample) => !Number.isFinite(sample));
  if (wrong >= 0) throw argumentError(`recording: sample ${wrong} is not a number`);
  if (rate === RATE) return Float32Array.from(samples);
  const { reach, at } = filterOf(rate);
  const out = new Float32Array(Math.round((samples.length * RATE) / rate));
  for (let i = 0; i < out.length; i++) {
    if (i % TURN_SAMPLES === TURN_SAMPLES - 1) await takeTurn();
    const phase = (i * rate) % RATE;
    const first = (i * rate - phase) / RATE - reach;
    const values = at(phase);
    const last = Math.min(values.length, samples.length - first);
    let sum = 0;
    for (let j = Math.max(0, -first); j < last; j++) sum += samples[first + j] * values[j];
    out[i] = sum;
  }
  return out;
}
