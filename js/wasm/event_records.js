// js/wasm/event_records.js — the records of wick_events_take (include/wick.h) as objects.

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

const EVENT_BYTES = 80;

/** @param {Uint8Array<ArrayBuffer>} bytes @returns {EngineEvent[]} */
export function decodeEvents(bytes) {
  const view = new DataView(bytes.buffer);
  /** @type {EngineEvent[]} */
  const events = [];
  for (let at = 0; at < bytes.byteLength; at += view.getUint32(at, true)) {
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
  const topCount = u32(20);
  const top = [];
  for (let i = 0; i < topCount; i++) {
    const pair = at + EVENT_BYTES + i * 8;
    top.push({ token: view.getInt32(pair, true), logprob: view.getFloat32(pair + 4, true) });
  }
  const text = at + EVENT_BYTES + topCount * 8;
  return {
    request: u32(4),
    kind: u32(8),
    token: view.getInt32(at + 12, true),
    logprob: view.getFloat32(at + 16, true),
    top,
    text: decoder.decode(bytes.subarray(text, text + u32(24))),
    finish: u32(28),
    status: view.getUint16(at + 32, true),
    subject: view.getUint16(at + 34, true),
    tokensPrompt: u32(36),
    tokensCached: u32(40),
    tokensOut: u32(44),
    queueMs: f64(48),
    prefillMs: f64(56),
    decodeMs: f64(64),
    ttftMs: f64(72),
  };
}
