// The base of all rooms: the samplers' fields with their defaults and ranges, what a host can do,
// random words.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { bytesOfBlob } from '../../js/base/blob_bytes.js';
import { randomWord } from '../../js/base/random.js';
import {
  areSamplers,
  areTexts,
  samplerLetters,
  samplerNumbers,
  samplerOptions,
  usualNumbers,
} from '../../js/base/sampler_fields.js';
import { pretend } from '../support/pretend.mjs';

const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

describe('the samplers', () => {
  const most = 3.4e38;
  const million = 1048576;
  const u32 = 4294967295;
  /** option, field, default, least, most, whether it is whole. @type {[string, string, number, number, number, true?][]} */
  const table = [
    ['typicalP', 'typical_p', 1, 0, 1],
    ['topNSigma', 'top_n_sigma', -1, -1, most],
    ['xtcProbability', 'xtc_probability', 0, 0, 1],
    ['xtcThreshold', 'xtc_threshold', 0.1, 0, 1],
    ['dynatempRange', 'dynatemp_range', 0, 0, most],
    ['dynatempExponent', 'dynatemp_exponent', 1, 0, most],
    ['dryMultiplier', 'dry_multiplier', 0, 0, most],
    ['dryBase', 'dry_base', 1.75, 1, most],
    ['dryAllowedLength', 'dry_allowed_length', 2, 0, million, true],
    ['dryPenaltyLast', 'dry_penalty_last_n', -1, -1, million, true],
    ['mirostat', 'mirostat', 0, 0, 2, true],
    ['mirostatTau', 'mirostat_tau', 5, 0, most],
    ['mirostatEta', 'mirostat_eta', 0.1, 0, most],
    ['adaptiveTarget', 'adaptive_target', -1, -1, 1],
    ['adaptiveDecay', 'adaptive_decay', 0.9, 0, 0.99],
  ];

  /** The same of those that most clients have. The greatest of undefined is that of a float. @type {[string, string, number, number, number?, true?][]} */
  const usual = [
    ['temperature', 'temperature', 0.8, 0],
    ['topK', 'top_k', 40, -1, u32, true],
    ['topP', 'top_p', 0.95, 0, 1],
    ['minP', 'min_p', 0.05, 0, 1],
    ['repeatPenalty', 'repeat_penalty', 1, 0],
    ['frequencyPenalty', 'frequency_penalty', 0, -100, 100],
    ['presencePenalty', 'presence_penalty', 0, -100, 100],
    ['thinkingBudgetTokens', 'thinking_budget_tokens', -1, -1, u32, true],
  ];

  test('their fields, defaults and ranges', () => {
    const wanted = (/** @type {typeof usual} */ rows) =>
      Object.fromEntries(
        rows.map(([option, field, byDefault, min, max, whole]) => [
          option,
          { field, byDefault, min, ...(max !== undefined && { max }), ...(whole && { whole }) },
        ]),
      );
    assert.deepEqual(usualNumbers, wanted(usual));
    assert.deepEqual(samplerNumbers, wanted(table));
    assert.deepEqual(samplerOptions, [
      ...[...usual, ...table].map(([option, field]) => [field, option]),
      ['repeat_last_n', 'penaltyLast'],
      ['dry_sequence_breakers', 'drySequenceBreakers'],
      ['samplers', 'samplers'],
      ['post_sampling_probs', 'logprobsAfter'],
    ]);
    assert.equal(Object.values(samplerLetters).join(''), 'edskypmxta');
  });

  test('which lists are lists of them, and which are texts', () => {
    const sixteen = Array(16).fill('top_k');
    for (const good of [[], ['top_k'], Object.keys(samplerLetters), sixteen]) {
      assert.equal(areSamplers(good), true);
    }
    const others = [null, 'top_k', {}, ['top_k', 'k'], ['toString'], [5], [...sixteen, 'xtc']];
    for (const bad of others) assert.equal(areSamplers(bad), false);
    for (const good of [[], ['a'], ['a', ' ']]) assert.equal(areTexts(good), true);
    for (const bad of [null, 'a', {}, [''], ['a', ''], ['a', 5]])
      assert.equal(areTexts(bad), false);
  });
});

describe('the host', () => {
  let copies = 0;
  /** @returns {Promise<typeof import('../../js/base/host_features.js')>} a copy that has tested nothing yet */
  const fresh = async () => import(`../../js/base/host_features.js?${++copies}`);

  /**
   * A WebAssembly whose validator takes what the test says. Probes are distinguished by their
   * instruction.
   * @param {{simd?: boolean, relaxed?: boolean, dot?: (n: number, x: number, y: number) => number}} features
   */
  function wasmOf({ simd = true, relaxed = true, dot = (n, x, y) => 7 + 4 * n * x * y }) {
    const counts = { instances: 0, dots: 0 };
    const has = (/** @type {Uint8Array} */ bytes, /** @type {number[]} */ ...word) =>
      Buffer.from(bytes).includes(Buffer.from(word));
    class Instance {
      exports = {
        f: (/** @type {number} */ n, /** @type {number} */ x, /** @type {number} */ y) => {
          counts.dots++;
          return dot(n, x, y);
        },
      };
      constructor() {
        counts.instances++;
      }
    }
    const validate = (/** @type {Uint8Array} */ bytes) =>
      has(bytes, 253, 147, 2) ? relaxed : has(bytes, 253, 98) ? simd : false;
    return { counts, wasm: { validate, Module: class {}, Instance } };
  }

  test('relaxed SIMD is used where it computes the right sums, which are tested once', async (t) => {
    let calls = 0;
    const late = (/** @type {number} */ n, /** @type {number} */ x, /** @type {number} */ y) =>
      7 + 4 * n * x * y + Number(++calls === 200);
    const thrown = () => {
      throw new Error('trap');
    };
    /** @type {[any, string, number, number][]} features, the answer, instances, dots */
    const cases = [
      [{}, 'relaxed', 1, 200],
      [{ relaxed: false }, 'simd128', 0, 0],
      [{ dot: () => 7 }, 'simd128', 1, 1],
      [{ dot: late }, 'simd128', 1, 200],
      [{ dot: thrown }, 'simd128', 1, 1],
    ];
    for (const [features, answer, instances, dots] of cases) {
      const { wasm, counts } = wasmOf(features);
      pretend(t, { WebAssembly: wasm });
      const { detectSimd } = await fresh();
      assert.deepEqual([detectSimd(), detectSimd()], [answer, answer]);
      assert.deepEqual(counts, { instances, dots });
    }
  });

  test('a host without WebAssembly or SIMD is told', async (t) => {
    const { detectSimd } = await fresh();
    pretend(t, { WebAssembly: wasmOf({ simd: false }).wasm });
    const simd = 'WebAssembly has no 128-bit SIMD here: the engine needs it';
    assert.throws(() => detectSimd(), { code: 'UNSUPPORTED', message: simd });
    pretend(t, { WebAssembly: undefined });
    const none = 'host: WebAssembly is not available';
    assert.throws(() => detectSimd(), { code: 'UNSUPPORTED', message: none });
  });

  test('threads by the processors that there are', async (t) => {
    const { defaultThreads, mostThreads } = await fresh();
    /** @type {[number, number, number][]} processors, threads, the most */
    const cases = [
      [1, 1, 8],
      [2, 2, 8],
      [3, 2, 8],
      [4, 2, 8],
      [5, 2, 10],
      [6, 3, 12],
      [15, 7, 30],
      [16, 8, 32],
      [64, 8, 128],
    ];
    for (const [hardwareConcurrency, threads, most] of cases) {
      pretend(t, { navigator: { hardwareConcurrency } });
      assert.deepEqual([defaultThreads(), mostThreads()], [threads, most]);
    }
    pretend(t, { navigator: undefined });
    const os = { availableParallelism: () => 12 };
    t.mock.method(any(process), 'getBuiltinModule', (/** @type {string} */ name) =>
      name === 'node:os' ? os : undefined,
    );
    assert.deepEqual([defaultThreads(), mostThreads()], [6, 24]);
    os.availableParallelism = () => 1;
    assert.deepEqual([defaultThreads(), mostThreads()], [1, 8]);
    pretend(t, { process: undefined });
    assert.deepEqual([defaultThreads(), mostThreads()], [1, 8]);
  });
});

test('random words: 256 at a time, all bits, hardly one twice', (t) => {
  const { getRandomValues } = crypto;
  let asked = 0;
  t.mock.method(crypto, 'getRandomValues', (/** @type {any} */ array) => {
    asked++;
    assert.equal(array.length, 256);
    return getRandomValues.call(crypto, array);
  });
  const words = Array.from({ length: 1024 }, randomWord);
  assert.equal(asked, 4);
  assert.ok(new Set(words).size > 1000);
  assert.equal(
    words.reduce((all, word) => (all | word) >>> 0, 0),
    2 ** 32 - 1,
  );
});

test('the bytes of a Blob that has no arrayBuffer, as in jsdom', async (t) => {
  const blob = new Blob(['fox']);
  pretend(t, {
    FileReader: class {
      /** @type {() => void} */
      onload = () => {};
      /** @type {() => void} */
      onerror = () => {};
      /** @type {unknown} */
      result = undefined;
      error = new Error('unreadable');
      /** @param {unknown} read */
      readAsArrayBuffer(read) {
        if (read !== old) return queueMicrotask(() => this.onerror());
        blob.arrayBuffer().then((bytes) => {
          this.result = bytes;
          this.onload();
        });
      }
    },
  });
  const old = /** @type {any} */ ({ size: blob.size });
  assert.deepEqual(new Uint8Array(await bytesOfBlob(old)), new TextEncoder().encode('fox'));
  await assert.rejects(bytesOfBlob(/** @type {any} */ ({})), /unreadable/);
  assert.equal((await bytesOfBlob(blob)).byteLength, 3);
});
