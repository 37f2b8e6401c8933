// js/chat/chat_file.js — the file format of a chat: its messages as JSON, and the state of its session. All
// numbers are little-endian:
//
//   8 bytes  WICKCHAT
//   u32      version
//   u32      bytes of JSON
//   u32      CRC-32 of the JSON (ISO 3309)
//   JSON     {"messages": [...]}, UTF-8
//   state    the output of session.save, which has its own checksums

import { WickError } from '../index.js';

/** @import { ChatMessage } from '../index.js' */

const MAGIC = 'WICKCHAT';
const VERSION = 1;
const HEADER_BYTES = 20;
const CRC_POLYNOMIAL = 0xedb88320;

/** @param {Uint8Array} bytes @returns {number} */
function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? CRC_POLYNOMIAL : 0);
  }
  return ~crc >>> 0;
}

/** @param {ChatMessage[]} messages @param {Uint8Array} state @returns {Uint8Array<ArrayBuffer>} */
export function writeChatFile(messages, state) {
  const json = new TextEncoder().encode(JSON.stringify({ messages }));
  const bytes = new Uint8Array(HEADER_BYTES + json.byteLength + state.byteLength);
  const header = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(MAGIC));
  header.setUint32(8, VERSION, true);
  header.setUint32(12, json.byteLength, true);
  header.setUint32(16, crc32(json), true);
  bytes.set(json, HEADER_BYTES);
  bytes.set(state, HEADER_BYTES + json.byteLength);
  return bytes;
}

/** @param {unknown} from @returns {Promise<Uint8Array>} */
async function bytesOf(from) {
  if (from instanceof Blob) return new Uint8Array(await from.arrayBuffer());
  if (from instanceof ArrayBuffer) return new Uint8Array(from);
  if (from instanceof Uint8Array) return from;
  throw new WickError('ARG', 'chat: can be loaded from bytes or a Blob only');
}

/**
 * @param {unknown} from
 * @returns {Promise<{messages: ChatMessage[], state: Uint8Array}>}
 */
export async function readChatFile(from) {
  const bytes = await bytesOf(from);
  const header = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (new TextDecoder().decode(bytes.subarray(0, 8)) !== MAGIC) {
    throw new WickError('FORMAT', 'chat: bytes are not a saved chat');
  }
  if (bytes.byteLength < HEADER_BYTES) throw truncated();
  const version = header.getUint32(8, true);
  if (version !== VERSION) {
    throw new WickError(
      'FORMAT',
      `saved chat: has version ${version}, but only version ${VERSION} is supported`,
    );
  }
  const end = HEADER_BYTES + header.getUint32(12, true);
  if (end > bytes.byteLength) throw truncated();
  const json = bytes.subarray(HEADER_BYTES, end);
  if (crc32(json) !== header.getUint32(16, true)) {
    throw new WickError('CORRUPT', 'saved chat: damaged');
  }
  return { messages: messagesOf(json), state: bytes.subarray(end) };
}

/** @param {Uint8Array} json @returns {ChatMessage[]} */
function messagesOf(json) {
  /** @type {any} */
  let parsed;
  try {
    parsed = JSON.parse(new TextDecoder().decode(json));
  } catch (error) {
    throw new WickError('FORMAT', `saved chat: has no JSON (${error})`);
  }
  const { messages } = parsed ?? {};
  const areMessages = (/** @type {any} */ one) => typeof one?.role === 'string';
  if (Array.isArray(messages) && messages.every(areMessages)) return messages;
  throw new WickError('FORMAT', 'saved chat: has no messages');
}

const truncated = () => new WickError('TRUNCATED', 'saved chat: cut off');
