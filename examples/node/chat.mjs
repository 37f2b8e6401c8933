// A model in Node: asks the built-in model (or the given GGUF file) a question and streams the
// answer.
//
//   node examples/node/chat.mjs ["a question"] [model.gguf]

import process from 'node:process';
import { createEngine } from 'wick-llm';
import { modelUrl } from 'wick-llm-demo-model';

const [question = 'What is Wick?', file] = process.argv.slice(2);
const engine = await createEngine(file ? { file } : { url: modelUrl });

const stream = await engine.chat.completions.create({
  messages: [{ role: 'user', content: question }],
  temperature: 0,
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0].delta.content ?? '');
process.stdout.write('\n');

await engine.close();
