// OpenAI's API in a Cloudflare Worker: the engine runs in the isolate, and the model is in an R2
// bucket. The first request loads it in pieces. README.md describes how to start and deploy the
// worker.

import { openOnce } from 'wick-llm/edge';
import { createHandler } from 'wick-llm/openai';
import wasm from 'wick-llm/wasm/wick-simd128-single.wasm';
import extrasWasm from 'wick-llm/wasm/wick-simd128-single-extras.wasm'; // for less common models
import grammarWasm from 'wick-llm/wasm/wick-simd128-single-grammar.wasm'; // for grammars and tools

let open;

/** Returns a function that opens the engine. All memory of an isolate counts towards the limit of 128 MB. */
const opener = ({ CONTEXT, KV }) =>
  openOnce({
    ...{ wasm, grammarWasm, extrasWasm, isolateBytes: 128e6 },
    contextSize: CONTEXT ? Number(CONTEXT) : undefined, // the model's context by default
    kvType: KV ?? undefined,
  });

/** Handlers by engine, because after a crash there is a new engine. */
const handlers = new WeakMap();

function handlerOf(engine, env) {
  const found = handlers.get(engine);
  if (found) return found;
  const handle = createHandler(engine, {
    ...(env.KEY ? { keys: env.KEY } : {}),
    queueLimit: 16, // bodies of waiting requests use memory, too
    bodyBytesMax: 1 << 18,
    onError: (error) => console.error(error),
  });
  handlers.set(engine, handle);
  return handle;
}

export default {
  async fetch(request, env) {
    const { signal } = request;
    const range = (offset, length) => env.MODELS.get('model.gguf', { range: { offset, length } });
    try {
      open ??= opener(env);
      const engine = await open({ range, signal });
      return await handlerOf(engine, env)(request);
    } catch (error) {
      console.error(error);
      const { code = 'unavailable', message } = error;
      return Response.json({ error: { code, message, type: 'server_error' } }, { status: 503 });
    }
  },
};
