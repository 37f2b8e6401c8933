// tools/train/answer.mjs — answers from Wick's engine, both as the model alone generates them and
// as the chat page shows them: node answer.mjs MODEL.gguf. A request of chat completions on each
// line of the input; on each of the output {"alone": {text, ended}, "page": {text, ended, held}}.
// Both have the seed of the request, if any.

import { readFileSync } from 'node:fs';
import readline from 'node:readline';
import { createEngine } from 'wick-llm';
import { held, readWords, wordsUrl } from 'wick-llm-demo-model/words.js';

const known = readWords(readFileSync(wordsUrl, 'utf8'));
const engine = await createEngine({ file: process.argv[2], threads: 1 });

/** @param {AsyncIterable<import('../../examples/models/words.js').Chunk>} chunks */
async function whole(chunks) {
  let [text, ended] = ['', false];
  /** @type {string | undefined} */
  let how;
  for await (const chunk of chunks) {
    for (const { delta, finish_reason } of chunk.choices) {
      text += delta.content ?? '';
      ended ||= finish_reason === 'stop';
    }
    how = chunk.held ?? how;
  }
  return { text, ended, held: how };
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  if (line.trim() === '') continue;
  const body = JSON.parse(line);
  /** @type {import('../../examples/models/words.js').Ask} */
  const ask = (asked) => engine.chat.completions.create(asked);
  const stream = () => engine.chat.completions.create({ ...body, stream: true });
  const alone = await whole(await stream());
  const page = await whole(held(await stream(), body, known, ask));
  console.log(JSON.stringify({ alone, page }));
}
await engine.close();
