// logitsHook: tokens are sampled from the modified logits, in a worker and in the calling thread; an error in the hook
// fails only its own request.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { EngineConnection } from '../../js/connection/engine_connection.js';
import { settingsOf } from '../../js/page/request_options.js';
import { assertSpeaks, dist, isAbort, modelPath, openEngine } from '../support/package.mjs';

/** @type {typeof import('../../js/edge.js')} */
const edge = await import(pathToFileURL(join(dist, 'edge.js')).href);
const moduleOf = (/** @type {string} */ build) =>
  new WebAssembly.Module(readFileSync(join(dist, `wasm/wick-${build}.wasm`)));

/** @typedef {import('../../js/index.js').Engine} Engine */
/** @typedef {import('../../js/index.js').LogitsHook} LogitsHook */

/**
 * Checks an error's code, and its name instead of its class, because each entry point has its own
 * WickError class.
 * @param {string} code
 * @returns {(error: any) => boolean}
 */
const hasCode = (code) => (error) => {
  assert.equal(error.name, 'WickError', error.stack);
  assert.equal(error.code, code, error.message);
  return true;
};

/** @param {import('node:test').TestContext} t @returns {Promise<any>} */
async function openEdge(t) {
  const engine = await edge.createEngine({
    bytes: new Uint8Array(readFileSync(modelPath)),
    wasm: moduleOf('simd128-single'),
    grammarWasm: moduleOf('simd128-single-grammar'),
  });
  t.after(() => engine.close());
  return engine;
}

const prompt = 'Once upon a time';
const options = { maxTokens: 12, temperature: 1, seed: 5 };

for (const [host, open] of /** @type {[string, (t: any) => Promise<Engine>][]} */ ([
  ['a worker', openEngine],
  ['the calling thread', openEdge],
])) {
  describe(`in ${host}`, () => {
    test('a hook that changes nothing leaves the output unchanged, and sees all tokens', async (t) => {
      const engine = await open(t);
      const text = await engine.generate(prompt, options).text();
      const read = await engine.tokenize(prompt);
      /** @type {number[][]} */
      const seen = [];
      /** @type {LogitsHook} */
      const logitsHook = (logits, { position, tokens }) => {
        assert.ok(logits instanceof Float32Array && tokens instanceof Int32Array);
        assert.equal(tokens.length, position);
        seen.push([...tokens]);
        return seen.length % 2 === 0 ? logits : undefined;
      };
      assert.equal(await engine.generate(prompt, { ...options, logitsHook }).text(), text);
      assert.equal(seen.length, 12);
      assert.deepEqual(seen[0].slice(-read.length), [...read]);
      for (const [index, tokens] of seen.entries())
        assert.equal(tokens.length, seen[0].length + index);
      const said = seen.at(-1)?.slice(seen[0].length) ?? [];
      assert.ok(text.startsWith(await engine.detokenize(said)));
    });

    test('tokens are sampled from the modified copy, or from the returned logits', async (t) => {
      const engine = await open(t);
      const words = [...(await engine.tokenize(' a fox and a fox and a fox'))].slice(-8);
      let at = 0;
      /** @type {LogitsHook} */
      const inPlace = (logits) => {
        logits.fill(Number.NEGATIVE_INFINITY);
        logits[words[at++ % words.length]] = 0;
      };
      const limited = { ...options, maxTokens: words.length };
      const text = await engine.generate(prompt, { ...limited, logitsHook: inPlace }).text();
      assert.equal(text, await engine.detokenize(words));
      at = 0;
      /** @type {LogitsHook} */
      const returned = (logits) =>
        logits.map((_, token) => (token === words[at] ? 1 : Number.NEGATIVE_INFINITY));
      /** @type {LogitsHook} */
      const next = (logits, context) => {
        const made = returned(logits, context);
        at++;
        return made;
      };
      assert.equal(await engine.generate(prompt, { ...limited, logitsHook: next }).text(), text);
    });

    test('requests with and without hooks run together', async (t) => {
      const engine = await open(t);
      const seeds = [1, 2, 3, 4];
      const plain = [];
      for (const seed of seeds)
        plain.push(await engine.generate(prompt, { ...options, seed }).text());
      let calls = 0;
      const logitsHook = () => void calls++;
      const both = await Promise.all(
        seeds.map((seed) =>
          engine.generate(prompt, { ...options, seed, ...(seed % 2 ? { logitsHook } : {}) }).text(),
        ),
      );
      assert.deepEqual(both, plain);
      assert.equal(calls, 24);
    });

    test('hooks work with chat completions, several choices and grammars', async (t) => {
      const engine = await open(t);
      let calls = 0;
      const { choices } = await engine.chat.completions.create({
        messages: [{ role: 'user', content: 'Hi' }],
        ...{ max_tokens: 5, n: 2, seed: 1, regex: '[a-z]{20}' },
        logitsHook: (logits) => {
          calls++;
          return logits.map((logit) => logit * 0.5);
        },
      });
      for (const { message } of choices) assert.match(String(message.content), /^[a-z]+$/);
      assert.ok(calls >= 10, `${calls}`);
    });

    test('an error ends only its request', async (t) => {
      const engine = await open(t);
      const thrown = new Error('no more');
      for (const [hook, code, words] of /** @type {[any, string, RegExp][]} */ ([
        [
          () => {
            throw thrown;
          },
          'HOOK',
          /logitsHook threw: Error: no more/,
        ],
        [() => new Float32Array(3), 'ARG', /Float32Array of \d+ logits/],
        [() => [1, 2], 'ARG', /Float32Array of \d+ logits/],
        [async () => {}, 'ARG', /Float32Array of \d+ logits/],
        [(/** @type {any} */ l) => void l.fill(Number.NaN, 9), 'NONFINITE', /token 9 is NaN/],
        [
          (/** @type {any} */ l) => void l.fill(Number.POSITIVE_INFINITY, 3),
          'NONFINITE',
          /token 3 is Infinity/,
        ],
        [(/** @type {any} */ l) => void l.fill(-Number.POSITIVE_INFINITY), 'NONFINITE', /./],
      ])) {
        let left = 3;
        const logitsHook = (/** @type {any} */ logits) => (left-- > 0 ? undefined : hook(logits));
        const other = engine.generate(prompt, options).text();
        await assert.rejects(
          engine.generate(prompt, { ...options, logitsHook }).text(),
          (error) => {
            const { message, cause } = /** @type {any} */ (error);
            assert.match(message, words);
            if (code === 'HOOK') assert.equal(cause, thrown);
            return hasCode(code)(error);
          },
        );
        assert.notEqual(await other, '');
      }
      assert.throws(
        () => engine.generate(prompt, /** @type {any} */ ({ logitsHook: 5 })),
        hasCode('ARG'),
      );
      await assertSpeaks(/** @type {any} */ (engine));
    });

    test('an abort inside the hook, or while it is awaited, ends the request', async (t) => {
      const engine = await open(t);
      const controller = new AbortController();
      let calls = 0;
      const logitsHook = () => {
        if (++calls === 3) controller.abort();
      };
      const aborted = engine.generate(prompt, {
        ...options,
        logitsHook,
        signal: controller.signal,
      });
      await assert.rejects(aborted.text(), isAbort);
      assert.equal(calls, 3);
      for await (const _ of engine.generate(prompt, { ...options, logitsHook })) break;
      await assertSpeaks(/** @type {any} */ (engine));
    });
  });
}

test('a shared engine does not support hooks', () => {
  const connection = new EngineConnection(() => {});
  const thread = { post() {}, keepAlive() {}, terminate: async () => {} };
  connection.share(
    () => /** @type {any} */ (thread),
    () => {},
  );
  const settings = settingsOf({ logitsHook: () => {} });
  const message = { input: { prompt }, settings, wantsTokens: false };
  assert.throws(
    () => connection.generate(message, []),
    /logitsHook: is not available with a shared engine/,
  );
});
