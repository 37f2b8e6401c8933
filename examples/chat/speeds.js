// examples/chat/speeds.js — measured speeds of models on this machine, by the bytes of weights read
// per token.

import { keepJson, readList } from './local_storage.js';

/** @import { Measured } from './model_verdict.js' */

const SPEEDS = 'wick-chat-speeds';
const SPEEDS_MAX = 12;

/**
 * @param {import('wick-llm').ModelInspection} found
 * @returns {number} the bytes of weights read per token
 */
export function activeBytesOf({ tensors, metadata }) {
  const number = (/** @type {string} */ end) =>
    Number(/** @type {any} */ (metadata.find(({ key }) => key.endsWith(end)))?.value ?? 0);
  const [all, used] = [number('.expert_count'), number('.expert_used_count')];
  const share = all > 0 && used > 0 ? used / all : 1;
  const hasOutput = tensors.some(({ name }) => name === 'output.weight');
  return tensors.reduce((sum, { name, size_bytes: bytes }) => {
    if (name === 'token_embd.weight' && hasOutput) return sum; // only one row of it is read
    return sum + (/_exps\b/.test(name) ? bytes * share : bytes);
  }, 0);
}

/**
 * The bytes of weights read per token, by engine.
 * @type {WeakMap<import('wick-llm').Engine, Promise<number>>}
 */
const readBytes = new WeakMap();

/**
 * @param {import('wick-llm').Engine} engine
 * @returns {Promise<number>} the bytes, or 0 if the engine cannot report them
 */
export function readBytesOf(engine) {
  const known = readBytes.get(engine) ?? engine.inspect().then(activeBytesOf, () => 0);
  readBytes.set(engine, known);
  return known;
}

/** @returns {Measured[]} the speeds of models that have answered in this browser */
export const speedsHere = () =>
  readList(SPEEDS).filter((one) => one?.bytes > 0 && one.tokensPerSecond > 0);

/**
 * Stores the speed measured for an answer; only the newest for each size is kept.
 * @param {number} bytes of the model's weights
 * @param {number} tokensPerSecond
 */
export function keepSpeed(bytes, tokensPerSecond) {
  if (!(bytes > 0) || !(tokensPerSecond > 0)) return;
  const others = speedsHere().filter((one) => one.bytes !== bytes);
  keepJson(SPEEDS, [{ bytes, tokensPerSecond }, ...others].slice(0, SPEEDS_MAX));
}
