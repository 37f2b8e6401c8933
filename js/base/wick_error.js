// js/base/wick_error.js — the error class, in a separate file so that `wick-llm` and
// `wick-llm/models` share it.

/**
 * Programs read `code`, people read `message`. `cause` is another error, or an object with details such as an HTTP
 * status or an offset in the file.
 */
export class WickError extends Error {
  /** @param {string} code @param {string} message @param {unknown} [cause] */
  constructor(code, message, cause) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'WickError';
    this.code = code;
  }
}
