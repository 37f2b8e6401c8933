// The extras module: every reference model runs on the web builds, whether or not it needs the
// module; engines without the module; saved state.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { serve } from '../../tools/serve.mjs';
import { readPieces, writePieces } from '../support/gguf_pieces.mjs';
import { isFull } from '../support/level.mjs';
import { locate } from '../support/locate.mjs';
import {
  assertSpeaks,
  createEngine,
  dist,
  hasCode,
  modelPath,
  openEngine,
  temporaryFolder,
} from '../support/package.mjs';

/** @type {typeof import('../../js/edge.js')} */
const { createEngine: createEdgeEngine } = await import(pathToFileURL(join(dist, 'edge.js')).href);
const shared = locate('shared');
const sets = ['reference', 'reference-more'].map((name) => join(shared.path, 'vectors', name));
const moduleOf = (/** @type {string} */ build) =>
  new WebAssembly.Module(readFileSync(join(dist, `wasm/wick-${build}.wasm`)));
const greedy = { temperature: 0, maxTokens: 4, ignoreEnd: true };

/** @returns {any[]} the manifests' cases for F32 models */
function knownModels() {
  return sets.flatMap((folder) => {
    const text = readFileSync(join(folder, 'manifest.json'), 'utf8').replace(/:\s*NaN\b/g, ':null');
    return JSON.parse(text).archs.map((/** @type {any} */ one) => ({ ...one, folder }));
  });
}

/**
 * @param {import('../../js/index.js').Engine} engine @param {number[]} tokens
 * @param {{logitsHook?: import('../../js/index.js').LogitsHook}} [more]
 */
async function answerOf(engine, tokens, more = {}) {
  /** @type {number[]} */
  const found = [];
  const onToken = (/** @type {{token: number}} */ { token }) => found.push(token);
  await engine.generate(tokens, { ...greedy, onToken, ...more }).text();
  return found;
}

/** Returns the tolerance for logits from the manifests. @param {string} id */
const toleranceOf = (id) => {
  if (id.startsWith('qwen35') || id.startsWith('qwen3next')) return 1e-3;
  return id === 'plamo2' ? 3e-4 : 1e-4;
};

/**
 * Returns the deviation of the logits after a case's prompt from those of the reference.
 * @param {import('../../js/index.js').Engine} engine @param {string} folder @param {any} one a case
 */
async function deviationOf(engine, folder, one) {
  /** @type {Float32Array | undefined} */
  let logits;
  const logitsHook = (/** @type {Float32Array} */ seen) => {
    logits ??= seen.slice();
  };
  const tokens = await answerOf(engine, one.tokens, { logitsHook });
  if (!logits) throw new Error(`${one.id}: no logits`);
  const { file, shape } = one[one.golden === 'greedy' ? 'logits' : one.golden];
  const bytes = new Uint8Array(readFileSync(join(folder, file)));
  const rows = new Float32Array(bytes.buffer, 0, bytes.length / 4);
  const row = rows.subarray((one.tokens.length - 1) * logits.length).subarray(0, logits.length);
  assert.deepEqual(shape, [rows.length / logits.length, logits.length], one.id);
  let largest = 0;
  for (const [i, wanted] of row.entries())
    largest = Math.max(largest, Math.abs(logits[i] - wanted));
  return { tokens, largest: Number.isFinite(largest) ? largest : Infinity };
}

describe('every reference model', { skip: shared.skip }, () => {
  const known = shared.skip ? [] : knownModels();
  for (const threads of isFull ? [1, 2] : [2]) {
    test(`${known.length} families match the reference logits and tokens with ${threads} threads`, async () => {
      assert.ok(known.length > 85, `${known.length} models`);
      /** @type {string[]} */
      const wrong = [];
      let compared = 0;
      for (const { id, folder, model, cases } of known) {
        const engine = await createEngine({ file: join(folder, model), threads, kvType: 'f32' });
        for (const one of cases) {
          const { tokens, largest } = await deviationOf(engine, folder, one);
          compared++;
          if (largest > toleranceOf(id)) wrong.push(`${one.id}: off by ${largest}`);
          const isDecided = one.greedy_margins
            .slice(0, tokens.length)
            .every((/** @type {number} */ margin) => margin >= 2 * toleranceOf(id));
          if (isDecided && `${tokens}` !== `${one.greedy.slice(0, tokens.length)}`)
            wrong.push(`${id}: ${tokens}, not ${one.greedy}`);
        }
        await engine.close();
      }
      assert.deepEqual(wrong, []);
      assert.ok(compared >= 2 * known.length, `${compared} cases`);
    });
  }

  test('model files of every type run', async () => {
    const files = sets.flatMap((folder) =>
      readdirSync(join(folder, 'models'))
        .filter((name) => name.endsWith('.gguf') && !name.startsWith('t5'))
        .map((name) => join(folder, 'models', name)),
    );
    assert.ok(files.length > 130, `${files.length} files`);
    for (const file of files.filter((_, index) => isFull || index % 4 === 0)) {
      const engine = await createEngine({ file, threads: 2 });
      const tokens = await answerOf(engine, [1, 2, 3]).catch((error) => {
        // encoders do not generate text
        assert.match(String(error), /UNSUPPORTED|encoder|embed/, basename(file));
        return engine.embed(['Once upon']).then(() => [0, 0, 0, 0]);
      });
      assert.equal(tokens.length, 4, basename(file));
      await engine.close();
    }
  });
});

/** @param {string} folder of a part of the build @param {string[]} parts */
function copyBuild(folder, parts) {
  mkdirSync(folder, { recursive: true });
  for (const part of parts) {
    copyFileSync(join(dist, `wasm/wick-simd128-single${part}.wasm`), join(folder, `a${part}.wasm`));
  }
  return pathToFileURL(join(folder, 'a.wasm'));
}

const needing = join(sets[0], 'models/qwen35.gguf');

test('a model fetches the extras once if it needs them; saved state fetches them on demand', async (t) => {
  /** @type {string[]} */
  const fetched = [];
  const onRequest = (/** @type {string} */ path) => void fetched.push(path);
  const server = await serve({ root: join(dist, 'wasm'), onRequest });
  t.after(() => server.close());
  const options = { wasm: new URL(server.url), threads: 1 };
  const usual = await openEngine(t, { file: modelPath, ...options });
  await assertSpeaks(usual);
  assert.equal(fetched.length, 1);
  const session = await usual.createSession();
  await session.append('Once upon a time');
  const bytes = await session.save();
  assert.ok((await usual.loadState(bytes)).session);
  assert.equal(fetched.length, 2);
  assert.match(fetched[1], /-single-extras\.wasm$/);
  for (const kvType of /** @type {const} */ (['q8', 'q4'])) {
    await assertSpeaks(await openEngine(t, { file: modelPath, kvType, ...options }));
  }
  assert.equal(fetched.filter((path) => path.includes('extras')).length, 3);
});

test('an adapter with a rare tensor type fetches the extras', { skip: shared.skip }, async (t) => {
  const IQ4_NL = 20;
  const pieces = readPieces(join(sets[1], 'lora/llama.qv.gguf'));
  const [{ entry }] = pieces.tensors.values();
  entry.writeUInt32LE(IQ4_NL, entry.length - 12);
  pieces.data = Buffer.alloc(pieces.data.length); // all zeros: the adapter has no effect
  const file = join(temporaryFolder(), 'adapter.gguf');
  writeFileSync(file, writePieces(pieces));
  const model = join(sets[0], 'models/llama.gguf');
  for (const threads of [1, 2]) {
    const engine = await openEngine(t, { file: model, threads });
    const wanted = await answerOf(engine, [1, 2, 3]);
    const { rank } = await engine.adapters.add({ file }, { name: 'a' });
    assert.equal(rank, 8);
    const adapters = [{ name: 'a', scale: 1 }];
    const text = await engine.generate([1, 2, 3], { ...greedy, adapters }).text();
    assert.equal(text, await engine.generate([1, 2, 3], greedy).text());
    assert.deepEqual(await answerOf(engine, [1, 2, 3]), wanted);
  }
});

test('without the extras module, loading such a model fails with an error that names the module', {
  skip: shared.skip,
}, async (t) => {
  const folder = join(temporaryFolder(), 'own');
  const wasm = copyBuild(folder, ['']);
  await assert.rejects(createEngine({ file: needing, wasm, threads: 1 }), hasCode('WASM'));
  const usual = await openEngine(t, { file: modelPath, wasm, threads: 1 });
  await assertSpeaks(usual);
  const session = await usual.createSession();
  await session.append('Once upon a time');
  await assert.rejects(session.save(), hasCode('WASM'));
  await assertSpeaks(usual);
  copyBuild(folder, ['-extras']);
  assert.ok((await session.save()).byteLength > 0);
  const engine = await openEngine(t, { file: needing, wasm, threads: 1 });
  assert.equal((await answerOf(engine, [1, 2, 3])).length, 4);
  rmSync(join(folder, 'a-extras.wasm'));
});

test('at the edge, the model is rejected unless the extras module is passed', {
  skip: shared.skip,
}, async () => {
  const [wasm, extrasWasm] = [moduleOf('simd128-single'), moduleOf('simd128-single-extras')];
  const bytes = new Uint8Array(readFileSync(needing));
  const engine = await createEdgeEngine({ wasm, extrasWasm, bytes });
  assert.equal((await answerOf(/** @type {any} */ (engine), [1, 2, 3])).length, 4);
  await engine.close();
  for (const [given, words] of /** @type {const} */ ([
    [undefined, /pass extrasWasm from the same build as wasm/],
    [moduleOf('simd128-threads-extras'), /a different build or version/],
  ])) {
    await assert.rejects(
      createEdgeEngine({ wasm, extrasWasm: given, bytes }),
      (/** @type {any} */ error) => error.code === 'WASM' && words.test(error.message),
    );
  }
});

test('directoryOnly does not need the extras module', {
  skip: shared.skip,
}, async () => {
  const engine = await createEngine({ file: needing, directoryOnly: true });
  assert.equal((await engine.info()).architecture, 'qwen35');
  await engine.close();
});
