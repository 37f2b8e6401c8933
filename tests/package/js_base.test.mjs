// js/base, on which the other folders depend: sampling fields with their defaults and ranges, host
// features, random words.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { bytesOfBlob } from '../../js/base/blob_bytes.js';
import { rangeWords } from '../../js/base/number_range.js';
import { samplerLetters, samplingNumbers } from '../../js/base/option_table.js';
import { randomWord } from '../../js/base/random.js';
import { areSamplers, areTexts, samplerOptions } from '../../js/base/sampler_fields.js';
import { pretend } from '../support/pretend.mjs';

const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

describe('the samplers', () => {
  test('ranges are described in words', () => {
    assert.equal(rangeWords({ min: 0 }), 'a number of at least 0');
    assert.equal(rangeWords({ min: -1, max: 5, whole: true }), 'a whole number from -1 to 5');
    assert.equal(rangeWords(samplingNumbers.repeatPenalty), 'a number above 0');
  });

  test('sampling fields are mapped to options', () => {
    const options = Object.fromEntries(samplerOptions);
    const shown = ['min_p', 'repeat_last_n', 'thinking_budget_tokens', 'post_sampling_probs'];
    assert.deepEqual(
      shown.map((field) => options[field]),
      ['minP', 'penaltyLast', 'thinkingBudgetTokens', 'logprobsAfter'],
    );
  });

  test('lists of samplers and lists of strings are validated', () => {
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
  /** @returns {Promise<typeof import('../../js/base/host_features.js')>} a copy with no cached test results */
  const fresh = async () => import(`../../js/base/host_features.js?${++copies}`);

  /**
   * Returns a WebAssembly object that supports only the given features. Feature probes are recognized
   * by their instructions.
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

  test('relaxed SIMD is used if it computes correct sums, which is tested once', async (t) => {
    let calls = 0;
    const late = (/** @type {number} */ n, /** @type {number} */ x, /** @type {number} */ y) =>
      7 + 4 * n * x * y + Number(++calls === 200);
    const thrown = () => {
      throw new Error('trap');
    };
    /** @type {[any, string, number, number][]} features, expected result, instances, dot products */
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

  test('a host without WebAssembly or SIMD is reported', async (t) => {
    const { detectSimd } = await fresh();
    pretend(t, { WebAssembly: wasmOf({ simd: false }).wasm });
    const simd = 'host: WebAssembly does not support 128-bit SIMD, which the engine requires';
    assert.throws(() => detectSimd(), { code: 'UNSUPPORTED', message: simd });
    pretend(t, { WebAssembly: undefined });
    const none = 'host: WebAssembly is not available';
    assert.throws(() => detectSimd(), { code: 'UNSUPPORTED', message: none });
  });

  test('the number of threads follows from the number of processors', async (t) => {
    const { defaultThreads, mostThreads } = await fresh();
    /** @type {[number, number, number][]} processors, threads, limit */
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

test('random words: generated 256 at a time, use all bits, almost never repeat', (t) => {
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

test('reads a Blob without arrayBuffer(), as in jsdom', async (t) => {
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
