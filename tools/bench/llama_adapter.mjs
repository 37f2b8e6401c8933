// A proxy between the tests of llama.cpp's server and `wick serve` (llama_server.mjs). It applies the
// defaults that options of llama-server set, and renames what the two servers name differently:
// - --temp, --seed, --n-predict: fields of requests that lack them; --n-predict also limits them
// - --reasoning, and the date of today: variables of the chat template
// - a last message of the assistant is continued
// - /completions is /completion; /models and preflight requests need no key; any origin is allowed
// - error types, `system_fingerprint`, and `content: null` in the first chunk of a chat
// The rest is passed on unchanged.

import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

const texts = [
  ...['/completion', '/infill', '/v1/completions', '/v1/chat/completions', '/chat/completions'],
  ...['/v1/messages', '/v1/responses'],
];
const chats = ['/v1/chat/completions', '/chat/completions', '/apply-template'];
/** The types that llama-server's errors have, by Wick's code. @type {Record<string, string>} */
const types = {
  context_length_exceeded: 'exceed_context_size_error',
  invalid_api_key: 'authentication_error',
};

/** @param {Map<string, string>} given options of llama-server @param {string} path @param {any} body is changed */
function addDefaults(given, path, body) {
  const isAnthropic = path === '/v1/messages';
  body.temperature ??= Number(given.get('--temp'));
  if (!isAnthropic) body.seed ??= Number(given.get('--seed'));
  const limit = Number(given.get('--n-predict') ?? -1);
  const isLimited = limit > 0 && !isAnthropic && path !== '/v1/responses';
  const name =
    ['n_predict', 'max_completion_tokens'].find((one) => body[one] != null) ?? 'max_tokens';
  if (isLimited && (body[name] == null || body[name] < 0)) body[name] = limit;
}

/** @param {Map<string, string>} given @param {string} path @param {any} body is changed */
function addTemplateDefaults(given, path, body) {
  const date = { day: '2-digit', month: 'short', year: 'numeric' };
  body.chat_template_kwargs = {
    enable_thinking: given.get('--reasoning') !== 'off',
    date_string: new Date().toLocaleDateString('en-GB', /** @type {any} */ (date)),
    ...body.chat_template_kwargs,
  };
  if (body.messages?.at?.(-1)?.role !== 'assistant' || path === '/apply-template') return;
  Object.assign(body, { continue_final_message: true, add_generation_prompt: false });
}

/** @param {Map<string, string>} given @param {string} path @param {Buffer} bytes @returns {string} */
function bodyFor(given, path, bytes) {
  let body;
  try {
    body = JSON.parse(String(bytes));
  } catch {
    return String(bytes);
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return String(bytes);
  if (texts.includes(path)) addDefaults(given, path, body);
  if (chats.includes(path)) addTemplateDefaults(given, path, body);
  return JSON.stringify(body);
}

/** @param {any} value a response or a chunk @returns {any} the same, renamed */
function renamed(value) {
  if (value?.system_fingerprint) value.system_fingerprint = `b-${value.system_fingerprint}`;
  const type = types[value?.error?.code];
  if (type) value.error.type = type;
  for (const { delta } of value?.choices ?? []) {
    if (delta?.role && delta.content === '') delta.content = null;
  }
  return value;
}

/** @param {AsyncIterable<Uint8Array>} bytes of events */
async function* renamedEvents(bytes) {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of bytes) {
    const events = (rest + decoder.decode(piece, { stream: true })).split('\n\n');
    rest = String(events.pop());
    for (const event of events) {
      const change = (/** @type {string} */ json) => JSON.stringify(renamed(JSON.parse(json)));
      yield `${event.replace(/(?<=^data: )\{.*/m, change)}\n\n`;
    }
  }
}

/** @param {Response} response @returns {Promise<AsyncIterable<any> | string[]>} its body, renamed */
async function bodyOf(response) {
  const type = response.headers.get('content-type') ?? '';
  const body = /** @type {AsyncIterable<Uint8Array>} */ (/** @type {any} */ (response.body ?? []));
  if (type.includes('event-stream')) return renamedEvents(body);
  if (!type.includes('json') || !response.body) return body;
  return [JSON.stringify(renamed(await response.json()))];
}

/** @param {import('node:http').IncomingHttpHeaders} headers of a preflight request */
const preflight = ({ origin = '' }) => ({
  'Access-Control-Allow-Origin': origin,
  'Access-Control-Allow-Credentials': 'true',
  'Access-Control-Allow-Methods': 'GET, POST',
  'Access-Control-Allow-Headers': '*',
});

/**
 * @param {{host: string, port: number, target: string, given: Map<string, string>}} options target:
 *   the origin of `wick serve`; given: the options of llama-server
 */
export function startAdapter({ host, port, target, given }) {
  const server = createServer((incoming, outgoing) => {
    void handle(incoming, outgoing).catch(() => outgoing.destroy());
  });

  /** @param {import('node:http').IncomingMessage} incoming @param {import('node:http').ServerResponse} outgoing */
  async function handle(incoming, outgoing) {
    if (incoming.method === 'OPTIONS') {
      outgoing.writeHead(200, preflight(incoming.headers)).end();
      return;
    }
    const leaves = new AbortController();
    outgoing.on('close', () => leaves.abort());
    const url = new URL(incoming.url ?? '/', target);
    if (url.pathname === '/completions') url.pathname = '/completion';
    const { authorization, 'x-api-key': key, 'content-type': type } = incoming.headers;
    const own = url.pathname === '/models' ? given.get('--api-key') : undefined;
    const sent = own === undefined ? authorization : `Bearer ${own}`;
    const headers = {
      ...(sent && { authorization: sent }),
      ...(key && { 'x-api-key': String(key) }),
    };
    const bytes = Buffer.concat(await incoming.toArray());
    const response = await fetch(url, {
      method: String(incoming.method),
      headers: { ...headers, ...(type && { 'content-type': type }) },
      ...(incoming.method === 'POST' && { body: bodyFor(given, url.pathname, bytes) }),
      signal: leaves.signal,
    });
    const passed = [...response.headers].filter(
      ([name]) =>
        !['content-length', 'content-encoding', 'transfer-encoding', 'connection'].includes(name),
    );
    outgoing.writeHead(response.status, Object.fromEntries(passed));
    await pipeline(Readable.from(await bodyOf(response)), outgoing);
  }

  server.listen(port, host);
}
