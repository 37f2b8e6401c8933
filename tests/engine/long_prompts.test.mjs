// Compares the last row of prompts of 300 tokens with an exact run, for every model of the shared vectors in
// floats. The prompts of those vectors are short: they do not leave every window of attention or reach
// T5's last buckets. tools/long_prompts/generate.py computes the numbers.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { native, wick } from '../support/cli.mjs';
import { locate } from '../support/locate.mjs';

/**
 * `last`: numbers of the last row (logits, or the hidden state of an encoder) at equal distances.
 * @typedef {{set: string, model: string, vocab: number, tokens: number, encoder: boolean, last: number[]}} Prompt
 */

const shared = locate('shared');
/** @type {Prompt[]} */
const prompts = readFileSync(new URL('./long_prompts.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line));

/** The largest error of a model's logits, whose standard deviation is about 3. */
const TOLERANCE = 5e-4;

/** @param {Prompt} prompt @returns {Promise<Float32Array>} the last row */
async function lastRowOf({ set, model, vocab, tokens, encoder }) {
  const ids = Array.from({ length: tokens }, (_, i) => 3 + ((31 * i * i + 17 * i) % (vocab - 3)));
  const command = encoder ? ['embed', '--pooling', 'none', '--kv', 'f32'] : ['logits'];
  const path = join(shared.path, 'vectors', set, 'models', model);
  const args = [...command, path, '--tokens', ids.join(','), '--out', '-'];
  const { code, stdout, stderr } = await wick(native, args);
  assert.equal(code, 0, stderr);
  const all = new Float32Array(new Uint8Array(stdout).buffer);
  return all.subarray(all.length - all.length / tokens);
}

describe('prompts of 300 tokens', { concurrency: 2, skip: shared.skip || native.skip }, () => {
  for (const prompt of prompts) {
    test(prompt.model, async () => {
      const row = await lastRowOf(prompt);
      const { last } = prompt;
      const found = last.map((_, k) => row[Math.floor((k * row.length) / last.length)]);
      const off = Math.max(...found.map((number, k) => Math.abs(number - last[k])));
      assert.ok(off < TOLERANCE, `off by ${off}: ${found}`);
    });
  }
});
