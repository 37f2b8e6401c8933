// A client for a handler in the same process, for tests that reproduce public reports.

import assert from 'node:assert/strict';

export const CHAT = '/v1/chat/completions';

/** @typedef {(request: Request) => Promise<Response>} Handle */

/** @param {string} path @param {unknown} body @param {AbortSignal} [signal] @returns {Request} */
export const post = (path, body, signal) =>
  new Request(`http://localhost${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...(signal && { signal }),
  });

/** @param {string} text of server-sent events @returns {any[]} */
const eventsIn = (text) =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, event]) => JSON.parse(event));

/**
 * @param {Handle} handle
 * @param {string} path
 * @param {unknown} body a value, or JSON
 * @param {number} [status]
 * @returns {Promise<any>} the response body, or the events of a stream
 */
export async function askHandler(handle, path, body, status = 200) {
  const answer = await handle(post(path, body));
  const text = await answer.text();
  assert.equal(answer.status, status, `${path}: ${text.slice(0, 300)}`);
  return /^(data|event): /.test(text) ? eventsIn(text) : JSON.parse(text);
}

/** @param {any[]} events of a chat @returns {string} */
export const contentOf = (events) =>
  events.map(({ choices: [choice] }) => choice?.delta.content ?? '').join('');
