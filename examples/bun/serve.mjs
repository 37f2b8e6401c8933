// OpenAI's API in Bun, with the engine in the server's thread (wick-llm/edge), as on hosts without
// workers.
//
//   bun examples/bun/serve.mjs [model.gguf] [port]

import { createEngine } from 'wick-llm/edge';
import { createHandler } from 'wick-llm/openai';
import { modelUrl } from 'wick-llm-demo-model';

const [file = modelUrl, port = '8787'] = Bun.argv.slice(2);
/** Compiles one of the engine's modules. */
const compile = async (build) => {
  const file = new URL(import.meta.resolve(`wick-llm/wasm/wick-${build}.wasm`));
  return WebAssembly.compile(await Bun.file(file).arrayBuffer());
};
const wasm = await compile('simd128-single');
const grammarWasm = await compile('simd128-single-grammar');
const extrasWasm = await compile('simd128-single-extras');
const engine = await createEngine({ wasm, grammarWasm, extrasWasm, file });

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: Number(port),
  idleTimeout: 0, // a long prompt takes a while
  fetch: createHandler(engine, { queueLimit: 32 }),
});
console.log(`listening at http://127.0.0.1:${server.port}/v1`);
