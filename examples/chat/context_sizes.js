// examples/chat/context_sizes.js — sizes of a context, and the cost of each.

/** The context that the engine takes by default, if the model was trained for as much. */
export const CONTEXT_USUAL = 4096;

/** `moreBytes` in addition to what the engine has now. @typedef {{tokens: number, moreBytes: number, fits: boolean}} Size */

/**
 * @param {{limitBytes: number, mostBytes: number}} memory of the engine; a longer context may get it a larger memory
 * @param {number | undefined} deviceBytes as much of the device's memory as may be used; undefined: the browser does not say
 * @returns {number}
 */
export const reachableBytes = ({ limitBytes, mostBytes }, deviceBytes) =>
  deviceBytes === undefined ? limitBytes : Math.min(mostBytes, deviceBytes);

/**
 * @param {{trained: number, now: number, bytesPerToken: number, totalBytes: number}} model `now` tokens are its context
 * @param {number} limitBytes that it may have
 * @returns {Size[]} the usual one first; the last is what the model was trained for
 */
export function sizesOf({ trained, now, bytesPerToken, totalBytes }, limitBytes) {
  /** @type {Size[]} */
  const sizes = [];
  for (let tokens = CONTEXT_USUAL; ; tokens = Math.min(trained, tokens * 2)) {
    const moreBytes = (tokens - now) * bytesPerToken;
    sizes.push({ tokens, moreBytes, fits: tokens <= now || totalBytes + moreBytes <= limitBytes });
    if (tokens >= trained) return sizes;
  }
}
