// js/handler/http_errors.js — errors as HTTP responses in OpenAI's format: {error: {message, type,
// param, code}}.

import { refusals } from '../base/option_table.js';

/** An error with the status of the response that reports it. */
export class HttpError extends Error {
  /**
   * @param {number} status HTTP status
   * @param {string} code machine-readable
   * @param {string} message human-readable
   * @param {{param?: string | null, headers?: Record<string, string>, sizes?: object}} [more] the
   * invalid field of the body, headers of the response, and further members of the reported error
   */
  constructor(status, code, message, { param = null, headers = {}, sizes = {} } = {}) {
    super(message);
    this.name = 'HttpError';
    this.status = status;
    this.code = code;
    this.param = param;
    this.headers = headers;
    this.sizes = sizes;
  }
}

/** @param {string} param a field of the body @param {string} message */
export const invalidField = (param, message) =>
  new HttpError(400, 'invalid_value', message, { param });

/** @param {string} param a field of the body @param {string} message */
export const unsupportedValue = (param, message) =>
  new HttpError(400, 'unsupported_value', message, { param });

/** Seconds after which a client may try again. */
const RETRY_AFTER = { 'Retry-After': '1' };

/** Headers of some errors. @type {Record<string, Record<string, string>>} */
const refusalHeaders = { full_queue: RETRY_AFTER, body_late: { Connection: 'close' } };

/**
 * @param {keyof typeof refusals} name of an error in the table of both servers
 * @param {(string | number)[]} [values] in its text
 * @param {{param?: string | null, headers?: Record<string, string>}} [more]
 */
export function refusal(name, values = [], more) {
  const [status, code, text] = refusals[name];
  const left = [...values];
  const message = text.replace(/%[su]/g, () => String(left.shift()));
  return new HttpError(status, code, message, { headers: refusalHeaders[name] ?? {}, ...more });
}

/** @param {string} param a field of the body that is missing */
export const missingField = (param) => refusal('missing', [param], { param });

/**
 * Returns the error for a closed connection. The client never reads its status, which nginx also
 * logs in this case.
 */
export const clientGone = () => new HttpError(499, 'client_gone', 'The client has disconnected');

/**
 * The HTTP status for each code of WickError. Other errors become a 500 without their message.
 * @type {Record<string, {status: number, code?: string, message?: string, headers?: Record<string, string>}>}
 */
const answers = {
  ARG: { status: 400, code: 'invalid_value' },
  RANGE: { status: 400, code: 'invalid_value' },
  UNSUPPORTED: { status: 400, code: 'unsupported_value' },
  PROMPT_TOO_LONG: { status: 400, code: 'context_length_exceeded' },
  FULL: { status: 400, code: 'invalid_value' }, // an image that must be processed in one pass has more tokens than a batch
  GRAMMAR_TOO_LARGE: { status: 400 },
  TEMPLATE: { status: 400 },
  NO_TEMPLATE: {
    status: 400,
    message:
      'The model has no chat template, so it was not made for conversations. Use /v1/completions, or start the ' +
      'server with a template: --chat-template of wick serve, chatTemplate of createEngine',
  },
  QUEUE_FULL: { status: 429, headers: RETRY_AFTER },
  PAGES: { status: 503, headers: RETRY_AFTER },
  NOMEM: { status: 503, headers: RETRY_AFTER },
  CLOSED: { status: 503 },
  WORKER_CRASHED: { status: 503 },
  LEADER_GONE: { status: 503, headers: RETRY_AFTER },
  NODATA: { status: 501 },
  NONFINITE: { status: 500 },
};

/**
 * @param {string} name
 * @returns {string} the name in snake case, such as max_tokens for maxTokens
 */
const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * @param {any} error of the engine
 * @param {object} fields of the body
 * @returns {string | null} the field, from the error's cause or the first word of its message
 */
function paramOf(error, fields) {
  const isField = (/** @type {string} */ name) => Object.hasOwn(fields, name);
  if (error.code === 'PROMPT_TOO_LONG') {
    return ['messages', 'input', 'prompt', 'documents'].find(isField) ?? null;
  }
  if (/\bgrammar\b/.test(error.cause?.option)) {
    const format = ['response_format', 'text'].find(isField);
    if (format) return format;
  }
  const isOfPrompt = /^(token|the prompt|the tokens)\b/i.test(error.message);
  const named = [error.cause?.option, isOfPrompt ? 'prompt' : /^\w+/.exec(error.message)?.[0]];
  const found = named.filter((name) => typeof name === 'string').map(snake);
  return found.find(isField) ?? null;
}

/**
 * Clients of llama.cpp's server use these numbers to shorten a conversation.
 * @param {any} error of the engine
 */
function sizesOf({ code, cause }) {
  if (code !== 'PROMPT_TOO_LONG' || cause?.subject !== 'context') return {};
  return { n_prompt_tokens: cause.numbers[0], n_ctx: cause.numbers[1] };
}

/**
 * @param {any} error the thrown value
 * @param {object} [fields] of the body, for `param`
 * @returns {HttpError}
 */
export function httpErrorOf(error, fields = {}) {
  if (error instanceof HttpError) return error;
  const isKnown = error?.name === 'WickError' && Object.hasOwn(answers, error.code);
  if (!isKnown)
    return new HttpError(500, 'internal_error', 'The server failed to handle this request');
  const { status, headers, message, code = error.code.toLowerCase() } = answers[error.code];
  return new HttpError(status, code, message ?? error.message, {
    param: paramOf(error, fields),
    headers: headers ?? {},
    sizes: sizesOf(error),
  });
}

/** @param {number} status @returns {string} */
function typeOf(status) {
  if (status === 429) return 'rate_limit_error';
  if (status === 501) return 'not_implemented_error';
  return status < 500 ? 'invalid_request_error' : 'server_error';
}

/** @param {HttpError} error */
export function errorBodyOf({ status, code, message, param, sizes }) {
  return { error: { message, type: typeOf(status), param, code, ...sizes } };
}

/** @param {HttpError} error @param {(error: HttpError) => object} [bodyOf] @returns {Response} */
export function errorResponseOf(error, bodyOf = errorBodyOf) {
  return Response.json(bodyOf(error), { status: error.status, headers: error.headers });
}
