// What coarser keys and values cost: the divergence of the built-in model's answers from those with
// F32 keys and values, in nats per token (KL by log-softmax, `wick perplexity --kl`).

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { built, root } from './support/locate.mjs';
import { run } from './support/process.mjs';

const folder = mkdtempSync(join(tmpdir(), 'wick-kl-'));
after(() => rmSync(folder, { recursive: true }));

const model = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
const text = join(folder, 'text');
const reference = join(folder, 'reference.f32');
writeFileSync(
  text,
  `Wick is an engine that runs language models from GGUF files. It is written in C and compiled to
WebAssembly, so it works in a browser tab, in Node and at the edge. It is private. Everything runs on your
machine, and what you type never leaves it. Once there was a brave fox that lived in a deep wood. One day the
fox found a lamp in the tall grass. The lamp was old and very beautiful. The fox wanted to know whose lamp it
was. A whale said: "It is mine. I have looked for it for so long!" The fox gave the lamp back at once. The
whale was so glad that they had a feast together. The end. 47 + 38 = 70 + 15 = 85. {"name": "Anna", "age": 27}
A fork copies a conversation at once. Both share the same pages until one of them writes something new.`,
);

/** @param {string[]} options */
async function perplexity(options) {
  const { code, stdout, stderr } = await run(built('native/wick'), [
    ...['perplexity', model, '-f', text],
    ...options,
  ]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout.toString());
}

const { tokens } = await perplexity(['--kv', 'f32', '--save', reference]);

test('F32 keys and values differ from themselves by nothing', async () => {
  assert.ok(tokens > 200);
  assert.equal((await perplexity(['--kv', 'f32', '--kl', reference])).kl_nats_mean, 0);
});

for (const [type, most] of /** @type {const} */ ([
  ['f16', 0.001],
  ['q8', 0.01],
  ['q4', 0.1],
])) {
  test(`${type.toUpperCase()} keys and values: under ${most} nats per token`, async (t) => {
    const { kl_nats_mean: mean } = await perplexity(['--kv', type, '--kl', reference]);
    t.diagnostic(`${mean} nats per token`);
    assert.ok(mean > 0, 'it is coarser');
    assert.ok(mean < most, `${mean}`);
  });
}
