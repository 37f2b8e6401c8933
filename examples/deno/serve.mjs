// OpenAI's API in Deno, with the engine in the server's thread (wick-llm/edge), as on hosts without
// workers.
//
//   deno run -A examples/deno/serve.mjs [model.gguf] [port]

import { createEngine } from 'wick-llm/edge'; // outside of this repository: 'npm:wick-llm/edge'
import { createHandler } from 'wick-llm/openai';
import { modelUrl } from 'wick-llm-demo-model';

const [file = modelUrl, port = '8787'] = Deno.args;
/** Compiles one of the engine's modules. */
const compile = async (build) => {
  const file = new URL(import.meta.resolve(`wick-llm/wasm/wick-${build}.wasm`));
  return WebAssembly.compile(await Deno.readFile(file));
};
const wasm = await compile('simd128-single');
const grammarWasm = await compile('simd128-single-grammar');
const extrasWasm = await compile('simd128-single-extras');
const engine = await createEngine({ wasm, grammarWasm, extrasWasm, file });

const handle = createHandler(engine, { queueLimit: 32 });
const onListen = ({ port }) => console.log(`listening at http://127.0.0.1:${port}/v1`);
Deno.serve({ hostname: '127.0.0.1', port: Number(port), onListen }, handle);
