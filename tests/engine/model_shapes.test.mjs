// Compares the shape that wick inspect prints for each reference model with the keys of its file. Exceptions for
// families that count differently are listed here.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { native, wick } from '../support/cli.mjs';
import { locate } from '../support/locate.mjs';

const shared = locate('shared');
const folders = ['reference', 'reference-more'].map((name) =>
  join(shared.path, 'vectors', name, 'models'),
);

/** @param {any} value of a key: one number, or one per layer @returns {number} */
const most = (value) => (Array.isArray(value) ? Math.max(...value) : value);

/** Shapes that differ from the keys. @type {[RegExp, (keys: any) => Record<string, number>][]} */
const otherwise = [
  // the key counts both halves of a gated layer
  [/^qwen\.gguf$/, (keys) => ({ ffn: keys.feed_forward_length / 2 })],
  // every layer has experts: the size of one expert
  [
    /^(qwen35moe|qwen3next(-legacy)?|qwen2moe|qwen3moe|gpt-oss(-MXFP4_MOE)?|nemotron_h_moe)\.gguf$/,
    (keys) => ({ ffn: keys.expert_feed_forward_length }),
  ],
  [/^smallthinker\.gguf$/, () => ({ ffn: 20 })],
  // channel mixing in place of a feed-forward layer
  [/^rwkv7\.gguf$/, () => ({ ffn: 0 })],
  // layers have two sizes: the size in the last page group
  [/^gemma4-(dense|ple)\.gguf$/, () => ({ head_dim: 8 })],
];

/** @param {string} file @param {any} found the whole output of wick inspect */
function shapeOf(file, { metadata, tensors }) {
  const keys = Object.fromEntries(
    metadata.map((/** @type {any} */ { key, value, first }) => [
      key.slice(key.indexOf('.') + 1),
      value ?? first,
    ]),
  );
  const shapes = new Map(tensors.map((/** @type {any} */ { name, shape }) => [name, shape]));
  const heads = most(keys['attention.head_count']);
  const parameters = [...shapes.values()].map((shape) =>
    shape.reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1),
  );
  const shape = {
    parameters: parameters.reduce((a, b) => a + b, 0),
    layers: keys.block_count - (keys.nextn_predict_layers ?? 0),
    hidden: keys.embedding_length,
    heads,
    kv_heads: most(keys['attention.head_count_kv'] ?? heads),
    head_dim: keys['attention.key_length'] ?? (heads && keys.embedding_length / heads),
    ffn: most(keys.feed_forward_length),
    vocab: shapes.get('token_embd.weight')[1],
    context_trained: keys.context_length,
  };
  const other = otherwise.find(([pattern]) => pattern.test(file));
  return other ? { ...shape, ...other[1](keys) } : shape;
}

describe('shapes of the reference models', { skip: shared.skip }, () => {
  test('each number matches the keys', async () => {
    let count = 0;
    for (const folder of folders) {
      for (const file of readdirSync(folder).filter((name) => name.endsWith('.gguf'))) {
        const { code, stdout, stderr } = await wick(native, [
          'inspect',
          join(folder, file),
          '--json',
        ]);
        assert.equal(code, 0, stderr.toString());
        const found = JSON.parse(stdout.toString());
        assert.deepEqual(found.info.shape, shapeOf(file, found), file);
        assert.equal(found.info.error, null, file);
        count++;
      }
    }
    assert.ok(count > 100, `${count} files`);
  });
});
