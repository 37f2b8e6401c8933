// A component in JavaScript that uses the engine's component. The model is read from standard input (docs/components.md, "A typed
// interface"):
//   make edge
//   node tools/component/guest.mjs examples/component/guest.js examples/component/guest.wit \
//     build/edge/wick-llm.wasm build/edge/guest.wasm
//   wasmtime run -Scli -Sp3 -Wcomponent-model-async --invoke 'ask("What is Wick?")' build/edge/guest.wasm < model.gguf
// @ts-nocheck component imports have no types here

import stdin from 'wasi:cli/stdin@0.3.0';
import llm from 'wick:llm/engine@0.2.0';

const config = { memoryBytesMax: 0, contextTokens: 0, kvTokensMax: 0 }; // chosen by the engine
const options = {
  ...{ maxTokens: 40, temperature: 0, topK: 0, topP: 1, minP: 0, repeatPenalty: 1, seed: 0 },
  ...{ controlTokens: true, stops: [], salt: '', constraint: { kind: 'none', text: '' } },
};

/** @param {AsyncIterable<Uint8Array>} file */
async function* piecesOf(file) {
  for await (const piece of file) yield piece;
}

/** @param {any} future of a result */
async function resultOf(future) {
  const { tag, val } = await future.read();
  if (tag === 'err') throw new Error(`${val.tag}: ${val.val.message}`);
  return val;
}

/** @param {string} prompt */
export async function ask(prompt) {
  const [file] = stdin.readViaStream();
  const model = await resultOf(llm.load(piecesOf(file), config));
  const [text, ending] = model.generate(prompt, options);
  let answer = '';
  for await (const piece of text) answer += piece;
  await resultOf(ending);
  return answer;
}
