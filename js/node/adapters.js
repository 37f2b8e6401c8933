// js/node/adapters.js — adapts a handler of `wick-llm/openai` to node:http, Express, Fastify and
// Hono.

import { answer, signalOf } from './answer.js';

/** @import { Handle, IncomingMessage, ServerResponse } from './answer.js' */

/**
 * Returns the path below the point where an application mounts the handler: `/v1/models` for
 * `/ai/v1/models`.
 * @param {string} url of a request, from its first slash
 * @returns {string | undefined} undefined if the handler has no such route
 */
function routeOf(url) {
  const end = url.search(/[?#]/);
  const [path, query] = end < 0 ? [url, ''] : [url.slice(0, end), url.slice(end)];
  const [, route] = /^.*?(\/v1\/.*|\/health|\/metrics)$/.exec(path) ?? [];
  return route === undefined ? undefined : route + query;
}

/** @param {unknown} handle @returns {asserts handle is Handle} */
function checkHandle(handle) {
  if (typeof handle === 'function') return;
  throw new TypeError('wick-llm/node needs a handler from createHandler (wick-llm/openai)');
}

/**
 * Creates a listener. If it is called with a `next`, as in Express, it receives the requests for which the handler
 * has no route.
 * @param {Handle} handle
 * @returns {(incoming: any, outgoing: any, next?: () => void) => Promise<void>}
 */
export function nodeListener(handle) {
  checkHandle(handle);
  return async (incoming, outgoing, next) => {
    const url = incoming.url ?? '/';
    // Express removes the mount path, which may be /v1 itself
    const path = routeOf(url) ?? routeOf(incoming.originalUrl ?? url);
    if (path === undefined && next) next();
    else await answer(incoming, outgoing, handle, path ?? url);
  };
}

/**
 * Registers the routes in Fastify. The plugin reads bodies itself, so Fastify's body parsers and limits do not apply
 * to its routes.
 * @param {any} fastify
 * @param {{handle: Handle}} options
 */
export async function fastifyPlugin(fastify, { handle }) {
  checkHandle(handle);
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser(
    '*',
    (/** @type {unknown} */ _, /** @type {unknown} */ _body, /** @type {any} */ done) => done(null),
  );
  const respond = (/** @type {any} */ request, /** @type {any} */ reply) => {
    reply.hijack();
    const { raw } = request;
    // headers that the application's hooks have set, such as those of CORS
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) reply.raw.setHeader(name, value);
    }
    void answer(raw, reply.raw, handle, routeOf(raw.url ?? '/') ?? raw.url);
  };
  const isBelowV1 = /\/v1\/?$/.test(fastify.prefix);
  for (const path of isBelowV1 ? ['/*'] : ['/v1/*', '/health', '/metrics']) {
    fastify.all(path, respond);
  }
}

/**
 * @param {Handle} handle
 * @returns {(context: any) => Promise<Response>}
 */
export function honoHandler(handle) {
  checkHandle(handle);
  return (context) => {
    const { raw } = context.req;
    const { origin, pathname, search } = new URL(raw.url);
    /** @type {ServerResponse | undefined} set if Hono runs on node:http */
    const outgoing = context.env?.outgoing;
    const signal = outgoing ? signalOf(outgoing) : raw.signal;
    const hasBody = raw.method !== 'GET' && raw.method !== 'HEAD';
    const init = { method: raw.method, headers: raw.headers, signal };
    const body = hasBody ? { body: raw.body, duplex: 'half' } : {};
    const url = new URL(routeOf(pathname + search) ?? pathname + search, origin);
    return handle(new Request(url, /** @type {RequestInit} */ ({ ...init, ...body })));
  };
}
