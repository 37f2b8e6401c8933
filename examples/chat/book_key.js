// examples/chat/book_key.js — the user's key, which signs exported books and proves on another device that an imported book was
// read by this user. Anyone with the key can make the model say anything in a book, so the key leaves the browser only in a file
// that the user exports.

import { addKey, listKeys } from './book_store.js';
import { newId } from './records.js';

/**
 * `since` is when it became the user's key.
 * @typedef {{id: string, algorithm: 'Ed25519' | 'ECDSA', private: JsonWebKey, public: JsonWebKey,
 *   since: number}} Key
 */
/** @typedef {{algorithm: string, value: string}} Signature */

const FORMAT = 'wick-book-key';
const SIGNATURE_LETTERS_MAX = 200;
/**
 * The algorithms. A new key uses the first one that the browser supports.
 * @type {Record<Key['algorithm'], {use: any, curve: string, type: string, numbers: string[]}>}
 */
const algorithms = {
  Ed25519: { use: { name: 'Ed25519' }, curve: 'Ed25519', type: 'OKP', numbers: ['x'] },
  ECDSA: {
    use: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
    curve: 'P-256',
    type: 'EC',
    numbers: ['x', 'y'],
  },
};

/** Returns whether the page can sign: it must be served over HTTPS or from localhost. */
export const canSign = () => globalThis.crypto?.subtle !== undefined;

/** @returns {Promise<Key>} */
async function makeKey() {
  for (const algorithm of /** @type {Key['algorithm'][]} */ (Object.keys(algorithms))) {
    try {
      const made = /** @type {CryptoKeyPair} */ (
        await crypto.subtle.generateKey(algorithms[algorithm].use, true, ['sign', 'verify'])
      );
      const [own, shown] = await Promise.all([
        crypto.subtle.exportKey('jwk', made.privateKey),
        crypto.subtle.exportKey('jwk', made.publicKey),
      ]);
      return { id: newId(), algorithm, private: own, public: shown, since: Date.now() };
    } catch {
      // this browser does not support it
    }
  }
  throw new Error('this browser cannot create keys');
}

async function ownKey() {
  const [known] = await listKeys();
  return /** @type {Key} */ (known ?? (await addKey(await makeKey(), true)));
}

/** @param {ArrayBuffer} bytes */
const toText = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)));

/** @param {string} text */
const toBytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** @param {Key} key @param {Uint8Array<ArrayBuffer>} bytes */
async function signWith(key, bytes) {
  const { use } = algorithms[key.algorithm];
  const own = await crypto.subtle.importKey('jwk', key.private, use, false, ['sign']);
  return crypto.subtle.sign(use, own, bytes);
}

/** @param {Key} key @param {Uint8Array<ArrayBuffer>} value @param {Uint8Array<ArrayBuffer>} bytes */
async function isSignedWith(key, value, bytes) {
  const { use } = algorithms[key.algorithm];
  const shown = await crypto.subtle.importKey('jwk', key.public, use, false, ['verify']);
  return crypto.subtle.verify(use, shown, value, bytes);
}

/**
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @returns {Promise<Signature | undefined>} undefined if this page cannot sign
 */
export async function sign(bytes) {
  if (!canSign()) return undefined;
  const key = await ownKey();
  return { algorithm: key.algorithm, value: toText(await signWith(key, bytes)) };
}

/**
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {any} signature of unknown origin
 * @returns {Promise<boolean>} whether it was created with a key of this user
 */
export async function isOwn(bytes, { algorithm, value } = {}) {
  if (!canSign() || typeof value !== 'string' || value.length > SIGNATURE_LETTERS_MAX) return false;
  const keys = (await listKeys()).filter((key) => key.algorithm === algorithm);
  for (const key of keys) {
    try {
      if (await isSignedWith(key, toBytes(value), bytes)) return true;
    } catch {
      // not a signature of this key, or a key that this browser does not support
    }
  }
  return false;
}

/** @returns {Promise<string>} the content of a key file */
export async function exportKey() {
  const { algorithm, private: own, public: shown } = await ownKey();
  return JSON.stringify(
    { format: FORMAT, version: 1, algorithm, private: own, public: shown },
    null,
    1,
  );
}

/**
 * @param {any} jwk
 * @param {Key['algorithm']} algorithm
 * @param {string[]} names of its numeric members
 * @returns {JsonWebKey | undefined} the key with only these members
 */
function numbersOf(jwk, algorithm, names) {
  const { curve, type } = algorithms[algorithm];
  if (jwk?.kty !== type || jwk.crv !== curve) return undefined;
  const numbers = names.map((name) => [name, jwk[name]]);
  const isWhole = numbers.every(([, one]) => typeof one === 'string' && one.length < 100);
  return isWhole ? { kty: type, crv: curve, ...Object.fromEntries(numbers) } : undefined;
}

/**
 * Makes this the key that signs. The earlier key is kept, so that its signatures
 * remain valid.
 * @param {string} text of a file
 * @throws {Error} if the text is not a key, or is damaged
 */
export async function importKey(text) {
  /** @type {any} */
  const found = await new Response(text).json().catch(() => undefined);
  if (found?.format !== FORMAT || !Object.hasOwn(algorithms, found.algorithm))
    throw new Error('it is not a key from this page');
  const algorithm = /** @type {Key['algorithm']} */ (found.algorithm);
  const { numbers } = algorithms[algorithm];
  const shown = numbersOf(found.public, algorithm, numbers);
  const own = numbersOf(found.private, algorithm, [...numbers, 'd']);
  if (!shown || !own) throw new Error('it is damaged');
  const key = { id: newId(), algorithm, private: own, public: shown, since: Date.now() };
  const probe = crypto.getRandomValues(new Uint8Array(32));
  const signed = await signWith(key, probe).catch(() => undefined);
  const isPair =
    signed && (await isSignedWith(key, new Uint8Array(signed), probe).catch(() => false));
  if (!isPair) throw new Error(`it is damaged, or this browser does not support ${algorithm}`);
  const same = (await listKeys()).find((one) => one.public.x === shown.x);
  await addKey({ ...key, id: same?.id ?? key.id });
}
