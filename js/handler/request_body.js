// js/handler/request_body.js — reads a request's body: JSON, up to a size limit, with limited list
// lengths.

import { isObject } from './fields.js';
import { HttpError, refusal } from './http_errors.js';

/**
 * Only JSON is accepted, because browsers send other types to any origin without a preflight
 * request.
 */
const isJson = /^application\/(?:[\w.-]+\+)?json *(?:;|$)/i;

/** @param {number} bytesMax */
const tooLarge = (bytesMax) => refusal('body_size', [bytesMax]);

/** @param {string} problem */
const malformed = (problem) => new HttpError(400, 'invalid_json', problem);

const tooManyNodes = () => refusal('body_values', [NODES_MAX]);

/** @param {Headers} headers @param {number} bytesMax */
function checkHeaders(headers, bytesMax) {
  const type = headers.get('content-type') ?? '';
  if (!isJson.test(type)) {
    throw refusal('body_type', [type === '' ? 'none' : type]);
  }
  const encoding = headers.get('content-encoding') ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') throw refusal('body_coding', [encoding]);
  if (Number(headers.get('content-length') ?? 0) > bytesMax) throw tooLarge(bytesMax);
}

/** The same limit as in the components. Deeper values overflow the stack of recursive functions. */
const DEPTH_MAX = 500;
/**
 * The maximum number of objects and arrays. Parsing more of them would delay other requests for
 * longer than the size of the body suggests.
 */
const NODES_MAX = 50_000;

const [QUOTE, BACKSLASH, LIST, LIST_END, OBJECT, OBJECT_END] = [...'"\\[]{}'].map((mark) =>
  mark.charCodeAt(0),
);

/**
 * Counts without a regular expression, which would take longer than JSON.parse.
 * @param {string} text of JSON
 */
function checkNodes(text) {
  let depth = 0;
  let nodes = 0;
  let isInText = false;
  for (let i = 0; i < text.length; i++) {
    const mark = text.charCodeAt(i);
    if (mark === QUOTE) isInText = !isInText;
    else if (isInText) i += mark === BACKSLASH ? 1 : 0;
    else if (mark === LIST || mark === OBJECT) {
      if (++depth > DEPTH_MAX)
        throw malformed(`The body is nested deeper than ${DEPTH_MAX} levels`);
      if (++nodes > NODES_MAX) throw tooManyNodes();
    } else if (mark === LIST_END || mark === OBJECT_END) depth--;
  }
}

/**
 * @param {ReadableStream<Uint8Array>} body
 * @param {{bodyBytesMax: number, bodyTimeout: number}} limits
 * @param {AbortSignal} signal stops reading: a body need not end when its client disconnects
 * @returns {Promise<string>}
 */
async function readText(body, { bodyBytesMax: bytesMax, bodyTimeout: ms }, signal) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const reader = body.getReader();
  let isLate = false;
  const leave = () => void reader.cancel().catch(() => {}); // the stream has already ended
  if (signal.aborted) leave();
  signal.addEventListener('abort', leave);
  const timer = setTimeout(() => {
    isLate = true;
    leave();
  }, ms);
  let text = '';
  let bytesCount = 0;
  try {
    for (;;) {
      const { done, value } = await readPiece(reader);
      if (isLate) throw refusal('body_late', [ms]);
      if (done) break;
      bytesCount += value.byteLength;
      if (bytesCount > bytesMax) throw tooLarge(bytesMax);
      text += decode(decoder, value);
    }
    return text + decode(decoder);
  } catch (error) {
    leave();
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
  }
}

/**
 * @param {ReadableStreamDefaultReader<Uint8Array>} reader the reader of the body; a body that ends
 * early is the client's error
 */
async function readPiece(reader) {
  try {
    return await reader.read();
  } catch {
    throw malformed('The body ended early');
  }
}

/** @param {TextDecoder} decoder @param {Uint8Array} [bytes] missing at the end @returns {string} */
function decode(decoder, bytes) {
  try {
    return decoder.decode(bytes, { stream: bytes !== undefined });
  } catch {
    throw malformed('The body is not UTF-8');
  }
}

/**
 * Limits the number of items, because each costs work that delays other requests. A list of numbers
 * counts as one item, because it contains the tokens of one input.
 * @param {Record<string, unknown>} body
 * @param {number} itemsMax the limit for each list field
 */
function checkLists(body, itemsMax) {
  for (const [name, list] of Object.entries(body)) {
    if (!Array.isArray(list) || list.length <= itemsMax || typeof list[0] === 'number') continue;
    throw refusal('long_list', [name.slice(0, 60), itemsMax, list.length], { param: name });
  }
}

/**
 * @param {Request} request
 * @param {{bodyBytesMax: number, bodyTimeout: number, itemsMax: number}} limits
 * @returns {Promise<Record<string, unknown>>}
 */
export async function readBody(request, limits) {
  checkHeaders(request.headers, limits.bodyBytesMax);
  const text = request.body ? await readText(request.body, limits, request.signal) : '';
  checkNodes(text);
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw malformed(`The body is not JSON: ${/** @type {Error} */ (error).message}`);
  }
  if (!isObject(value)) throw malformed('The body must be a JSON object');
  checkLists(value, limits.itemsMax);
  return value;
}
