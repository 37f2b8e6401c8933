// js/worker/reply_reader.js — classifies the pieces of a reply: content, reasoning, calls of tools. A call whose text
// breaks is content, as a model may write anything.

/** @typedef {import('../wasm/engine_records.js').Delta} Delta */
/** @typedef {import('../wasm/native_engine.js').NativeEngine} NativeEngine */
/** @typedef {import('../base/errors.js').WickError} WickError */

export class ReplyReader {
  #native;
  #reply;
  /** All of it, as the text of a broken call begins in an earlier piece. */
  #text = '';

  /** @param {NativeEngine} native @param {import('../wasm/engine_records.js').NativeRequest['reply']} how */
  constructor(native, how) {
    this.#native = native;
    this.#reply = native.openReply(how?.tools ?? '', how?.ending ?? '');
  }

  /**
   * @param {string} text a further piece
   * @param {'stop' | 'length' | 'abort'} [finish] of the last piece
   * @returns {{deltas: Delta[], error: WickError | undefined}} without memory there is an error
   */
  read(text, finish) {
    if (this.#reply === 0)
      return { deltas: text === '' ? [] : [{ content: text }], error: undefined };
    this.#text += text;
    const { deltas, error } = this.#native.readReply(this.#reply, text, finish !== undefined);
    if (!error || (error.code === 'TRUNCATED' && finish !== 'stop')) {
      return { deltas, error: undefined };
    }
    if (error.code === 'NOMEM') return { deltas, error };
    const { numbers } = /** @type {{numbers: number[]}} */ (error.cause);
    const rest = new TextEncoder().encode(this.#text).subarray(numbers[0]);
    this.close();
    return {
      deltas: [...deltas, { content: new TextDecoder().decode(rest), callsWhole: numbers[1] }],
      error: undefined,
    };
  }

  close() {
    if (this.#reply !== 0) this.#native.closeReply(this.#reply);
    this.#reply = 0;
    this.#text = '';
  }
}
