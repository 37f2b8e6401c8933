// examples/shared/fragment.js — stores a page's state in the fragment of its URL: JSON, compressed, in base64url. Browsers do not
// send fragments to servers.

/** A link may come from anyone, so its size is limited. */
const BYTES_MAX = 1 << 20;

/** @param {Uint8Array<ArrayBuffer>} bytes @param {'compress' | 'decompress'} way @returns {Promise<Uint8Array<ArrayBuffer>>} */
async function piped(bytes, way) {
  const format = 'deflate-raw';
  const stream =
    way === 'compress' ? new CompressionStream(format) : new DecompressionStream(format);
  const writer = stream.writable.getWriter();
  const isWritten = writer.write(bytes).then(() => writer.close());
  isWritten.catch(() => {}); // the reader reports the error
  /** @type {Uint8Array[]} */
  const pieces = [];
  let count = 0;
  const reader = stream.readable.getReader();
  for (let step = await reader.read(); !step.done; step = await reader.read()) {
    count += step.value.length;
    if (count > BYTES_MAX) {
      await reader.cancel().catch(() => {});
      throw new Error(`it has more than ${BYTES_MAX} bytes`);
    }
    pieces.push(step.value);
  }
  const whole = new Uint8Array(count);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** @param {unknown} value of JSON @returns {Promise<string>} */
export async function packFragment(value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  if (bytes.length > BYTES_MAX) throw new Error(`it has more than ${BYTES_MAX} bytes`);
  const packed = await piped(bytes, 'compress');
  let binary = '';
  for (const byte of packed) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/**
 * @param {string} text
 * @returns {Promise<any>} the state; rejects if packFragment did not create it
 */
export async function unpackFragment(text) {
  if (text.length > BYTES_MAX) throw new Error(`it is longer than ${BYTES_MAX} characters`);
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  const bytes = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(await piped(bytes, 'decompress')));
}
