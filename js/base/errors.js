// js/base/errors.js — the one error class of the package, and its way through messages between threads.
// Aborted work rejects with a DOMException named AbortError instead, as everywhere on the web.

/**
 * What went wrong: `code` for programs, `message` for people, `cause` for whoever wants to look
 * deeper (another error, or plain facts such as an HTTP status or the place in the file).
 */
export class WickError extends Error {
  /** @param {string} code @param {string} message @param {unknown} [cause] */
  constructor(code, message, cause) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'WickError';
    this.code = code;
  }
}

/** @param {string} message */
export const argumentError = (message) => new WickError('ARG', message);

/** Codes of the engine's statuses (src/base/status.h), in the order of their numbers. */
const statusCodes = [
  ...['OK', 'ARG', 'PAGES', 'SEQ', 'RANGE', 'CORRUPT', 'OVERFLOW', 'NOMEM', 'SHAPE', 'NONFINITE'],
  ...['FULL', 'BUSY', 'NODATA', 'MISMATCH', 'IO', 'FORMAT', 'UNSUPPORTED', 'TRUNCATED', 'ABORTED'],
];

/**
 * What a call asked for wrongly (a TypeError, before the engine has begun) is told to whoever called;
 * anything else is no refusal but a trap, and thrown on.
 * @param {unknown} error
 * @returns {WickError}
 */
export function refusalOf(error) {
  if (error instanceof WickError) return error;
  if (error instanceof TypeError) return new WickError('ARG', error.message, error);
  throw error;
}

/** @param {number} status @returns {string} */
export function codeOfStatus(status) {
  return statusCodes[status] ?? 'INTERNAL';
}

/** @param {unknown} [reason] an AbortSignal's @returns {unknown} what an aborted call rejects with */
export function abortError(reason) {
  return reason ?? new DOMException('The operation was aborted', 'AbortError');
}

/** @param {AbortSignal | null | undefined} signal what a caller passed in */
export function checkSignal(signal) {
  if ((signal ?? undefined) === undefined) return;
  if (typeof signal?.addEventListener !== 'function') {
    throw new WickError('ARG', 'signal must be an AbortSignal');
  }
}

/** @param {AbortSignal | null | undefined} signal */
export function throwIfAborted(signal) {
  checkSignal(signal);
  if (signal?.aborted) throw abortError(signal.reason);
}

/** @param {unknown} error whatever was thrown, which need not be an Error @returns {string} */
export function wordsOf(error) {
  try {
    return String(error);
  } catch {
    return 'something without words';
  }
}

/**
 * An error as a plain object: what structured cloning would lose is kept.
 * @typedef {{code: string, message: string, cause?: unknown}} PlainError
 */

/** @param {unknown} error @returns {PlainError} */
export function toPlainError(error) {
  if (error instanceof WickError) {
    return { code: error.code, message: error.message, cause: plainCause(error.cause) };
  }
  const message = error instanceof Error ? `${error.name}: ${error.message}` : wordsOf(error);
  return { code: 'INTERNAL', message, cause: plainCause(error) };
}

/** @param {unknown} cause @returns {unknown} something that can be cloned */
function plainCause(cause) {
  if (cause instanceof Error) return { name: cause.name, message: cause.message };
  try {
    return structuredClone(cause);
  } catch {
    return wordsOf(cause);
  }
}

/** @param {PlainError} plain @returns {WickError} */
export function fromPlainError(plain) {
  return new WickError(plain.code, plain.message, plain.cause);
}
