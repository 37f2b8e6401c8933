// A server that sends ranges of one file and counts the requests.

import { once } from 'node:events';
import { createServer } from 'node:http';

/** @param {Buffer} file @param {string} path of its URL */
export async function serveRanges(file, path) {
  /** The number of requests for the first bytes, and of all requests. */
  const asked = { first: 0, any: 0 };
  const server = createServer(({ headers }, response) => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? [];
    const [begin, end] = [Number(first), Math.min(Number(last), file.length - 1)];
    asked.any++;
    if (begin === 0) asked.first++;
    if (begin >= file.length) return void response.writeHead(416).end();
    response.writeHead(206, {
      'content-range': `bytes ${begin}-${end}/${file.length}`,
      'content-length': end - begin + 1,
    });
    response.end(file.subarray(begin, end + 1));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    asked,
    url: `http://127.0.0.1:${port}${path}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
