// OpenAI's interface in a server of node:http, with the engine in a worker: the server's thread stays free.
// (`npx wick-llm serve MODEL` is such a server, ready-made.)
//
//   node examples/node-server/serve.mjs [model.gguf] [port]

import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createEngine } from 'wick-llm';
import { createHandler } from 'wick-llm/openai';
import { modelUrl } from 'wick-llm-demo-model';

const [file = modelUrl, port = '8787'] = process.argv.slice(2);
const engine = await createEngine({ file });
const handle = createHandler(engine, { queueLimit: 32 });

/** A request of node:http as the Fetch standard has it. It aborts when the client disconnects. */
function requestOf(incoming, response) {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const hasBody = incoming.method !== 'GET' && incoming.method !== 'HEAD';
  return new Request(new URL(incoming.url, 'http://127.0.0.1'), {
    method: incoming.method,
    headers: incoming.headers,
    body: hasBody ? Readable.toWeb(incoming) : null,
    duplex: 'half',
    signal: gone.signal,
  });
}

const server = createServer(async (incoming, response) => {
  try {
    const { status, headers, body } = await handle(requestOf(incoming, response));
    response.writeHead(status, Object.fromEntries(headers));
    if (body) await pipeline(Readable.fromWeb(body), response);
    else response.end();
  } catch {
    response.destroy(); // the client has gone, or its request is not HTTP
  }
});
server.listen(Number(port), '127.0.0.1', () => {
  console.log(`listening at http://127.0.0.1:${server.address().port}/v1`);
});
