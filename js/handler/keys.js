// js/handler/keys.js — the keys of clients, compared in constant time, and the salt of each key's requests.

import { HttpError } from './http_errors.js';

const encoder = new TextEncoder();

/** @param {string} text @returns {Promise<Uint8Array>} its SHA-256, 32 bytes */
const digestOf = async (text) =>
  new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(text)));

/**
 * Compares digests in a time that depends neither on their content nor on the length of a key.
 * @param {Uint8Array} a
 * @param {Uint8Array} b of the same length
 */
function isSame(a, b) {
  let difference = 0;
  for (const [at, byte] of a.entries()) difference |= byte ^ b[at];
  return difference === 0;
}

/** @param {Uint8Array} bytes @returns {string} */
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/**
 * Saved states contain a hash of the salt. The salt is itself a hash of the key, so a state contains no key.
 * @param {string} key
 * @returns {Promise<{digest: Uint8Array, salt: string}>}
 */
const tenantOf = async (key) => ({
  digest: await digestOf(key),
  salt: hexOf(await digestOf(`wick-llm/openai tenant\n${key}`)),
});

export class Keys {
  #tenants;

  /** @param {string[]} keys if the list is empty, anyone may send requests */
  constructor(keys) {
    this.#tenants = keys.length > 0 ? Promise.all(keys.map(tenantOf)) : undefined;
  }

  /**
   * @param {Headers} headers of a request
   * @returns {Promise<string | undefined>} the salt of the key's requests; undefined without keys
   */
  async saltFor(headers) {
    if (!this.#tenants) return undefined;
    const [, bearer] = /^Bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '') ?? [];
    const sent = bearer ?? headers.get('x-api-key')?.trim() ?? ''; // Anthropic's clients send x-api-key
    const [digest, tenants] = await Promise.all([digestOf(sent), this.#tenants]);
    let salt = '';
    for (const tenant of tenants) if (isSame(tenant.digest, digest)) salt = tenant.salt;
    if (salt !== '') return salt;
    const problem =
      sent === '' ? 'A key is required: Authorization: Bearer KEY' : 'The key is not valid';
    throw new HttpError(401, 'invalid_api_key', problem, {
      headers: { 'WWW-Authenticate': 'Bearer' },
    });
  }
}

/**
 * Combines the key's salt with one that a client may send. All salts of keys have the same length,
 * so salts of clients with different keys never collide.
 * @param {string | undefined} tenant the key's salt
 * @param {string | null | undefined} own the salt from the body
 * @returns {string | undefined}
 */
export function saltWithin(tenant, own) {
  if (tenant === undefined) return own ?? undefined;
  return own ? `${tenant}/${own}` : tenant;
}
