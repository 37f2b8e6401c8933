// Writes states in the formats of this release: a chat, a session and a prefix cache of a built-in model,
// and their continuations. Run it once for a release with new formats; the folder stays in the
// repository, and tests/engine/kept_states.test.mjs opens it with every later release.
//   node tools/keep_states.mjs tests/package/kept/states2

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const { createEngine } = await import(resolve(root, 'dist/index.js'));
const [folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error('usage: node tools/keep_states.mjs FOLDER');
  process.exit(1);
}
const model = 'examples/models/wick-2.6m-q4_0.gguf';
const system = 'You are Wick, a small and friendly assistant.';
const exact = { temperature: 0, maxTokens: 12, ignoreEnd: true };
const messages = [{ role: 'user', content: 'My name is Ada.' }];
const question = 'What is my name?';
const story = 'Once upon a time there was a boat.';

/**
 * @param {'f16' | 'q8' | 'q4'} kvType
 * @param {string[]} kinds the states to write; not all, so that the files stay small
 */
async function keep(kvType, kinds) {
  const write = (/** @type {string} */ kind, /** @type {Uint8Array} */ bytes) => {
    if (kinds.includes(kind)) writeFileSync(resolve(folder, `${kind}-${kvType}.bin`), bytes);
  };
  const file = resolve(root, model);
  const engine = await createEngine({ file, kvType, contextSize: 256, threads: 1 });
  const session = await engine.createSession();
  await session.append(story);
  write('session', await session.save());
  const sessionText = await session.prompt(' The', exact).text();
  const chat = await engine.createChat({ system, temperature: 0, max_tokens: 16 });
  await chat.send(messages[0].content).text();
  write('chat', await chat.save());
  const { history } = chat;
  const chatText = await chat.send(question).text();
  await chat.close();
  await session.close();
  write('prefix', await engine.saveState());
  await engine.close();
  return { kvType, kinds, sessionText, history, chatText };
}

mkdirSync(folder, { recursive: true });
const sha256 = createHash('sha256')
  .update(readFileSync(resolve(root, model)))
  .digest('hex');
const { version } = JSON.parse(readFileSync(resolve(root, 'package.json'), 'utf8'));
const states = [await keep('f16', ['session']), await keep('q4', ['session', 'chat', 'prefix'])];
const facts = { version, model, sha256, system, story, question, states };
writeFileSync(resolve(folder, 'facts.json'), `${JSON.stringify(facts, null, 2)}\n`);
