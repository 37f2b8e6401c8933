// Compares the engine's results with published text and llama.cpp's logits, through the `wick` command: natively (with the
// best kernels for this CPU) and as WASI modules with plain SIMD and, in `make test-all`, relaxed SIMD.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { native, plainHosts, relaxedHosts, wick as wickAlone } from '../support/cli.mjs';
import { concurrency, isFull } from '../support/level.mjs';
import { built, locate, root } from '../support/locate.mjs';
import { openPool } from '../support/wasi_pool.mjs';

const shared = locate('shared');
const vectors = join(shared.path, 'vectors');
const reference = join(vectors, 'reference');
const more = join(vectors, 'reference-more');
const stories = join(vectors, 'stories260K');

const hosts = [native, plainHosts[0], ...(isFull ? [relaxedHosts[0]] : [])];
/** One pool per runtime: each call is an instance in the same process. @type {Map<string, ReturnType<typeof openPool>>} */
const pools = new Map();
after(() => pools.forEach((pool) => void pool.close()));

/** @param {import('../support/cli.mjs').Host} host @param {string[]} args */
function wick(host, args) {
  const runtime = /** @type {'node' | 'node24' | undefined} */ (host.runtime);
  if (runtime === undefined) return wickAlone(host, args);
  const pool = pools.get(runtime) ?? openPool(runtime);
  pools.set(runtime, pool);
  const folders = { [root]: root, [shared.path]: shared.path };
  return pool.run(built(host.program), args, { folders });
}

// For delta nets, llama.cpp itself is off by up to 5.2e-4, as the manifests state.
const deltaNets = ['qwen35', 'qwen35-mtp', 'qwen35moe', 'qwen3next', 'qwen3next-legacy'];
/** Wider tolerances from the manifests, by model name. @type {Record<string, number>} */
const tolerances = { plamo2: 3e-4 };
/** Architectures that do not run yet: their files are rejected before the weights are read. @type {string[]} */
const refusedArchitectures = [];

/**
 * @param {string} folder of the manifest, which contains NaN, an invalid value in JSON
 * @returns {any}
 */
function readManifest(folder) {
  const text = readFileSync(join(folder, 'manifest.json'), 'utf8');
  return JSON.parse(text.replace(/:NaN\b/g, ':null'));
}
const manifest = shared.skip ? undefined : readManifest(reference);
const moreManifest = shared.skip ? undefined : readManifest(more);
const moreModels = moreManifest?.archs ?? [];
/** Adapters, including those that llama.cpp rejects. @type {any[]} */
const adapterCases = (moreManifest?.lora ?? []).map((/** @type {any} */ entry) => ({
  ...entry,
  cases: entry.cases?.length ? entry.cases : undefined,
}));

/** The models of both sets, with the folders of their files. @type {any[]} */
const floatModels = [
  ...(manifest?.archs ?? []).map((/** @type {any} */ entry) => ({ ...entry, folder: reference })),
  ...moreModels.map((/** @type {any} */ entry) => ({ ...entry, folder: more })),
];
/** @param {any} entry of floatModels @returns {RegExp | undefined} the expected error */
function refusalOf({ arch }) {
  if (refusedArchitectures.includes(arch)) return new RegExp(`'${arch}'|tokenizer model 'rwkv'`);
  return undefined;
}
const runningModels = floatModels.filter((entry) => !refusalOf(entry));
const refusedModels = floatModels.filter(refusalOf);

// Every quantized model of the supported architectures.
const architectures = new Set(runningModels.map(({ arch }) => arch));
const quantisedModels = (manifest?.quants ?? []).filter(
  (/** @type {any} */ entry) => entry.model && architectures.has(entry.arch),
);

/** @param {string} id */
const findModel = (id) => [...manifest.archs, ...manifest.quants].find((entry) => entry.id === id);

/** @param {Uint8Array} bytes */
function floatsOf(bytes) {
  const copy = new Uint8Array(bytes); // copied for alignment
  return new Float32Array(copy.buffer, 0, copy.byteLength / 4);
}

/** @param {any} testCase @param {string} [folder] */
const readLogits = (testCase, folder = reference) =>
  floatsOf(readFileSync(join(folder, testCase[testCase.golden].file)));

/**
 * @param {import('../support/cli.mjs').Host} host
 * @param {string} model
 * @param {number[]} tokens
 * @param {string} [folder]
 * @param {number} [threads]
 * @param {{file: string, scale: number}[]} [adapters] of the second set
 */
async function computeLogits(host, model, tokens, folder = reference, threads = 1, adapters = []) {
  const args = ['logits', join(folder, model), '--tokens', tokens.join(','), '--out', '-'];
  if (threads !== 1) args.push('--threads', `${threads}`);
  for (const { file, scale } of adapters) args.push('--lora', `${join(more, file)}:${scale}`);
  const { code, stdout, stderr } = await wick(host, args);
  assert.equal(code, 0, stderr);
  return floatsOf(stdout);
}

/** @param {Float32Array} found @param {Float32Array} wanted determines the number of compared values */
function deviation(found, wanted) {
  let squares = 0;
  let largest = 0;
  for (let i = 0; i < wanted.length; i++) {
    const difference = Math.abs(found[i] - wanted[i]);
    squares += difference * difference;
    if (!(difference <= largest)) largest = difference; // keeps a NaN
  }
  return { rmse: Math.sqrt(squares / wanted.length), largest };
}

/** @param {Float32Array} row */
const argmax = (row) => row.indexOf(row.reduce((a, b) => Math.max(a, b)));

/**
 * Checks that the greedy continuation is the argmax after each position, given the expected tokens. It may
 * differ if the two best logits differ by less than twice the tolerance.
 * @param {Float32Array} logits @param {any} testCase @param {number} vocab
 * @param {number} tolerance
 */
function assertGreedy(logits, testCase, vocab, tolerance) {
  for (const [step, token] of testCase.greedy.entries()) {
    if (testCase.greedy_margins[step] < 2 * tolerance) continue;
    const row = testCase.tokens.length - 1 + step;
    const found = argmax(logits.subarray(row * vocab, (row + 1) * vocab));
    assert.equal(found, token, `greedy step ${step}`);
  }
}

for (const host of hosts) {
  const skip = shared.skip || host.skip;

  describe(`golden, ${host.name}`, { concurrency, skip }, () => {
    test('stories260K generates the published story', async () => {
      const args = ['run', join(stories, 'stories260K-f32.gguf'), '-p', '', '--kv', 'f32'];
      const { code, stdout, stderr } = await wick(host, [...args, '-n', '256']);
      assert.equal(code, 0, stderr);
      const published = readFileSync(join(stories, 'greedy-256.txt'), 'utf8');
      assert.equal(`${stdout}\n`, published);
    });

    for (const { id, model, cases, folder } of runningModels) {
      test(`${id}: logits and greedy tokens`, async () => {
        const { suggested_max_abs, suggested_max_abs_qwen35 } = manifest.tolerances.f32;
        const usual = deltaNets.includes(id) ? suggested_max_abs_qwen35 : suggested_max_abs;
        const tolerance = tolerances[id] ?? usual;
        for (const one of cases) {
          const fed = [...one.tokens, ...one.greedy.slice(0, -1)];
          const found = await computeLogits(host, model, fed, folder);
          const { largest } = deviation(found, readLogits(one, folder));
          assert.ok(largest <= tolerance, `${one.id}: off by ${largest}`);
          assertGreedy(found, one, found.length / fed.length, tolerance);
        }
      });
    }

    test('a model in three files gives the same result as in one file', async () => {
      const { files, same_case_as: whole } = manifest.split;
      const { model, cases } = findModel(whole);
      for (const one of cases) {
        const parts = await computeLogits(host, files[0], one.tokens);
        assert.deepEqual(parts, await computeLogits(host, model, one.tokens));
      }
    });

    for (const entry of refusedModels) {
      test(`${entry.id} is rejected with an error that contains its name`, async () => {
        const path = join(entry.folder, entry.model);
        const { code, stdout, stderr } = await wick(host, ['run', path, '-p', 'a']);
        assert.equal(code, 3);
        assert.equal(stdout.length, 0);
        assert.match(stderr, /** @type {RegExp} */ (refusalOf(entry)));
        assert.match(stderr, /WICK_E_UNSUPPORTED/);
      });
    }
  });

  describe(`golden, quantized models, ${host.name}`, { concurrency, skip }, () => {
    for (const { id, model, cases } of quantisedModels) {
      test(`${id}: logits are as close to exact as llama.cpp's`, async () => {
        for (const one of cases.filter((/** @type {any} */ c) => c.golden !== 'greedy')) {
          const found = await computeLogits(host, model, one.tokens);
          const { rmse } = deviation(found, readLogits(one));
          const bound = 1.25 * one.dev_llamacpp_quantised_x64.rmse;
          assert.ok(rmse <= bound, `${one.id}: RMSE ${rmse}, limit is ${bound}`);
        }
      });
    }
  });

  describe(`golden with adapters, ${host.name}`, { concurrency, skip }, () => {
    for (const { id, base_model: model, adapters, cases } of adapterCases) {
      if (!cases) continue;
      test(`${id}: logits and greedy tokens with adapters`, async () => {
        const { suggested_max_abs: tolerance } = moreManifest.tolerances.f32;
        for (const one of cases) {
          const fed = [...one.tokens, ...one.greedy.slice(0, -1)];
          const found = await computeLogits(host, model, fed, reference, 1, adapters);
          const { largest } = deviation(found, readLogits(one, more));
          assert.ok(largest <= tolerance, `${one.id}: off by ${largest}`);
          assertGreedy(found, one, found.length / fed.length, tolerance);
        }
      });
    }

    for (const { id, base_model: model, adapters, cases } of adapterCases) {
      if (cases) continue;
      test(`${id}: an adapter for an embedding that is also the output is rejected with the tensor's name`, async () => {
        const args = ['logits', join(reference, model), '--tokens', '1,2', '--out', '-'];
        const files = adapters.map((/** @type {any} */ { file }) => ['--lora', join(more, file)]);
        const { code, stdout, stderr } = await wick(host, [...args, ...files.flat()]);
        assert.equal(code, 3);
        assert.equal(stdout.length, 0);
        assert.match(stderr, /'token_embd\.weight', which is also the model's output.*UNSUPPORTED/);
      });
    }
  });
}

describe('bit-identical results, native', { concurrency, skip: shared.skip }, () => {
  for (const { id, model, cases, folder } of runningModels) {
    test(`${id}: for a prefix, and with two threads`, async () => {
      const { tokens, greedy } = cases[cases.length - 1];
      const fed = [...tokens, ...greedy];
      const whole = await computeLogits(native, model, fed, folder);
      const count = Math.ceil(fed.length / 2) + 1;
      const part = await computeLogits(native, model, fed.slice(0, count), folder, 2);
      assert.equal(part.length, (whole.length / fed.length) * count);
      assert.deepEqual(part, whole.subarray(0, part.length));
    });
  }

  for (const { id, base_model: model, adapters, cases } of adapterCases) {
    if (!cases) continue;
    test(`${id}: with adapters, for a prefix, and with two threads`, async () => {
      const { tokens } = cases[cases.length - 1];
      const whole = await computeLogits(native, model, tokens, reference, 1, adapters);
      const count = Math.ceil(tokens.length / 2) + 1;
      const few = tokens.slice(0, count);
      const part = await computeLogits(native, model, few, reference, 2, adapters.toReversed());
      assert.deepEqual(part, whole.subarray(0, (whole.length / tokens.length) * count));
    });
  }
});

test('the lists of supported and rejected references are complete', { skip: shared.skip }, (t) => {
  const all = new Set(floatModels.map(({ arch }) => arch));
  const counts = `${runningModels.length} of ${floatModels.length} models`;
  t.diagnostic(`${architectures.size} of ${all.size} architectures run, ${counts}`);
  t.diagnostic(`run: ${[...architectures].sort().join(', ')}`);
  for (const { id } of refusedModels) t.diagnostic(`refused: ${id}`);
  const adapted = adapterCases.filter(({ cases }) => cases).length;
  t.diagnostic(`${adapted} of ${adapterCases.length} cases of adapters run`);
  const quants = manifest.quants.filter((/** @type {any} */ { model }) => model);
  t.diagnostic(`${quantisedModels.length} of ${quants.length} quantised models run`);
  const documented = readFileSync(join(root, 'docs/architectures.md'), 'utf8');
  for (const name of architectures)
    assert.ok(documented.includes(`\`${name}\``), `docs/architectures.md: ${name}`);
  const reported = /of (\d+) architectures/.exec(readFileSync(join(root, 'README.md'), 'utf8'));
  assert.equal(Number(reported?.[1]), architectures.size, 'README');
  for (const name of refusedArchitectures) assert.ok(all.has(name), `no reference of ${name}`);
});
