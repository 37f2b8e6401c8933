// examples/chat/book_file.js — the file format of exported books: the text and, if it was read, a
// state with a signature. No part of a file is trusted: sizes are checked before anything is read,
// and a state is only used if this user's key has signed it together with its text.
//
//   16 bytes   "WICKBOOK", version u32, size of the head u32, little-endian
//   head       JSON: Head
//   8 bytes    size of the signature u32, 0 u32
//   signature  JSON: signature of MARK and the head
//   text       UTF-8, head.text.bytes
//   state      of Session.save, head.state.bytes

import { isOwn, sign } from './book_key.js';
import { beginsWith } from './file_type.js';

/** @import { Book, Reading } from './book_store.js' */
/**
 * `sha256` is the hash of the digests of its pieces, or empty if the page that wrote it could not
 * compute hashes.
 * @typedef {{bytes: number, sha256: string}} Part
 */
/** @typedef {{title: string, created: number, text: Part, state?: Part & {fingerprint: string, model: string, kvType: 'q8' | 'q4',
 *   tokens: number, total: number, ms: number}}} Head */
/** The usable parts of a file. `why`: the reason why its state is not usable. @typedef {{title: string, text: string,
 * created: number, state?: NonNullable<Head['state']>, bytes?: Uint8Array<ArrayBuffer>, why:
 * string}} Found */

const MAGIC = 'WICKBOOK';
const VERSION = 1;
const MARK = 'wick book 1\n';
/** Everything in front of the text, except for the head and the signature. */
const FRONT_BYTES = 24;
const HEAD_BYTES_MAX = 16_384;
const SIGNATURE_BYTES_MAX = 1024;
const TEXT_BYTES_MAX = 8e6;
const STATE_BYTES_MAX = 2e9;
const TITLE_LETTERS_MAX = 300;
const TOKENS_MAX = 1e8;
const PIECE_BYTES = 4 << 20;
const DAY_MS = 24 * 3600e3;

const encode = (/** @type {string} */ text) => new TextEncoder().encode(text);

/**
 * @param {Blob} blob
 * @returns {Promise<string>} the digest, or an empty string if this page cannot compute it
 */
async function digestOf(blob) {
  if (!globalThis.crypto?.subtle) return '';
  const count = Math.ceil(blob.size / PIECE_BYTES);
  const digests = new Uint8Array(count * 32);
  for (let index = 0; index < count; index++) {
    const piece = await blob.slice(index * PIECE_BYTES, (index + 1) * PIECE_BYTES).arrayBuffer();
    digests.set(new Uint8Array(await crypto.subtle.digest('SHA-256', piece)), index * 32);
  }
  const all = new Uint8Array(await crypto.subtle.digest('SHA-256', digests));
  return Array.from(all, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** @param {Uint8Array} head the signed part */
const signed = (head) => new Uint8Array([...encode(MARK), ...head]);

/** @param {...number} words @returns {Uint8Array<ArrayBuffer>} */
function wordsOf(...words) {
  const view = new DataView(new ArrayBuffer(words.length * 4));
  for (const [index, word] of words.entries()) view.setUint32(index * 4, word, true);
  return new Uint8Array(view.buffer);
}

/**
 * @param {Book} book
 * @param {string} text
 * @param {{reading: Reading, bytes: Uint8Array<ArrayBuffer>}} [read] the state of a model that has
 * read it
 * @returns {Promise<Blob>}
 */
export async function writeBook(book, text, read) {
  const parts = [new Blob([text]), ...(read ? [new Blob([read.bytes])] : [])];
  const [own, state] = await Promise.all(
    parts.map(async (part) => ({ bytes: part.size, sha256: await digestOf(part) })),
  );
  const { fingerprint, model, kvType, tokens, total, ms } = read?.reading ?? {};
  const facts = { fingerprint, model, kvType, tokens, total, ms };
  const head = encode(
    JSON.stringify({
      ...{ title: book.title, created: book.created, text: own },
      ...(read && { state: { ...state, ...facts } }),
    }),
  );
  const signature = read && own.sha256 ? await sign(signed(head)) : undefined;
  const proof = signature ? encode(JSON.stringify(signature)) : new Uint8Array();
  const front = [encode(MAGIC), wordsOf(VERSION, head.length), head, wordsOf(proof.length, 0)];
  return new Blob([...front, proof, ...parts], { type: 'application/octet-stream' });
}

/** @param {Blob} file */
export const isBook = (file) => beginsWith(file, MAGIC);

const damaged = () => new Error('it is damaged, or not a book from this page');

/** @param {unknown} value @param {number} most */
const isCount = (value, most) =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= most;

/** @param {unknown} value @param {number} most */
const isText = (value, most) =>
  typeof value === 'string' && value.length > 0 && value.length <= most;

/** @param {any} part @param {number} most bytes */
const isPart = (part, most) =>
  isCount(part?.bytes, most) && typeof part.sha256 === 'string' && part.sha256.length <= 64;

/** @param {any} state */
const isState = (state) =>
  isPart(state, STATE_BYTES_MAX) &&
  isText(state.fingerprint, 200) &&
  isText(state.model, TITLE_LETTERS_MAX) &&
  ['q8', 'q4'].includes(state.kvType) &&
  isCount(state.total, TOKENS_MAX) &&
  isCount(state.tokens, state.total) &&
  typeof state.ms === 'number' &&
  state.ms >= 0 &&
  state.ms < DAY_MS;

/** @param {ArrayBuffer} bytes @returns {any} undefined if it is not JSON */
function jsonOf(bytes) {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

/**
 * Reads the part in front of the text.
 * @param {Blob} file
 * @returns {Promise<{head: Head, headBytes: Uint8Array<ArrayBuffer>, proof: any, textAt: number}>}
 * `proof` is its signature, if it has one
 */
async function readFront(file) {
  if (!(await isBook(file)) || file.size < FRONT_BYTES) throw damaged();
  const most = FRONT_BYTES + HEAD_BYTES_MAX + SIGNATURE_BYTES_MAX;
  const front = await file.slice(0, most).arrayBuffer();
  const words = new DataView(front);
  const version = words.getUint32(8, true);
  if (version !== VERSION)
    throw new Error(`it was written by a different version of this page (version ${version})`);
  const headBytes = words.getUint32(12, true);
  const proofAt = FRONT_BYTES + headBytes;
  if (headBytes > HEAD_BYTES_MAX || proofAt > front.byteLength) throw damaged();
  const proofBytes = words.getUint32(proofAt - 8, true);
  if (proofBytes > SIGNATURE_BYTES_MAX || words.getUint32(proofAt - 4, true) !== 0) throw damaged();
  const textAt = proofAt + proofBytes;
  const [headPart, proof] = [front.slice(16, proofAt - 8), front.slice(proofAt, textAt)];
  return {
    head: jsonOf(headPart),
    headBytes: new Uint8Array(headPart),
    proof: jsonOf(proof),
    textAt,
  };
}

/**
 * @param {Blob} file
 * @returns {Promise<Found>}
 * @throws {Error} if no part of it can be used
 */
export async function readBookFile(file) {
  const { head, headBytes, proof, textAt } = await readFront(file);
  const isHead = isText(head?.title, TITLE_LETTERS_MAX) && isCount(head.created, 1e15);
  if (!isHead || !isPart(head.text, TEXT_BYTES_MAX)) throw damaged();
  if (head.state !== undefined && !isState(head.state)) throw damaged();
  const stateAt = textAt + head.text.bytes;
  if (stateAt + (head.state?.bytes ?? 0) !== file.size) throw damaged();
  const [textPart, statePart] = [file.slice(textAt, stateAt), file.slice(stateAt)];
  const own = await digestOf(textPart);
  if (own !== '' && head.text.sha256 !== '' && own !== head.text.sha256) throw damaged();
  const { title, created } = head;
  const text = new TextDecoder('utf-8', { fatal: true }).decode(await textPart.arrayBuffer());
  if (text.trim() === '' || text.includes('\0')) throw damaged();
  const found = { title, created, text };
  if (!head.state) return { ...found, why: 'none of it has been read yet' };
  if (!(await isOwn(signed(headBytes), proof ?? {})))
    return { ...found, why: 'its saved state is not signed by any of your keys' };
  if (own !== head.text.sha256 || (await digestOf(statePart)) !== head.state.sha256)
    return { ...found, why: 'its saved state does not match the signature of your key' };
  const bytes = new Uint8Array(await statePart.arrayBuffer());
  return { ...found, state: head.state, bytes, why: '' };
}
