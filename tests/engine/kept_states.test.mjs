// Opens chats, sessions and prefix caches that were saved by earlier releases (tests/package/kept/statesN, made with
// tools/keep_states.mjs) and checks that they continue in the same way, without recomputing their tokens.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, test } from 'node:test';
import { root } from '../support/locate.mjs';
import { hasCode, openEngine } from '../support/package.mjs';

const kept = resolve(root, 'tests/package/kept');
const folders = readdirSync(kept).filter((name) => name.startsWith('states'));

for (const name of folders) {
  const folder = resolve(kept, name);
  const facts = JSON.parse(readFileSync(resolve(folder, 'facts.json'), 'utf8'));
  const { model, system, story, question } = facts;
  const file = resolve(root, model);

  describe(`${name}, saved by ${facts.version}`, () => {
    test('the kept states belong to the current model', () => {
      const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
      assert.equal(
        sha256,
        facts.sha256,
        `${model} has changed: keep the earlier one in tests/package/kept`,
      );
    });

    // continuedText: if the encoding of the KV type has changed since then, the continuation differs
    for (const { kvType, kinds, sessionText, continuedText, history, chatText } of facts.states) {
      const bytes = (/** @type {string} */ kind) =>
        new Uint8Array(readFileSync(resolve(folder, `${kind}-${kvType}.bin`)));
      const settings = { file, kvType, contextSize: 256, threads: 1 };
      /** @type {Record<string, (t: import('node:test').TestContext) => Promise<void>>} */
      const opened = {
        async session(t) {
          const engine = await openEngine(t, settings);
          const { session } = await engine.loadState(bytes('session'));
          assert.ok(session);
          assert.deepEqual([...(await session.tokens())], [...(await engine.tokenize(story))]);
          const exact = { temperature: 0, maxTokens: 12, ignoreEnd: true };
          assert.equal(await session.prompt(' The', exact).text(), continuedText ?? sessionText);
          const read = (await engine.stats()).tokens.prompt;
          assert.equal(read, (await engine.tokenize(' The')).length);
        },
        async chat(t) {
          const engine = await openEngine(t, settings);
          const chat = await engine.loadChat(bytes('chat'), { temperature: 0, max_tokens: 16 });
          assert.deepEqual(chat.history, history);
          const turn = chat.send(question);
          assert.equal(await turn.text(), chatText);
          const before = await engine.countTokens(history.slice(0, -1));
          assert.ok(/** @type {any} */ (turn.result).usage.cachedTokens >= before);
        },
        async prefix(t) {
          const engine = await openEngine(t, settings);
          await engine.loadState(bytes('prefix'));
          const messages = [{ role: 'system', content: system }, history[1], history[2]];
          messages.push({ role: 'user', content: question });
          const body = { messages, temperature: 0, max_tokens: 16 };
          const { choices, usage } = await engine.chat.completions.create(body);
          assert.equal(choices[0].message.content, chatText);
          assert.ok(/** @type {any} */ (usage).prompt_tokens_details.cached_tokens > 16);
        },
      };
      for (const kind of kinds) test(`a ${kind}, ${kvType}`, opened[kind]);
    }

    test('an engine with a different model rejects a session, and recomputes a chat', async (t) => {
      const bytes = (/** @type {string} */ kind) =>
        new Uint8Array(readFileSync(resolve(folder, `${kind}-q4.bin`)));
      const engine = await openEngine(t, { file, kvType: 'q8', contextSize: 256, threads: 1 });
      await assert.rejects(engine.loadState(bytes('session')), hasCode('MISMATCH'));
      const chat = await engine.loadChat(bytes('chat'));
      assert.deepEqual(chat.history, facts.states[0].history);
    });
  });
}

test('kept files exist', () => assert.ok(folders.length > 0));
