// js/cli/http_server.js — serves a function from Request to Response with node:http. A slow client slows its own answer
// down. The request's signal aborts when the client disconnects.

import { once } from 'node:events';
import { createServer } from 'node:http';

/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {import('node:http').ServerResponse} ServerResponse */
/** @typedef {(request: Request) => Promise<Response>} Handle */

/**
 * The body, received no faster than it is read. After cancel() the rest is discarded, and the connection is
 * closed after the answer.
 * @param {IncomingMessage} incoming
 * @param {ServerResponse} outgoing
 * @returns {ReadableStream<Uint8Array>}
 */
function bodyOf(incoming, outgoing) {
  /** @param {Buffer} bytes */
  let take = (bytes) => void bytes;
  return new ReadableStream(
    {
      start(controller) {
        take = (bytes) => {
          controller.enqueue(bytes);
          incoming.pause();
        };
        incoming.on('data', take);
        incoming.once('end', () => controller.close());
        incoming.once('error', (error) => controller.error(error));
        incoming.pause();
      },
      pull: () => void incoming.resume(),
      cancel() {
        incoming.removeAllListeners('end').off('data', take).resume();
        outgoing.setHeader('Connection', 'close');
      },
    },
    { highWaterMark: 0 },
  );
}

/**
 * @param {IncomingMessage} incoming
 * @param {ServerResponse} outgoing
 * @param {AbortSignal} signal
 * @returns {Request}
 */
function requestOf(incoming, outgoing, signal) {
  const { method = 'GET', url = '/', headersDistinct } = incoming;
  const headers = new Headers();
  for (const [name, values] of Object.entries(headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const init = { method, headers, signal, ...(hasBody && { duplex: 'half' }) };
  const body = hasBody ? bodyOf(incoming, outgoing) : null;
  return new Request(new URL(url, 'http://localhost'), { ...init, body });
}

/** @param {ReadableStream<Uint8Array>} body @param {ServerResponse} outgoing */
async function send(body, outgoing) {
  const reader = body.getReader();
  let wake = () => {};
  outgoing.once('close', () => {
    reader.cancel().catch(() => {}); // nothing is left to cancel
    wake();
  });
  for (;;) {
    const { done, value } = await reader.read();
    if (done || outgoing.destroyed) break;
    if (outgoing.write(value)) continue;
    await new Promise((settle) => {
      wake = () => settle(undefined);
      outgoing.once('drain', wake);
    });
  }
  outgoing.end();
}

/** @param {IncomingMessage} incoming @param {ServerResponse} outgoing @param {Handle} handle */
async function answer(incoming, outgoing, handle) {
  const controller = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) controller.abort();
  });
  let request;
  try {
    request = requestOf(incoming, outgoing, controller.signal);
  } catch {
    outgoing.writeHead(400).end(); // Request allows neither the address nor the method
    return;
  }
  const response = await handle(request);
  if (outgoing.destroyed) {
    await response.body?.cancel();
    return;
  }
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null || incoming.method === 'HEAD') outgoing.end();
  else await send(response.body, outgoing);
}

/** A client has this long to send the head of a request, and all of it. Then its connection is closed. */
const HEAD_MS = 20_000;
const REQUEST_MS = 90_000;
const CHECK_MS = 5_000;

/**
 * @param {Handle} handle
 * @param {{host: string, port: number}} where port 0: any that is free
 * @returns {Promise<{url: string, close: () => Promise<void>}>} `url` without a slash at its end
 */
export async function listen(handle, { host, port }) {
  const limits = { headersTimeout: HEAD_MS, requestTimeout: REQUEST_MS };
  const options = { ...limits, connectionsCheckingInterval: CHECK_MS };
  const server = createServer(options, (incoming, outgoing) => {
    answer(incoming, outgoing, handle).catch(() => outgoing.destroy());
  });
  server.listen(port, host);
  await once(server, 'listening');
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
