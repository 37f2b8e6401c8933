// examples/chat/serve.mjs — builds the page and serves it: `make demo`.
//   node examples/chat/serve.mjs [--port 8080]

import { parseArgs } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { buildChat, site } from './build.mjs';

const { values } = parseArgs({ options: { port: { type: 'string', default: '8080' } } });
await buildChat();

/** @param {number} port @returns {ReturnType<typeof serve>} the port, or any when it is taken */
async function serveAt(port) {
  try {
    return await serve({ root: site, port });
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EADDRINUSE' || port === 0)
      throw error;
    return serveAt(0);
  }
}

const server = await serveAt(Number(values.port));
console.log(`\nWick chat: ${server.url}   (Ctrl-C ends it)\n`);
