// examples/chat/context_sizes.js — possible context sizes, and the cost of each.

/** The engine's default context, unless the model was trained for fewer tokens. */
export const CONTEXT_USUAL = 4096;

/**
 * `moreBytes` is the memory in addition to the engine's current memory.
 * @typedef {{tokens: number, moreBytes: number, fits: boolean}} Size
 */

/**
 * @param {{limitBytes: number, mostBytes: number}} memory the limit of the engine's memory, and the
 * largest limit that an engine for a longer context may have
 * @param {number | undefined} deviceBytes the part of the device's memory that may be used;
 * undefined if the browser does not report it
 * @returns {number}
 */
export const reachableBytes = ({ limitBytes, mostBytes }, deviceBytes) =>
  deviceBytes === undefined ? limitBytes : Math.min(mostBytes, deviceBytes);

/**
 * @param {{trained: number, now: number, bytesPerToken: number, totalBytes: number}} model the
 * model, whose current context has `now` tokens
 * @param {number} limitBytes the engine's memory limit
 * @returns {Size[]} the sizes: the default one first, the trained one last
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
