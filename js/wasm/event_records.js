// js/wasm/event_records.js — reads the records of wick_events_take (include/wick.h) into objects.

import * as layout from './layout.js';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** One record of wick_events_take (include/wick.h, wick_event). @typedef {ReturnType<typeof decodeEvent>} EngineEvent */

/** @param {Uint8Array<ArrayBuffer>} bytes @returns {EngineEvent[]} */
export function decodeEvents(bytes) {
  const view = new DataView(bytes.buffer);
  /** @type {EngineEvent[]} */
  const events = [];
  for (
    let at = 0;
    at < bytes.byteLength;
    at += view.getUint32(at + layout.EVENT_SIZE_BYTES_AT, true)
  ) {
    events.push(decodeEvent(bytes, view, at));
  }
  return events;
}

/** @param {Uint8Array} bytes @param {DataView} view @param {number} at */
function decodeEvent(bytes, view, at) {
  /** @param {number} offset */
  const u32 = (offset) => view.getUint32(at + offset, true);
  /** @param {number} offset */
  const f64 = (offset) => view.getFloat64(at + offset, true);
  const topCount = u32(layout.EVENT_TOP_COUNT_AT);
  const top = [];
  for (let i = 0; i < topCount; i++) {
    const pair = at + layout.EVENT_BYTES + i * layout.TOP_BYTES;
    const token = view.getInt32(pair + layout.TOP_TOKEN_AT, true);
    top.push({ token, logprob: view.getFloat32(pair + layout.TOP_LOGPROB_AT, true) });
  }
  const text = at + layout.EVENT_BYTES + topCount * layout.TOP_BYTES;
  const end = text + u32(layout.EVENT_TEXT_BYTES_AT);
  const finish = view.getUint16(at + layout.EVENT_FINISH_AT, true);
  const kind = u32(layout.EVENT_KIND_AT);
  const textEnd = kind === layout.EVENT_CALL ? text + finish : end;
  return {
    request: u32(layout.EVENT_REQUEST_AT),
    kind,
    token: view.getInt32(at + layout.EVENT_TOKEN_AT, true),
    logprob: view.getFloat32(at + layout.EVENT_LOGPROB_AT, true),
    top,
    text: decoder.decode(bytes.subarray(text, textEnd)),
    /** The id of a call that begins; the text is its name. */
    id: textEnd < end ? decoder.decode(bytes.subarray(textEnd, end)) : '',
    finish,
    /** 1 + the index of the stop string that ended it, or 0; for a part of a call, the index of the call. */
    stop: view.getUint16(at + layout.EVENT_STOP_AT, true),
    status: view.getUint16(at + layout.EVENT_STATUS_AT, true),
    subject: view.getUint16(at + layout.EVENT_SUBJECT_AT, true),
    tokensPrompt: u32(layout.EVENT_TOKENS_PROMPT_AT),
    tokensCached: u32(layout.EVENT_TOKENS_CACHED_AT),
    tokensOut: u32(layout.EVENT_TOKENS_OUT_AT),
    queueMs: f64(layout.EVENT_QUEUE_MS_AT),
    prefillMs: f64(layout.EVENT_PREFILL_MS_AT),
    decodeMs: f64(layout.EVENT_DECODE_MS_AT),
    ttftMs: f64(layout.EVENT_TTFT_MS_AT),
  };
}
