// The npm package under Node and in Chromium: embeddings, reranking, the OpenAI embeddings API, rejected inputs. Expected
// values come from the `wick` command, which tests/engine/embed.test.mjs compares with references.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { native, wick } from '../support/cli.mjs';
import { isFull } from '../support/level.mjs';
import { locate } from '../support/locate.mjs';
import { hasCode, isAbort, openEngine } from '../support/package.mjs';
import { openPackagePage } from '../support/package_page.mjs';

const shared = locate('shared');
const chromium = locate('chromium');
const models = join(shared.path, 'vectors/reference-more/models');
const bert = join(models, 'bert-cls.gguf');
const texts = ['a fox and a hen', 'b', 'the fox '.repeat(12), 'a hen'];

/** @param {string} model @param {string[]} args @returns {Promise<any>} */
async function commandJson(model, args) {
  const { code, stdout, stderr } = await wick(native, [
    ...args.slice(0, 1),
    model,
    ...args.slice(1),
  ]);
  assert.equal(code, 0, stderr.toString());
  return JSON.parse(stdout.toString());
}

/** @param {string[]} given @param {string[]} [more] @returns {Promise<number[][]>} */
async function vectorsOf(given, more = []) {
  const args = ['embed', ...given.flatMap((text) => ['-p', text]), '--normalize', ...more];
  return (await commandJson(bert, args)).map((/** @type {any} */ one) => one.embedding);
}

/** @param {ArrayLike<number>[]} vectors */
const listsOf = (vectors) =>
  vectors.map((vector) => Array.from(vector, (value) => Math.fround(value)));

describe('embeddings in Node', { skip: shared.skip }, () => {
  test('vectors equal those of the `wick` command, alone and with concurrent requests', async (t) => {
    const engine = await openEngine(t, { file: bert });
    const wanted = listsOf(await vectorsOf(texts));
    assert.deepEqual(listsOf(await engine.embed(texts)), wanted);
    const alone = await Promise.all(texts.map((text) => engine.embed(text)));
    assert.deepEqual(listsOf(alone.flat()), wanted);
    const raw = await engine.embed('a hen', { normalize: false });
    assert.notDeepEqual(listsOf(raw), [wanted[3]]);
    const [short] = await engine.embed('a hen', { dimensions: 8 });
    assert.equal(short.length, 8);
    assert.ok(Math.abs(short.reduce((sum, value) => sum + value * value, 0) - 1) < 1e-5);
  });

  test('a prefix is put before each input; inputs may be tokens; without pooling, each token has a vector', async (t) => {
    const engine = await openEngine(t, { file: bert });
    const [one] = await engine.embed('hen', { prefix: 'a ' });
    assert.deepEqual(one, (await engine.embed('a hen'))[0]);
    const tokens = await engine.tokenize('a hen');
    assert.deepEqual(await engine.embed([tokens]), [one]);
    const [each] = await engine.embed('a hen', { pooling: 'none', normalize: false });
    assert.equal(each.length, tokens.length * one.length);
  });

  test('OpenAI’s response format, as numbers and in base64', async (t) => {
    const engine = await openEngine(t, { file: bert });
    const vectors = await engine.embed(texts);
    const plain = await engine.embeddings.create({ input: texts });
    assert.deepEqual(
      listsOf(plain.data.map(({ embedding }) => /** @type {number[]} */ (embedding))),
      listsOf(vectors),
    );
    const { model } = await engine.embeddings.create({ input: 'a', model: 'mine' });
    assert.deepEqual([model, plain.model], ['mine', (await engine.info()).name]);
    const packed = await engine.embeddings.create({ input: texts, encoding_format: 'base64' });
    for (const { index, embedding } of packed.data) {
      const bytes = Buffer.from(String(embedding), 'base64');
      assert.deepEqual(new Uint8Array(bytes), new Uint8Array(vectors[index].buffer));
    }
    const counts = await Promise.all(texts.map((text) => engine.countTokens(text)));
    assert.equal(
      plain.usage.prompt_tokens,
      counts.reduce((a, b) => a + b),
    );
  });

  for (const name of ['bert-rank', 'bert-rank-labels', 'qwen3-rank', 'modern-bert-rank']) {
    test(`${name}: documents are ordered by the wick command’s scores`, async (t) => {
      const file = join(models, `${name}.gguf`);
      const engine = await openEngine(t, { file });
      const documents = texts.flatMap((text) => ['--document', text]);
      const wanted = await commandJson(file, [
        'rerank',
        '--query',
        'a fox',
        ...documents,
        '--json',
      ]);
      const { results, tokens } = await engine.rerank('a fox', texts);
      const rounded = (/** @type {any[]} */ list) =>
        list.map(({ index, score }) => ({ index, score: Math.fround(score) }));
      assert.deepEqual(rounded(results), rounded(wanted));
      assert.ok(tokens > 4);
      const two = await engine.rerank('a fox', texts, { topN: 2 });
      assert.deepEqual(two.results, results.slice(0, 2));
    });
  }

  test('a causal model embeds alongside generations', async (t) => {
    const engine = await openEngine(t);
    const options = { temperature: 0, maxTokens: 40 };
    const text = await engine.generate('Once', options).text();
    const vectors = await engine.embed(texts);
    const [again, beside] = await Promise.all([
      engine.generate('Once', options).text(),
      engine.embed(texts),
    ]);
    assert.equal(again, text);
    assert.deepEqual(beside, vectors);
    await assert.rejects(engine.rerank('a', ['b']), hasCode('UNSUPPORTED'));
  });

  test('errors for invalid input have a code and name the option', async (t) => {
    const engine = await openEngine(t, { file: bert });
    /** @type {[any, any, string, RegExp][]} */
    const wrong = [
      [[], {}, 'ARG', /^texts must be/],
      [[1.5], {}, 'ARG', /^texts\[0\] must be/],
      ['a', { pooling: 'max' }, 'ARG', /^pooling must be one of/],
      ['a', { normalise: true }, 'ARG', /did you mean normalize/],
      ['a', { dimensions: 65 }, 'ARG', /65 dimensions: vectors have 64/],
      ['a', { dimensions: 0 }, 'ARG', /^dimensions must be/],
      ['a', { pooling: 'rank' }, 'UNSUPPORTED', /no head for scores/],
      [[[5000]], {}, 'ARG', /token 5000 is not in the vocabulary/],
      [
        'fox '.repeat(200),
        {},
        'PROMPT_TOO_LONG',
        /^text 0 is too long: it has \d+ tokens, which exceeds the available context size of 160/,
      ],
    ];
    for (const [given, options, code, message] of wrong) {
      await assert.rejects(engine.embed(given, options), (/** @type {any} */ error) => {
        assert.match(error.message, message);
        return hasCode(code)(error);
      });
    }
    const bodies = [
      [{ input: 'a', dimension: 1 }, /did you mean dimensions/],
      [{ input: 'a', encoding_format: 'hex' }, /^encoding_format must be float or base64/],
      [{ input: 1 }, /^input must be/],
    ];
    for (const [body, message] of bodies) {
      const refused = engine.embeddings.create(/** @type {any} */ (body));
      await assert.rejects(refused, (/** @type {any} */ error) => {
        assert.match(error.message, /** @type {RegExp} */ (message));
        return hasCode('ARG')(error);
      });
    }
    assert.equal((await engine.embed('fox '.repeat(200), { truncate: true }))[0].length, 64);
    await assert.rejects(engine.generate('a').text(), hasCode('UNSUPPORTED'));
    const signal = AbortSignal.abort();
    await assert.rejects(engine.embed('a', { signal }), isAbort);
    assert.equal((await engine.embed('a')).length, 1);
  });

  test('closing an engine cancels its embeddings', async (t) => {
    const engine = await openEngine(t, { file: bert });
    const many = engine.embed(Array(400).fill(texts[2]));
    const ended = assert.rejects(many, hasCode('CLOSED'));
    await engine.close();
    await ended;
  });
});

/**
 * Runs in the page.
 * @param {{given: string[], build: string}} options
 */
async function embedInPage({ given, build }) {
  const entry = '/wick-llm/index.js';
  /** @type {typeof import('../../js/index.js')} */
  const { createEngine } = await import(entry);
  const wasm = `/wick-llm/wasm/wick-${build}.wasm`;
  const engine = await createEngine({ url: '/models/bert-cls.gguf', wasm, threads: 1 });
  const vectors = await engine.embed(given);
  await engine.close();
  return vectors.map((vector) => Array.from(vector));
}

describe('embeddings in Chromium', { skip: shared.skip || chromium.skip }, () => {
  const page = openPackagePage(models);

  for (const build of ['simd128-single', 'simd128-threads']) {
    const skip = !build.endsWith('threads') && !isFull;
    test(`vectors equal those of the wick command: ${build}`, { skip }, async () => {
      const found = await page.evaluate(embedInPage, { given: texts, build });
      assert.deepEqual(listsOf(found), listsOf(await vectorsOf(texts)));
    });
  }
});
