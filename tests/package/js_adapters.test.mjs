// The npm package under Node: adapters (LoRA) are added, selected, listed and removed; with them, the web modules
// generate the reference tokens.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { locate } from '../support/locate.mjs';
import { dist, hasCode, isAbort, openEngine } from '../support/package.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

const shared = locate('shared');
const reference = join(shared.path, 'vectors/reference');
const more = join(shared.path, 'vectors/reference-more');
const model = join(reference, 'models/llama.gguf');
const usual = join(more, 'lora/llama.attn-ffn.gguf');
const other = join(more, 'lora/llama.qv.gguf');
/** @type {any[]} */
const cases = shared.skip
  ? []
  : JSON.parse(readFileSync(join(more, 'manifest.json'), 'utf8').replace(/:NaN\b/g, ':null')).lora;
const prompt = [1, 273, 139, 157, 329, 424, 392, 317, 358, 401, 373, 391, 3, 4, 5, 6, 7, 8];
const greedy = { temperature: 0, maxTokens: 12, ignoreEnd: true };

/** @param {import('../../js/index.js').Generation} generation @returns {Promise<string>} */
const textOf = (generation) => generation.text();

describe('adapters in Node', { skip: shared.skip }, () => {
  for (const build of ['simd128-single', 'simd128-threads']) {
    for (const { id, base_model, adapters, cases: list } of cases.filter(
      (one) => one.cases?.length,
    )) {
      test(`${id}: matches the reference tokens, ${build}`, async (t) => {
        const wasm = join(dist, `wasm/wick-${build}.wasm`);
        const engine = await openEngine(t, {
          file: join(reference, base_model),
          kvType: 'f32',
          threads: build.endsWith('threads') ? 2 : 1,
          wasm: new URL(`file://${wasm}`),
        });
        for (const { file } of adapters) {
          await engine.adapters.add({ file: join(more, file) }, { name: file });
        }
        const uses = adapters.map((/** @type {any} */ { file, scale }) => ({ name: file, scale }));
        for (const { tokens, greedy: wanted, greedy_margins: margins } of list) {
          /** @type {number[]} */
          const found = [];
          const onToken = (/** @type {{token: number}} */ { token }) => found.push(token);
          const maxTokens = wanted.length;
          const options = { temperature: 0, maxTokens, ignoreEnd: true, adapters: uses, onToken };
          await engine.generate(tokens, options).text();
          const sure = margins.findIndex((/** @type {number} */ margin) => margin < 2e-4);
          const count = sure < 0 ? wanted.length : sure;
          assert.deepEqual(found.slice(0, count), wanted.slice(0, count));
        }
      });
    }
  }

  test('requests with and without adapters run together with unchanged results', async (t) => {
    const engine = await openEngine(t, { file: model });
    await engine.adapters.add({ file: usual }, { name: 'usual' });
    await engine.adapters.add({ bytes: readFileSync(other) }, { name: 'other' });
    const kinds = [
      undefined,
      [{ name: 'usual' }],
      [{ name: 'usual', scale: 0.5 }],
      [{ name: 'other', scale: 2 }],
      [{ name: 'usual' }, { name: 'other', scale: 2 }],
      [{ name: 'usual', scale: 0 }],
    ];
    const ask = (/** @type {typeof kinds[number]} */ adapters) =>
      engine.generate(prompt, { ...greedy, adapters });
    const alone = [];
    for (const adapters of kinds) alone.push(await textOf(ask(adapters)));
    assert.deepEqual(await Promise.all(kinds.map((adapters) => textOf(ask(adapters)))), alone);
    assert.equal(new Set(alone).size, kinds.length - 1);
    assert.equal(alone[5], alone[0]);
  });

  test('adapters are listed, and one in use cannot be removed', async (t) => {
    const engine = await openEngine(t, { file: model });
    assert.deepEqual(await engine.adapters.list(), []);
    const { memory: before } = await engine.info();
    const blob = new Blob([readFileSync(usual)]);
    const added = await engine.adapters.add({ blob }, { name: 'usual' });
    await engine.adapters.remove('usual');
    const { memory: after } = await engine.info();
    assert.equal(after.usedBytes, before.usedBytes);
    assert.deepEqual(await engine.adapters.add({ blob }, { name: 'usual' }), added);
    const { bytes, ...facts } = added;
    assert.deepEqual(facts, { name: 'usual', tensors: 14, rank: 4, alpha: 8, users: 0 });
    assert.ok(bytes > 10_000);
    const stream = new Blob([readFileSync(other)]).stream();
    await engine.adapters.add({ stream }, { name: 'other' });
    assert.deepEqual(
      (await engine.adapters.list()).map(({ name }) => name),
      ['usual', 'other'],
    );
    const generation = engine.generate(prompt, {
      ...greedy,
      maxTokens: 200,
      adapters: [{ name: 'usual' }],
    });
    const pieces = generation[Symbol.asyncIterator]();
    await pieces.next();
    await assert.rejects(engine.adapters.remove('usual'), hasCode('BUSY'));
    await engine.adapters.remove('other');
    await pieces.return();
    while ((await engine.adapters.list())[0].users > 0)
      await new Promise((go) => setTimeout(go, 5));
    await engine.adapters.remove('usual');
    assert.deepEqual(await engine.adapters.list(), []);
  });

  test('a rejected adapter is not added', async (t) => {
    const engine = await openEngine(t, { file: model });
    const bytes = readFileSync(usual);
    /** @param {any} source @param {any} options @param {string} code */
    const isRefused = (source, options, code) =>
      assert.rejects(engine.adapters.add(source, options), hasCode(code));
    await isRefused({ bytes: bytes.subarray(0, bytes.length - 64) }, { name: 'a' }, 'TRUNCATED');
    await isRefused({ bytes: bytes.subarray(0, 100) }, { name: 'a' }, 'TRUNCATED');
    await isRefused({ file: model }, { name: 'a' }, 'FORMAT');
    await isRefused({ file: join(more, 'lora/qwen2.qv.gguf') }, { name: 'a' }, 'MISMATCH');
    await isRefused({ bytes }, { name: '' }, 'ARG');
    await isRefused({ bytes }, { name: 'a', scale: 1 }, 'ARG');
    await isRefused({}, { name: 'a' }, 'ARG');
    const signal = AbortSignal.abort();
    await assert.rejects(engine.adapters.add({ bytes }, { name: 'a', signal }), isAbort);
    const late = new AbortController(); // aborts after the engine has registered the name
    const added = engine.adapters.add({ bytes }, { name: 'a', signal: late.signal });
    late.abort();
    await assert.rejects(added, isAbort);
    assert.deepEqual(await engine.adapters.list(), []);
    await engine.adapters.add({ bytes }, { name: 'a' });
    await isRefused({ bytes }, { name: 'a' }, 'ARG');
    assert.equal((await engine.adapters.list()).length, 1);
    /** @param {any} adapters */
    const asked = (adapters) => engine.generate(prompt, { ...greedy, adapters }).text();
    await assert.rejects(asked([{ name: 'b' }]), hasCode('ARG'));
    await assert.rejects(asked([{ name: 'a' }, { name: 'a' }]), hasCode('ARG'));
    for (const wrong of [
      {},
      'a',
      [{ name: 'a', scale: NaN }],
      [{ name: 'a', weight: 1 }],
      [null],
    ]) {
      await assert.rejects(async () => asked(wrong), hasCode('ARG'), JSON.stringify(wrong));
    }
    await assert.rejects(engine.adapters.remove('b'), hasCode('ARG'));
  });

  test('a saved session records its adapters', async (t) => {
    const engine = await openEngine(t, { file: model });
    await engine.adapters.add({ file: usual }, { name: 'usual' });
    const adapters = [{ name: 'usual' }];
    const session = await engine.createSession();
    await session.prompt(prompt, { ...greedy, adapters }).text();
    const saved = await session.save();
    const text = await session.prompt([9], { ...greedy, adapters }).text();
    const { session: loaded } = await engine.loadState(saved);
    assert.equal(await loaded?.prompt([9], { ...greedy, adapters }).text(), text);
    await engine.adapters.remove('usual');
    await assert.rejects(engine.loadState(saved), hasCode('MISMATCH'));
    await engine.adapters.add({ file: usual }, { name: 'again' });
    assert.ok((await engine.loadState(saved)).session);
  });

  test('ids in the handler’s lora field are indices in the list of adapters', async (t) => {
    const engine = await openEngine(t, { file: model });
    await engine.adapters.add({ file: usual }, { name: 'usual' });
    await engine.adapters.add({ file: other }, { name: 'other' });
    const handle = createHandler(engine);
    /** @param {string} path @param {object} more */
    const ask = async (path, more) => {
      const body = { temperature: 0, max_tokens: 8, ...more };
      const headers = { 'content-type': 'application/json' };
      const init = { method: 'POST', headers, body: JSON.stringify(body) };
      const response = await handle(new Request(`http://wick.test${path}`, init));
      return { status: response.status, answer: await response.json() };
    };
    const complete = (/** @type {unknown} */ lora) => ask('/v1/completions', { prompt, lora });
    const adapters = [{ name: 'other', scale: 2 }, { name: 'usual' }];
    const options = { temperature: 0, maxTokens: 8 };
    const wanted = await engine.generate(prompt, { ...options, adapters }).text();
    const plain = await engine.generate(prompt, options).text();
    const found = await complete([{ id: 0 }, { id: 1, scale: 2 }]);
    assert.equal(found.answer.choices[0].text, wanted);
    for (const none of [undefined, null, [], [{ id: 1, scale: 0 }]]) {
      assert.equal((await complete(none)).answer.choices[0].text, plain);
    }
    assert.notEqual(plain, wanted);
    const messages = [{ role: 'user', content: 'a' }];
    for (const path of ['/v1/completions', '/v1/chat/completions']) {
      const more = path.includes('chat') ? { messages } : { prompt };
      for (const lora of [
        {},
        'usual',
        [{}],
        [{ id: -1 }],
        [{ id: 0, scale: 'x' }],
        [{ id: 0, n: 1 }],
      ]) {
        const { status, answer } = await ask(path, { ...more, lora });
        assert.deepEqual([status, answer.error.param], [400, 'lora'], JSON.stringify(lora));
      }
      const { status, answer } = await ask(path, { ...more, lora: [{ id: 0 }, { id: 2 }] });
      assert.deepEqual([status, answer.error.param], [400, 'lora[1].id']);
    }
  });

  test('embeddings can be computed with adapters', async (t) => {
    const engine = await openEngine(t, { file: model });
    await engine.adapters.add({ file: usual }, { name: 'usual' });
    const adapters = [{ name: 'usual', scale: 0.5 }];
    const [plain] = await engine.embed([prompt]);
    const [changed] = await engine.embed([prompt], { adapters });
    assert.notDeepEqual(changed, plain);
    assert.deepEqual(await engine.embed([prompt]), [plain]);
  });
});
