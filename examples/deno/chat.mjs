// A model in Deno: asks the built-in model (or the given GGUF file) a question and streams the
// answer.
//
//   deno run -A examples/deno/chat.mjs ["a question"] [model.gguf]

import { createEngine } from 'wick-llm'; // outside of this repository: 'npm:wick-llm'
import { modelUrl } from 'wick-llm-demo-model';

const [question = 'What is Wick?', file] = Deno.args;
const engine = await createEngine(file ? { file } : { url: modelUrl });

const answer = engine.generate(await engine.applyTemplate([{ role: 'user', content: question }]), {
  temperature: 0,
});
const encoder = new TextEncoder();
for await (const piece of answer) Deno.stdout.writeSync(encoder.encode(piece));
console.log();

await engine.close();
