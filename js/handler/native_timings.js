// js/handler/native_timings.js — the timings of llama.cpp's server, from which its clients show the
// speed.

/** @param {number} count @param {number} ms */
const perSecond = (count, ms) => (count > 0 && ms > 0 ? (count * 1000) / ms : 0);

/**
 * @param {import('../index.js').GenerationResult['usage']} usage
 * @param {import('../index.js').Timings} timings
 */
export function nativeTimings({ promptTokens, cachedTokens, completionTokens: written }, timings) {
  const { prefillMs, decodeMs } = timings;
  const read = promptTokens - cachedTokens;
  return {
    ...{ cache_n: cachedTokens, prompt_n: read, prompt_ms: prefillMs },
    prompt_per_token_ms: read > 0 ? prefillMs / read : 0,
    prompt_per_second: perSecond(read, prefillMs),
    ...{ predicted_n: written, predicted_ms: decodeMs },
    predicted_per_token_ms: written > 0 ? decodeMs / written : 0,
    predicted_per_second: perSecond(written, decodeMs),
  };
}

/**
 * Adds these timings to those of a chat completion with one choice.
 * @param {any} ended the completion, or the chunk in which it ends
 * @param {any} usage of the completion
 */
export function addTimings(ended, usage) {
  if (!ended.timings) return; // an engine other than the package's
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens } = usage;
  const { cached_tokens: cachedTokens } = usage.prompt_tokens_details;
  const counts = { promptTokens, completionTokens, cachedTokens };
  Object.assign(ended.timings, nativeTimings(counts, ended.timings));
}

/**
 * Reads a stream with one choice, and adds these timings to its last chunk and to the one with the usage.
 * @param {AsyncIterator<any, any, void>} chunks of the engine, with the usage
 * @param {boolean} wantsUsage whether the client requested the usage
 * @returns {() => Promise<IteratorResult<any, any>>} returns the next chunk
 */
export function timedReader(chunks, wantsUsage) {
  /** The chunk with the usage, which arrives right after the last one. @type {IteratorResult<any, any> | undefined} */
  let last;
  return async () => {
    const next = last && wantsUsage ? last : await chunks.next();
    const isLast = next === last;
    last = undefined;
    if (next.done || isLast) return next;
    if (!wantsUsage) delete next.value.usage; // null
    if (!next.value.timings) return next;
    last = await chunks.next();
    if (last.done) return next; // the client has left
    addTimings(next.value, last.value.usage);
    last.value.timings = next.value.timings;
    return next;
  };
}
