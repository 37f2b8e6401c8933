// A real model, SmolLM2-135M-Instruct in Q4_1: its greedy output, and the loss due to a lower-precision KV cache.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { measuredText } from '../../tools/bench/measured_text.mjs';
import { native, plainHosts, temporaryFolder, wick } from '../support/cli.mjs';
import { isFull } from '../support/level.mjs';
import { locate } from '../support/locate.mjs';

const model = locate('smollm2');
const folder = temporaryFolder();
const [text, logits] = [join(folder, 'text'), join(folder, 'logits.f32')];

/** Limits in nats per token; 0.001 to 0.006 of each loss is noise from 8-bit activations, which any changed bit causes. */
const KV_LIMITS = /** @type {const} */ ([
  ['f16', 0.01],
  ['q8', 0.01],
  ['q4', 0.04],
]);

/** @param {string[]} options */
async function measure(...options) {
  const { code, stdout, stderr } = await wick(native, [
    ...['perplexity', model.path, '-f', text],
    ...options,
  ]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout.toString());
}

describe('SmolLM2-135M-Instruct', { skip: model.skip }, () => {
  before(async () => {
    writeFileSync(text, measuredText(2400));
    const { tokens, perplexity } = await measure('--kv', 'f32', '--save', logits);
    assert.ok(tokens > 400, `${tokens} tokens`);
    assert.ok(perplexity < 40, `perplexity is ${perplexity}`);
  });

  for (const host of [native, ...(isFull ? [plainHosts[0]] : [])]) {
    test(`continues a sentence with the same words: ${host.name}`, async () => {
      const options = ['-n', '16', '--temp', '0'];
      const { code, stdout, stderr } = await wick(host, [
        ...['run', model.path, '-p', 'The capital of France is', ...options],
      ]);
      assert.equal(code, 0, stderr);
      assert.equal(
        stdout.toString().trim(),
        'Paris.\n\nThe United States has a population of approximately 311',
      );
    });
  }

  for (const [type, most] of isFull ? KV_LIMITS : KV_LIMITS.slice(-1)) {
    test(`a KV cache in ${type.toUpperCase()}: at most ${most} nats per token`, async (t) => {
      const { kl_nats_mean } = await measure('--kv', type, '--kl', logits);
      t.diagnostic(`${kl_nats_mean} nats per token`);
      assert.ok(kl_nats_mean <= most, `${kl_nats_mean}, limit is ${most}`);
    });
  }
});
