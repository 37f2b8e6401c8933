// js/chat/chat_media.js — images and recordings in a chat's messages: they are copied, so that
// later changes to the caller's objects have no effect, and encoded as data URLs in a saved chat.

/** @import { ChatMessage, Engine } from '../index.js' */
/** The properties of a part that may contain something other than text. */
const names = ['image', 'audio', 'image_url', 'url'];

/** Copies of parts whose content is decoded, because it cannot be copied otherwise: canvases, elements, AudioBuffers. @type {WeakSet<object>} */
const undecoded = new WeakSet();

/** @param {any} part @returns {any} */
function copyOfPart(part) {
  const name = names.find((one) => typeof part?.[one] === 'object' && part[one] !== null);
  if (!name) return structuredClone(part);
  const { [name]: content, ...others } = part;
  const copy = structuredClone(others);
  if (content instanceof URL) return { ...copy, [name]: String(content) };
  if (name === 'image_url') return { ...copy, [name]: copyOfPart(content) };
  try {
    return { ...copy, [name]: structuredClone(content) };
  } catch {
    const held = { ...copy, [name]: content };
    undecoded.add(held);
    return held;
  }
}

/** @param {any} message @returns {ChatMessage} */
export function copyOfMessage(message) {
  if (!Array.isArray(message?.content)) return structuredClone(message);
  const { content, ...others } = message;
  return { ...structuredClone(others), content: content.map(copyOfPart) };
}

/**
 * @param {ChatMessage[]} messages
 * @param {(part: any) => Promise<any>} change
 * @returns {Promise<ChatMessage[]>}
 */
async function changed(messages, change) {
  const changeOne = async (/** @type {any} */ message) =>
    Array.isArray(message.content)
      ? { ...message, content: await Promise.all(message.content.map(change)) }
      : message;
  return Promise.all(messages.map(changeOne));
}

/**
 * Decodes content that could not be copied. Content that cannot be decoded is left unchanged, and
 * the request rejects it.
 * @param {Engine} engine
 * @param {ChatMessage[]} messages copies of the caller's messages
 * @returns {Promise<ChatMessage[]>}
 */
export const settledMessages = (engine, messages) =>
  changed(messages, async (part) =>
    undecoded.has(part) ? engine.decodeMedia(part).catch(() => part) : part,
  );

// ---- saved chats ----

/** @param {string} type @param {Uint8Array} bytes @returns {string} */
function dataUrlOf(type, bytes) {
  let text = '';
  for (let at = 0; at < bytes.length; at += 2 ** 15) {
    text += String.fromCharCode(...bytes.subarray(at, at + 2 ** 15));
  }
  return `data:${type};base64,${btoa(text)}`;
}

/** @param {{width: number, height: number, data: ArrayLike<number>}} pixels of three bytes each @returns {string} a PPM file */
function ppmUrlOf({ width, height, data }) {
  const head = new TextEncoder().encode(`P6 ${width} ${height} 255\n`);
  const bytes = new Uint8Array(head.length + data.length);
  bytes.set(head);
  bytes.set(data, head.length);
  return dataUrlOf('image/x-portable-pixmap', bytes);
}

/**
 * @param {{samples: Float32Array, sampleRate: number}} sound
 * @returns {string} a WAV file with these samples, as floats
 */
function wavUrlOf({ samples, sampleRate }) {
  const [head, size] = [new DataView(new ArrayBuffer(44)), samples.byteLength];
  const put = (/** @type {number} */ at, /** @type {string} */ word) => {
    for (let i = 0; i < 4; i++) head.setUint8(at + i, word.charCodeAt(i));
  };
  put(0, 'RIFF');
  head.setUint32(4, 36 + size, true);
  put(8, 'WAVE');
  put(12, 'fmt ');
  head.setUint32(16, 16, true);
  head.setUint16(20, 3, true);
  head.setUint16(22, 1, true);
  head.setUint32(24, sampleRate, true);
  head.setUint32(28, 4 * sampleRate, true);
  head.setUint16(32, 4, true);
  head.setUint16(34, 32, true);
  put(36, 'data');
  head.setUint32(40, size, true);
  const bytes = new Uint8Array(44 + size);
  bytes.set(new Uint8Array(head.buffer));
  bytes.set(new Uint8Array(samples.buffer, samples.byteOffset, size), 44);
  return dataUrlOf('audio/wav', bytes);
}

/**
 * @param {Engine} engine
 * @param {any} part
 * @returns {Promise<any>} the part with a URL
 */
async function writtenPart(engine, part) {
  const { type, image_url: url } = part;
  const content = type === 'image_url' ? (url?.url ?? url) : part[type];
  const isAddress = typeof content === 'string' && !content.startsWith('blob:');
  if ((type !== 'image' && type !== 'audio' && type !== 'image_url') || isAddress) return part;
  const kind = type === 'audio' ? 'audio' : 'image';
  if (content instanceof Blob) {
    const bytes = new Uint8Array(await content.arrayBuffer());
    return { type: kind, [kind]: dataUrlOf(content.type || 'application/octet-stream', bytes) };
  }
  const decoded = /** @type {any} */ (
    await engine.decodeMedia(/** @type {any} */ ({ type: kind, [kind]: content }))
  )[kind];
  return { type: kind, [kind]: (kind === 'audio' ? wavUrlOf : ppmUrlOf)(decoded) };
}

/**
 * @param {Engine} engine
 * @param {ChatMessage[]} messages
 * @returns {Promise<ChatMessage[]>} messages that can be stored as JSON
 */
export const writtenMessages = (engine, messages) =>
  changed(messages, (part) => writtenPart(engine, part));
