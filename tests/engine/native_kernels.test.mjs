// The native build's kernels at each level that this CPU supports: all give bit-identical results to the
// scalar reference and to the WASI module with plain SIMD.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { plainHosts, temporaryFolder, wick } from '../support/cli.mjs';
import { built, locate, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';

const shared = locate('shared');
const reference = join(shared.path, 'vectors/reference');
const own = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
const temporary = temporaryFolder();

const flags = process.arch === 'x64' ? readFileSync('/proc/cpuinfo', 'utf8') : '';
const hasV3 = ['avx2', 'bmi2', 'fma', 'f16c', 'movbe', 'abm'].every((flag) =>
  new RegExp(`^flags.* ${flag}\\b`, 'm').test(flags),
);
/** The values of WICK_CPU that this CPU supports, the best one last. */
const simd128 = process.arch === 'x64' ? 'sse2' : 'neon';
const levels = ['scalar', `${simd128}-long`, simd128];
if (hasV3) levels.push('avx2');
if (hasV3 && /\bavx_vnni\b/.test(flags)) levels.push('avxvnni');

/** @param {string | undefined} level @param {string[]} args */
const wickAt = (level, args) => run(built('native/wick'), args, { env: { WICK_CPU: level } });

/** @param {string} level @param {string[]} args @returns {Promise<any>} run's --stats */
async function statsAt(level, args) {
  const { code, stderr } = await wickAt(level, ['run', own, ...args, '--stats']);
  assert.equal(code, 0, stderr);
  return JSON.parse(/^\{"load_ms.*$/m.exec(stderr)?.[0] ?? '');
}

describe('native kernels', () => {
  test('the best kernels for this CPU run unless others are requested', async () => {
    for (const level of [...levels, undefined]) {
      const { kernels } = await statsAt(/** @type {any} */ (level), ['-p', 'Once', '-n', '1']);
      assert.equal(kernels, level ?? levels.at(-1));
    }
  });

  test('unsupported values are rejected with an error that names them', async () => {
    for (const level of ['avx9', 'simd128', 'relaxed-quads']) {
      const { code, stdout, stderr } = await wickAt(level, ['run', own, '-p', 'Once']);
      assert.equal(code, 2);
      assert.equal(stdout.length, 0);
      assert.match(stderr, new RegExp(`WICK_CPU=${level}: .* no such kernels`));
    }
  });

  test('all kernels give the same text for each KV cache type', async () => {
    const prompt = '<|im_start|>user\nTell me a story.<|im_end|>\n<|im_start|>assistant\n';
    for (const kv of ['f32', 'f16', 'q8', 'q4']) {
      const args = ['run', own, '-p', prompt, '-n', '80', '--kv', kv];
      const wanted = (await wick(plainHosts[0], args, { folders: [temporary] })).stdout.toString();
      assert.ok(wanted.length > 100, wanted);
      for (const level of levels) {
        assert.equal((await wickAt(level, args)).stdout.toString(), wanted, `${level}, ${kv}`);
      }
    }
  });
});

describe('native kernels, logits for each type', { skip: shared.skip, concurrency: 2 }, () => {
  const tokens = Array.from({ length: 40 }, (_, i) => String((i * 37 + 5) % 200)).join(',');
  const models = shared.skip
    ? []
    : readdirSync(join(reference, 'models')).filter((name) => /^(quant-|llama|qwen2)/.test(name));
  assert.ok(shared.skip || models.length > 20, `${models.length} models`);

  for (const model of models) {
    test(model, async () => {
      const args = ['logits', join(reference, 'models', model), '--tokens', tokens, '--out', '-'];
      const wanted = await wick(plainHosts[0], args, { folders: [temporary] });
      if (wanted.code !== 0) assert.match(wanted.stderr, /WICK_E_UNSUPPORTED/);
      for (const level of levels) {
        const { code, stdout, stderr } = await wickAt(level, args);
        assert.equal(code, wanted.code, stderr);
        assert.ok(
          stdout.equals(wanted.stdout),
          `${level}: the logits differ from ${plainHosts[0].name}`,
        );
      }
    });
  }
});
