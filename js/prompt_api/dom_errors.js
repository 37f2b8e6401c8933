// js/prompt_api/dom_errors.js — maps the engine's errors to those of the Prompt API.

/** @param {string} name @param {string} message @param {unknown} [cause] */
export function domError(name, message, cause) {
  const error = new DOMException(message, name);
  return cause === undefined ? error : Object.assign(error, { cause });
}

/** The Web IDL class, for hosts that do not have it yet. */
class OwnQuotaExceededError extends DOMException {
  /** @param {string} message @param {{quota: number, requested: number}} numbers */
  constructor(message, { quota, requested }) {
    super(message, 'QuotaExceededError');
    this.quota = quota;
    this.requested = requested;
  }
}

/** @param {number} requested tokens @param {number} quota the tokens available */
export function quotaError(requested, quota) {
  const Class = /** @type {any} */ (globalThis).QuotaExceededError ?? OwnQuotaExceededError;
  const words = `The input has ${requested} tokens, but the context has room for only ${quota}`;
  return new Class(words, { requested, quota });
}

/** @type {Record<string, string>} */
const names = {
  UNSUPPORTED: 'NotSupportedError',
  NO_TEMPLATE: 'NotSupportedError',
  NETWORK: 'NetworkError',
  HTTP: 'NetworkError',
  CORS: 'NetworkError',
  CHANGED: 'NetworkError',
};

/** @param {any} error @returns {unknown} a DOMException for an error of the engine, anything else unchanged */
export function fromEngine(error) {
  if (error?.name !== 'WickError') return error;
  return domError(names[error.code] ?? 'OperationError', error.message, error);
}
