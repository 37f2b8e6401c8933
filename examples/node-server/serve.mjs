// OpenAI's API in a node:http server, with the engine in a worker, so the server's thread is not blocked.
// (`npx wick-llm serve MODEL` is a ready-made server. Express, Fastify and Hono: docs/guide/server.md.)
//
//   node examples/node-server/serve.mjs [model.gguf] [port]

import { createServer } from 'node:http';
import { createEngine } from 'wick-llm';
import { nodeListener } from 'wick-llm/node';
import { createHandler } from 'wick-llm/openai';
import { modelUrl } from 'wick-llm-demo-model';

const [file = modelUrl, port = '8787'] = process.argv.slice(2);
const engine = await createEngine({ file });
const handle = createHandler(engine, {
  queueLimit: 32,
  onRequest: (record) => console.error(JSON.stringify(record)),
});

const server = createServer(nodeListener(handle));
server.listen(Number(port), '127.0.0.1', () => {
  console.log(`listening at http://127.0.0.1:${server.address().port}/v1`);
});
