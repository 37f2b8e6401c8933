// js/wasm/event_records.js — reads the records of wick_events_take (include/wick.h) into objects.

import {
  EVENT_BYTES,
  EVENT_CALL,
  EVENT_DECODE_MS_AT,
  EVENT_FINISH_AT,
  EVENT_KIND_AT,
  EVENT_LOGPROB_AT,
  EVENT_PREFILL_MS_AT,
  EVENT_QUEUE_MS_AT,
  EVENT_REQUEST_AT,
  EVENT_SIZE_BYTES_AT,
  EVENT_STATUS_AT,
  EVENT_STOP_AT,
  EVENT_SUBJECT_AT,
  EVENT_TEXT_BYTES_AT,
  EVENT_TOKEN_AT,
  EVENT_TOKENS_CACHED_AT,
  EVENT_TOKENS_OUT_AT,
  EVENT_TOKENS_PROMPT_AT,
  EVENT_TOP_COUNT_AT,
  EVENT_TTFT_MS_AT,
  TOP_BYTES,
  TOP_LOGPROB_AT,
  TOP_TOKEN_AT,
} from './layout.js';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * One record of wick_events_take (include/wick.h, wick_event).
 * @typedef {object} EngineEvent
 * @property {number} request
 * @property {number} kind
 * @property {number} token
 * @property {number} logprob
 * @property {{token: number, logprob: number}[]} top
 * @property {string} text
 * @property {number} finish
 * @property {number} stop 1 + the index of the stop string that ended it, or 0; for a part of a
 * call, the index of the call
 * @property {string} id of a call that begins; its name is the text
 * @property {number} status
 * @property {number} subject
 * @property {number} tokensPrompt
 * @property {number} tokensCached
 * @property {number} tokensOut
 * @property {number} queueMs
 * @property {number} prefillMs
 * @property {number} decodeMs
 * @property {number} ttftMs
 */

/** @param {Uint8Array<ArrayBuffer>} bytes @returns {EngineEvent[]} */
export function decodeEvents(bytes) {
  const view = new DataView(bytes.buffer);
  /** @type {EngineEvent[]} */
  const events = [];
  for (let at = 0; at < bytes.byteLength; at += view.getUint32(at + EVENT_SIZE_BYTES_AT, true)) {
    events.push(decodeEvent(bytes, view, at));
  }
  return events;
}

/** @param {Uint8Array} bytes @param {DataView} view @param {number} at @returns {EngineEvent} */
function decodeEvent(bytes, view, at) {
  /** @param {number} offset */
  const u32 = (offset) => view.getUint32(at + offset, true);
  /** @param {number} offset */
  const f64 = (offset) => view.getFloat64(at + offset, true);
  const topCount = u32(EVENT_TOP_COUNT_AT);
  const top = [];
  for (let i = 0; i < topCount; i++) {
    const pair = at + EVENT_BYTES + i * TOP_BYTES;
    const token = view.getInt32(pair + TOP_TOKEN_AT, true);
    top.push({ token, logprob: view.getFloat32(pair + TOP_LOGPROB_AT, true) });
  }
  const text = at + EVENT_BYTES + topCount * TOP_BYTES;
  const end = text + u32(EVENT_TEXT_BYTES_AT);
  const finish = view.getUint16(at + EVENT_FINISH_AT, true);
  const kind = u32(EVENT_KIND_AT);
  const textEnd = kind === EVENT_CALL ? text + finish : end;
  return {
    request: u32(EVENT_REQUEST_AT),
    kind,
    token: view.getInt32(at + EVENT_TOKEN_AT, true),
    logprob: view.getFloat32(at + EVENT_LOGPROB_AT, true),
    top,
    text: decoder.decode(bytes.subarray(text, textEnd)),
    id: textEnd < end ? decoder.decode(bytes.subarray(textEnd, end)) : '',
    finish,
    stop: view.getUint16(at + EVENT_STOP_AT, true),
    status: view.getUint16(at + EVENT_STATUS_AT, true),
    subject: view.getUint16(at + EVENT_SUBJECT_AT, true),
    tokensPrompt: u32(EVENT_TOKENS_PROMPT_AT),
    tokensCached: u32(EVENT_TOKENS_CACHED_AT),
    tokensOut: u32(EVENT_TOKENS_OUT_AT),
    queueMs: f64(EVENT_QUEUE_MS_AT),
    prefillMs: f64(EVENT_PREFILL_MS_AT),
    decodeMs: f64(EVENT_DECODE_MS_AT),
    ttftMs: f64(EVENT_TTFT_MS_AT),
  };
}
