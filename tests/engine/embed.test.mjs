// Compares vectors and scores of encoders, embedders and rerankers with llama.cpp and with an exact run,
// through the `wick` command: natively and as WASI modules with plain and relaxed SIMD.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { native, plainHosts, relaxedHosts, temporaryFolder, wick } from '../support/cli.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';

const shared = locate('shared');
const folder = join(shared.path, 'vectors', 'reference-more');
const temporary = temporaryFolder();
const hosts = [native, ...(isFull ? [plainHosts[0], relaxedHosts[0]] : [])];

const manifest = shared.skip
  ? undefined
  : JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8').replace(/:NaN\b/g, ':null'));
/** @type {any[]} */
const all = manifest?.embeddings ?? [];

/** Architectures that do not run yet: their files are rejected before the weights are read. */
/** @type {string[]} */
const refusedArchitectures = [];
const running = all.filter(({ arch }) => !refusedArchitectures.includes(arch));
const refused = all.filter(({ arch }) => refusedArchitectures.includes(arch));

// Tolerances for vectors, normalized vectors and scores; see "tolerances" in the manifest.
const tolerances = { vectors: 1e-4, normalised: 1e-5, scores: 1e-4 };

/** @param {Uint8Array} bytes */
function floatsOf(bytes) {
  const copy = new Uint8Array(bytes); // copied for alignment
  return new Float32Array(copy.buffer, 0, copy.byteLength / 4);
}

/**
 * @param {import('../support/cli.mjs').Host} host @param {string} model @param {string[]} args
 */
async function embed(host, model, args) {
  const { code, stdout, stderr } = await wick(
    host,
    ['embed', join(folder, model), '--kv', 'f32', '--out', '-', ...args],
    { folders: [temporary] },
  );
  assert.equal(code, 0, stderr);
  return floatsOf(stdout);
}

/** @param {ArrayLike<number>} found @param {ArrayLike<number>} wanted @param {number} tolerance @param {string} what */
function assertNear(found, wanted, tolerance, what) {
  assert.equal(found.length, wanted.length, what);
  for (let i = 0; i < wanted.length; i++) {
    const off = Math.abs(found[i] - wanted[i]);
    assert.ok(off <= tolerance, `${what}: number ${i} is off by ${off}`);
  }
}

/** @param {any} one a case @param {string} name of a field */
function readGolden(one, name) {
  const { file } = one[`${name}_f64ref`] ?? one[name];
  return floatsOf(readFileSync(join(folder, file)));
}

for (const host of hosts) {
  describe(`embeddings, ${host.name}`, { concurrency: 2, skip: shared.skip || host.skip }, () => {
    for (const { id, model, cases, pooling } of running) {
      test(`${id}: vectors of tokens and inputs, and scores, match`, async () => {
        for (const one of cases) {
          const tokens = ['--tokens', one.tokens.join(',')];
          const each = await embed(host, model, [...tokens, '--pooling', 'none']);
          assertNear(each, readGolden(one, 'per_token'), tolerances.vectors, `${one.id}, tokens`);
          const pooled = await embed(host, model, tokens);
          if (pooling === 'rank') {
            assertNear(pooled, one.score_f64 ?? one.score, tolerances.scores, `${one.id}, scores`);
          } else if (pooling !== 'none') {
            assertNear(pooled, readGolden(one, 'pooled'), tolerances.vectors, one.id);
            const normalised = await embed(host, model, [...tokens, '--normalize']);
            const wanted = readGolden(one, 'pooled_normalised');
            assertNear(normalised, wanted, tolerances.normalised, `${one.id}, normalised`);
          }
        }
      });
    }

    for (const { id, arch, model } of refused) {
      test(`${id} is rejected with an error that contains its name`, async () => {
        const args = ['embed', join(folder, model), '-p', 'a'];
        const { code, stdout, stderr } = await wick(host, args);
        assert.equal(code, 3);
        assert.equal(stdout.length, 0);
        assert.match(stderr, new RegExp(`'${arch}'`));
        assert.match(stderr, /WICK_E_UNSUPPORTED/);
      });
    }
  });
}

test('the lists of supported and rejected embedders are complete', { skip: shared.skip }, (t) => {
  const names = new Set(running.map(({ arch }) => arch));
  t.diagnostic(`${running.length} of ${all.length} models run: ${[...names].sort().join(', ')}`);
  for (const { id } of refused) t.diagnostic(`refused: ${id}`);
  const documented = readFileSync(join(root, 'docs/architectures.md'), 'utf8');
  for (const name of names)
    assert.ok(documented.includes(`\`${name}\``), `docs/architectures.md: ${name}`);
});
