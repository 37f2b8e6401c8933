// The grammar module of a build: it is loaded by the first request that needs it. Also tests requests when the module is
// missing, broken or from a different build.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { serve } from '../../tools/serve.mjs';
import {
  assertSpeaks,
  dist,
  hasCode,
  modelPath,
  openEngine,
  temporaryFolder,
} from '../support/package.mjs';

/** @type {typeof import('../../js/edge.js')} */
const { createEngine: createEdgeEngine } = await import(pathToFileURL(join(dist, 'edge.js')).href);
const folder = temporaryFolder();
const file = (/** @type {string} */ build) => join(dist, `wasm/wick-${build}.wasm`);
const bytesOf = (/** @type {string} */ build) => readFileSync(file(build));
const moduleOf = (/** @type {string} */ build) => new WebAssembly.Module(bytesOf(build));
const yesOrNo = { choices: ['yes', 'no'], temperature: 0 };

/** @param {import('../../js/index.js').Engine} engine */
async function assertHolds(engine) {
  assert.match(await engine.generate('Is it?', yesOrNo).text(), /^(yes|no)$/);
}

/** Checks a grammar that takes longer to compile than a step may. @param {any} engine */
async function assertSlices(engine) {
  const regex = '(a|b)*a(a|b){14}';
  const options = { regex, temperature: 0, maxTokens: 4 };
  assert.match(await engine.generate('It is ', options).text(), /^[ab]+$/);
}

test('the module is fetched once, by the first request with a grammar', async (t) => {
  /** @type {string[]} */
  const fetched = [];
  const onRequest = (/** @type {string} */ path) => void fetched.push(path);
  const server = await serve({ root: join(dist, 'wasm'), onRequest });
  t.after(() => server.close());
  const wasm = new URL(server.url);
  const engine = await openEngine(t, { file: modelPath, wasm, threads: 1 });
  await assertSpeaks(engine);
  assert.equal(fetched.length, 1);
  // several requests wait for one download; requests that do not need the module do not wait
  const answers = await Promise.all([
    engine.generate('Is it?', yesOrNo).text(),
    engine.generate('Once upon', { healing: true, temperature: 0, maxTokens: 4 }).text(),
    engine.generate('Is it?', yesOrNo).text(),
    engine.generate('Once upon', { temperature: 0, maxTokens: 4 }).text(),
  ]);
  assert.match(answers[0], /^(yes|no)$/);
  assert.equal(answers[2], answers[0]);
  assert.ok(answers[3].length > 0);
  assert.equal(fetched.length, 2);
  assert.match(fetched[1], /-single-grammar\.wasm$/);
  await assertHolds(engine);
  await assertSlices(engine);
  assert.equal(fetched.length, 2);
});

test('without the module only requests that need it fail, and a later one can load it', async (t) => {
  const own = join(folder, 'own');
  mkdirSync(own);
  const wasm = pathToFileURL(join(own, 'a.wasm'));
  copyFileSync(file('simd128-single'), wasm);
  const engine = await openEngine(t, { file: modelPath, wasm });
  const wanted = hasCode('WASM');
  await assert.rejects(engine.generate('Is it?', yesOrNo).text(), wanted);
  await assertSpeaks(engine);
  const second = join(own, 'a-grammar.wasm');
  for (const broken of [
    Buffer.from('<html>'),
    bytesOf('simd128-threads-grammar'),
    bytesOf('simd128-single'),
  ]) {
    writeFileSync(second, broken);
    await assert.rejects(engine.generate('Is it?', yesOrNo).text(), wanted);
  }
  rmSync(second);
  copyFileSync(file('simd128-single-grammar'), second);
  await assertHolds(engine);
  await assertSpeaks(engine);
});

test('grammarWasm: bytes, a module, a response, a URL', async (t) => {
  const wasm = bytesOf('simd128-single');
  const bytes = bytesOf('simd128-single-grammar');
  const module = moduleOf('simd128-single-grammar');
  const address = pathToFileURL(file('simd128-single-grammar'));
  for (const grammarWasm of [bytes, module, new Response(bytes), address, address.href]) {
    const engine = await openEngine(t, { file: modelPath, wasm, grammarWasm });
    await assertHolds(engine);
    await assertSlices(engine);
  }
  const without = await openEngine(t, { file: modelPath, wasm });
  await assert.rejects(without.generate('Is it?', yesOrNo).text(), (/** @type {any} */ error) => {
    assert.match(error.message, /grammarWasm/);
    return error.code === 'WASM';
  });
  await assertSpeaks(without);
});

test('closing an engine while the module loads cancels its requests', async (t) => {
  const engine = await openEngine(t, { file: modelPath, threads: 1 });
  const answer = engine.generate('Is it?', yesOrNo).text();
  const gone = assert.rejects(answer, hasCode('CLOSED'));
  await engine.close();
  await gone;
});

test('at the edge, a request fails with an error that names the grammar module unless it is passed', async () => {
  const [wasm, bytes] = [moduleOf('simd128-single'), new Uint8Array(readFileSync(modelPath))];
  const grammarWasm = moduleOf('simd128-single-grammar');
  const engine = await createEdgeEngine({ wasm, grammarWasm, bytes });
  await assertHolds(/** @type {any} */ (engine));
  await assertSlices(engine);
  await engine.close();
  for (const [second, words] of /** @type {const} */ ([
    [undefined, /pass grammarWasm from the same build as wasm/],
    [moduleOf('relaxed-single-grammar'), /a different build or version/],
    [wasm, /a different build or version/],
  ])) {
    const other = await createEdgeEngine({ wasm, grammarWasm: second, bytes });
    await assert.rejects(other.generate('Is it?', yesOrNo).text(), (/** @type {any} */ error) => {
      assert.match(error.message, words);
      return error.code === 'WASM';
    });
    assert.ok((await other.generate('Once', { temperature: 0, maxTokens: 8 }).text()).length > 0);
    await other.close();
  }
  const notOne = /** @type {any} */ ({ wasm, grammarWasm: new Uint8Array(8), bytes });
  await assert.rejects(
    createEdgeEngine(notOne),
    /^WickError: grammarWasm must be a WebAssembly.Module/,
  );
});
