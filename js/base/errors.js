// js/base/errors.js — the error class of the package, and the conversion of errors for sending them
// between threads. Aborted calls reject with a DOMException named AbortError, as elsewhere on the
// web.

import { WickError } from './wick_error.js';

export { WickError };

/** @param {string} message */
export const argumentError = (message) => new WickError('ARG', message);

/** Codes of the engine's statuses (src/base/status.h), in the order of their numbers. */
const statusCodes = [
  ...['OK', 'ARG', 'PAGES', 'SEQ', 'RANGE', 'CORRUPT', 'OVERFLOW', 'NOMEM', 'SHAPE', 'NONFINITE'],
  ...['FULL', 'BUSY', 'NODATA', 'MISMATCH', 'IO', 'FORMAT', 'UNSUPPORTED', 'TRUNCATED', 'ABORTED'],
];

/**
 * Returns the error to report. A wrong argument causes a WickError, or a TypeError before the engine is called. Any
 * other error is a trap in the module and is rethrown.
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

/**
 * @param {unknown} [reason] the reason of an AbortSignal
 * @returns {unknown} the rejection of an aborted call
 */
export function abortError(reason) {
  return reason ?? new DOMException('The operation was aborted', 'AbortError');
}

/** @param {AbortSignal | null | undefined} signal of the caller */
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

/** @param {unknown} error any value that was thrown @returns {string} */
export function wordsOf(error) {
  try {
    return String(error);
  } catch {
    return 'a value that cannot be converted to a string';
  }
}

/**
 * An error as a plain object. Structured cloning would lose its code and its class.
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

/** @param {unknown} cause @returns {unknown} a value that can be cloned */
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
