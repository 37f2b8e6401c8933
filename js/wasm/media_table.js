// js/wasm/media_table.js — an engine's images and recordings: the calls into the media module,
// which is loaded with the first mmproj file.

import { passChat, wordsOf } from './engine_records.js';
import * as layout from './layout.js';

/**
 * Decoded pixels with three bytes each, or mono samples at 16 kHz. Errors name `place`, the part of the prompt.
 * @typedef {{place: string} & ({kind: 'image', width: number, height: number, data: Uint8Array} |
 *   {kind: 'audio', samples: Float32Array})} Medium
 */

/** The order of wick_media_kind. */
const kinds = /** @type {const} */ (['image', 'audio']);

export class MediaTable {
  #engine;
  isLoaded = false;

  /** @param {import('./native_engine.js').Tools} engine */
  constructor(engine) {
    this.#engine = engine;
  }

  /** Loads the encoders. The host's `read_media` supplies the file's bytes. */
  load() {
    this.#engine.check(this.#engine.run('media_load'));
    this.isLoaded = true;
  }

  /** @returns {('image' | 'audio')[]} the kinds that can be encoded */
  kinds() {
    if (!this.isLoaded) return [];
    return kinds.filter((_, index) => this.#engine.run('media_has', index) !== 0);
  }

  /**
   * Adds an image whose rows are fed afterwards.
   * @param {number} width
   * @param {number} height
   * @returns {number} its number
   */
  beginImage(width, height) {
    return this.#add(0, width, height);
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
      return this.#add(bytes, samples.length, 0);
    });
  }

  /** @param {...number} content @returns {number} its number */
  #add(...content) {
    this.#engine.check(this.#engine.run('media_add', ...content));
    return this.#engine.heap.results(layout.MEDIA).id;
  }

  /** @param {number} media */
  info(media) {
    this.#engine.check(this.#engine.run('media_info', media));
    const { id, rowsBytes, ...info } = this.#engine.heap.results(layout.MEDIA);
    return info;
  }

  /** @param {number} media @param {number} budgetUs @returns {boolean} whether it is encoded */
  step(media, budgetUs) {
    this.#engine.check(this.#engine.run('media_step', media, budgetUs));
    return this.#engine.heap.results(layout.MEDIA).isReady;
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
      const isText = typeof prompt === 'string';
      const words = wordsOf(layout.MEDIA_PROMPT, {
        chat: isText ? 0 : passChat(prompt, passed),
        text: passed.text(isText ? prompt : ''),
        marker: passed.text(marker),
        media: [passed.ints(media), media.length],
      });
      const record = passed.record(words, layout.MEDIA_PROMPT_KINDS);
      this.#engine.check(this.#engine.run('media_tokenize', record));
      const { heap } = this.#engine;
      return heap.readInts(...heap.array);
    });
  }
}
