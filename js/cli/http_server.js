// js/cli/http_server.js — serves a function from Request to Response with node:http.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { answer } from '../node/answer.js';

/** @import { Handle } from '../node/answer.js' */

/**
 * How long a client may take to send the headers of a request, and the whole request. After that,
 * its connection is closed.
 */
const HEAD_MS = 20_000;
const REQUEST_MS = 90_000;
const CHECK_MS = 5_000;

/**
 * @param {Handle} handle
 * @param {{host: string, port: number}} where port 0: any free port
 * @returns {Promise<{url: string, close: () => Promise<void>}>} `url` without a slash at its end
 */
export async function listen(handle, { host, port }) {
  const limits = { headersTimeout: HEAD_MS, requestTimeout: REQUEST_MS };
  const options = { ...limits, connectionsCheckingInterval: CHECK_MS };
  const server = createServer(options, (incoming, outgoing) => {
    void answer(incoming, outgoing, handle);
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
