// js/handler/echo.js — `echo` of /v1/completions: the prompt's own text before each choice, and with `logprobs` the
// probability of each of its tokens. The engine processes the prompt's first token and is forced to generate the others.

import { HttpError, invalidField } from './http_errors.js';

/** @typedef {import('../index.js').Engine} Engine */
/** @typedef {import('../index.js').TokenDetail} TokenDetail */

/**
 * @typedef {object} Echo
 * @property {string} text of the prompt
 * @property {number} promptTokens the number of tokens that the model processes
 * @property {(Pick<TokenDetail, 'text' | 'top'> & {logprob?: number | null})[]} tokens the tokens
 * of the prompt, or none without logprobs; the first one has no logprob, because no token precedes
 * it
 */

/** @param {number[]} all @param {number[]} part @param {number} from */
const isAt = (all, part, from) => part.every((id, index) => all[from + index] === id);

/**
 * Returns the tokens that the model processes, and the index where those of the prompt begin, after
 * a BOS.
 * @param {Engine} engine
 * @param {string | number[]} prompt
 * @param {AbortSignal | undefined} signal
 */
async function tokensOf(engine, prompt, signal) {
  if (typeof prompt !== 'string') return { ids: prompt, first: 0 };
  const all = await engine.tokenize(prompt, { signal });
  const own = await engine.tokenize(prompt, { addSpecial: false, signal });
  const first = all.length > own.length && isAt(all, own, 1) ? 1 : 0;
  return { ids: all.slice(0, first + own.length), first };
}

/** @param {Engine} engine @param {number} id @returns {Promise<string>} the text of a token */
async function pieceOf(engine, id) {
  const [bytes] = await engine.tokenBytes([id]);
  return new TextDecoder().decode(bytes);
}

/**
 * @param {Engine} engine
 * @param {number[]} ids at least two ids
 * @param {Record<string, any>} options of the request
 * @returns {Promise<TokenDetail[]>} the details of all tokens except the first
 */
async function detailsOf(engine, [first, ...forced], { logprobs, adapters, salt, signal }) {
  /** @type {TokenDetail[]} */
  const details = [];
  const onToken = (/** @type {TokenDetail} */ token) => void details.push(token);
  const maxTokens = forced.length;
  const own = { logprobs, adapters, salt, signal, onToken, forced, maxTokens };
  const fixed = { temperature: 0, ignoreEnd: true, printSpecial: true, speculation: false };
  await engine.generate([first], { ...own, ...fixed }).text();
  if (details.length === forced.length) return details;
  const message = `prompt has ${forced.length + 1} tokens, but only ${details.length + 1} fit in the context`;
  throw new HttpError(400, 'context_length_exceeded', message, { param: 'prompt' });
}

/**
 * @param {Engine} engine
 * @param {string | number[]} prompt
 * @param {Record<string, any>} options of the request
 * @returns {Promise<Echo>}
 */
export async function echoOf(engine, prompt, options) {
  const { ids, first } = await tokensOf(engine, prompt, options.signal);
  const { signal } = options;
  const text =
    typeof prompt === 'string' ? prompt : await engine.detokenize(ids, { special: true, signal });
  const promptTokens = ids.length;
  if (ids.length === 0)
    throw invalidField('prompt', 'prompt is empty, and the model adds no tokens');
  if (options.logprobs === undefined) return { text, promptTokens, tokens: [] };
  const details = ids.length > 1 ? await detailsOf(engine, ids, options) : [];
  if (first > 0) return { text, promptTokens, tokens: details };
  const begin = { text: await pieceOf(engine, ids[0]), logprob: null, top: [] };
  return { text, promptTokens, tokens: [begin, ...details] };
}
