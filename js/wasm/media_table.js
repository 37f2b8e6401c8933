// js/wasm/media_table.js — an engine's images and recordings: the calls into the media module,
// which is loaded with the first mmproj file.

import { passChat, putText } from './engine_records.js';
import {
  ARRAY_ADDRESS,
  ARRAY_COUNT,
  MEDIA_ENCODE_BYTES,
  MEDIA_ID,
  MEDIA_IS_READY,
  MEDIA_MACS,
  MEDIA_PROMPT_CHAT,
  MEDIA_PROMPT_FIELDS,
  MEDIA_PROMPT_KINDS,
  MEDIA_PROMPT_MARKER,
  MEDIA_PROMPT_MEDIA,
  MEDIA_PROMPT_MEDIA_COUNT,
  MEDIA_PROMPT_TEXT,
  MEDIA_ROWS,
  MEDIA_TILES,
  MEDIA_TOKENS,
} from './layout.js';

/**
 * Decoded pixels with three bytes each, or mono samples at 16 kHz. Errors name `place`, the part of the prompt.
 * @typedef {{place: string} & ({kind: 'image', width: number, height: number, data: Uint8Array} |
 *   {kind: 'audio', samples: Float32Array})} Medium
 */
/** @typedef {{tokens: number, rows: number, tiles: number, macs: number, encodeBytes: number, isReady: boolean}} MediumInfo */
/** @typedef {import('./heap.js').Passed} Passed */
/**
 * The parts of the engine that are needed here: its functions, whose first argument is the handle;
 * memory for one call; results; and a status that is thrown as an error.
 * @typedef {object} Engine
 * @property {(name: string, ...args: number[]) => number} run
 * @property {<T>(use: (passed: Passed) => T) => T} pass
 * @property {(place: number) => number} number returns the result at an index
 * @property {(address: number, count: number) => Int32Array} ints
 * @property {(status: number) => void} check
 */

/** The order of wick_media_kind. */
const kinds = /** @type {const} */ (['image', 'audio']);

export class MediaTable {
  #engine;
  #isLoaded = false;

  /** @param {Engine} engine */
  constructor(engine) {
    this.#engine = engine;
  }

  get isLoaded() {
    return this.#isLoaded;
  }

  /** Loads the encoders. The host's `read_media` supplies the file's bytes. */
  load() {
    this.#engine.check(this.#engine.run('media_load'));
    this.#isLoaded = true;
  }

  /** @returns {('image' | 'audio')[]} the kinds that can be encoded */
  kinds() {
    if (!this.#isLoaded) return [];
    return kinds.filter((_, index) => this.#engine.run('media_has', index) !== 0);
  }

  /**
   * Adds an image whose rows are fed afterwards.
   * @param {number} width
   * @param {number} height
   * @returns {number} its number
   */
  beginImage(width, height) {
    this.#engine.check(this.#engine.run('media_add', 0, width, height));
    return this.#engine.number(MEDIA_ID);
  }

  /**
   * Feeds the next rows of an image.
   * @param {number} media
   * @param {Uint8Array} rgb
   * @param {number} rows
   */
  feed(media, rgb, rows) {
    this.#engine.pass((passed) =>
      this.#engine.check(this.#engine.run('media_feed', media, passed.bytes(rgb), rows)),
    );
  }

  /**
   * @param {Float32Array} samples
   * @returns {number} its number; the same content always gets the same number
   */
  addAudio(samples) {
    return this.#engine.pass((passed) => {
      const { buffer, byteOffset, byteLength } = samples;
      const bytes = passed.bytes(new Uint8Array(buffer, byteOffset, byteLength));
      this.#engine.check(this.#engine.run('media_add', bytes, samples.length, 0));
      return this.#engine.number(MEDIA_ID);
    });
  }

  /** @param {number} media @returns {MediumInfo} */
  info(media) {
    const { number, run, check } = this.#engine;
    check(run('media_info', media));
    return {
      tokens: number(MEDIA_TOKENS),
      rows: number(MEDIA_ROWS),
      tiles: number(MEDIA_TILES),
      macs: number(MEDIA_MACS),
      encodeBytes: number(MEDIA_ENCODE_BYTES),
      isReady: number(MEDIA_IS_READY) !== 0,
    };
  }

  /** @param {number} media @param {number} budgetUs @returns {boolean} whether it is encoded */
  step(media, budgetUs) {
    this.#engine.check(this.#engine.run('media_step', media, budgetUs));
    return this.#engine.number(MEDIA_IS_READY) !== 0;
  }

  /** @param {number} media */
  remove(media) {
    this.#engine.run('media_remove', media);
  }

  /**
   * @param {string | import('./engine_records.js').NativeChat} prompt a string, or a conversation
   * @param {string} marker represents each of `media` in its text
   * @param {number[]} media
   * @returns {Int32Array} tokens, including those that represent rows
   */
  tokenize(prompt, marker, media) {
    return this.#engine.pass((passed) => {
      const words = new Float64Array(MEDIA_PROMPT_FIELDS);
      const isText = typeof prompt === 'string';
      words[MEDIA_PROMPT_CHAT] = isText ? 0 : passChat(prompt, passed);
      putText(words, MEDIA_PROMPT_TEXT, isText ? prompt : '', passed);
      putText(words, MEDIA_PROMPT_MARKER, marker, passed);
      words[MEDIA_PROMPT_MEDIA] = passed.ints(media);
      words[MEDIA_PROMPT_MEDIA_COUNT] = media.length;
      const record = passed.record(words, MEDIA_PROMPT_KINDS);
      this.#engine.check(this.#engine.run('media_tokenize', record));
      const { number, ints } = this.#engine;
      return ints(number(ARRAY_ADDRESS), number(ARRAY_COUNT));
    });
  }
}
