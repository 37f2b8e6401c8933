// The cost of lower-precision weights and KV caches: the divergence from the same model in F32, in nats per
// token (KL by log-softmax, `wick perplexity --kl`).
//
// The built-in model is measured on chats in its template: the chat page's suggestions with its answers.
// If the shared folder exists, stories260K is measured on its own story.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { built, locate, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';

const shared = locate('shared');
const folder = mkdtempSync(join(tmpdir(), 'wick-kl-'));
after(() => rmSync(folder, { recursive: true }));

/** Limits in nats per token. */
const KV_LIMITS = /** @type {const} */ ([
  ['f16', 0.001],
  ['q8', 0.01],
  ['q4', 0.05],
]);
const WEIGHT_LIMITS = { q8_0: 0.01, q4_k: 0.05, q4_0: 0.1 };

/** @param {string[]} options */
async function wick(options) {
  const { code, stdout, stderr } = await run(built('native/wick'), options);
  assert.equal(code, 0, stderr);
  return stdout.toString();
}

/** @param {string} model @param {string} text a file @param {string[]} options */
async function perplexity(model, text, options) {
  return JSON.parse(await wick(['perplexity', model, '-f', text, '--special', ...options]));
}

/** @param {string} name */
const example = (name) => join(root, `examples/models/${name}`);

/** Texts as files, and the logits of the reference model. */
class Measure {
  /** @param {string} name @param {string[]} texts */
  constructor(name, texts) {
    this.parts = texts.map((text, i) => {
      const path = join(folder, `${name}-${i}`);
      writeFileSync(path, text);
      return { path, logits: `${path}.f32` };
    });
  }

  /** @param {string} model */
  async begin(model) {
    let tokens = 0;
    for (const { path, logits } of this.parts)
      tokens += (await perplexity(model, path, ['--kv', 'f32', '--save', logits])).tokens;
    return tokens;
  }

  /** Returns the nats per token, over the tokens of all texts. @param {string} model @param {string} kv */
  async divergence(model, kv) {
    let [nats, tokens] = [0, 0];
    for (const { path, logits } of this.parts) {
      const found = await perplexity(model, path, ['--kv', kv, '--kl', logits]);
      nats += found.kl_nats_mean * found.tokens;
      tokens += found.tokens;
    }
    return nats / tokens;
  }
}

/**
 * @param {import('node:test').TestContext} t
 * @param {number} nats
 * @param {number} most
 */
function assertBelow(t, nats, most) {
  t.diagnostic(`${nats} nats per token`);
  assert.ok(nats > 0, 'a lower-precision type must differ');
  assert.ok(nats < most, `${nats}, limit is ${most}`);
}

describe('the built-in model, KV cache types', () => {
  const model = example('wick-2.6m-q8_0.gguf');
  const measure = new Measure('text', [
    `Wick is an engine that runs language models from GGUF files. It is written in C and compiled to
WebAssembly, so it works in a browser tab, in Node and at the edge. It is private. Everything runs on your
machine, and what you type never leaves it. Once there was a brave fox that lived in a deep wood. One day the
fox found a lamp in the tall grass. The lamp was old and very beautiful. The fox wanted to know whose lamp it
was. A whale said: "It is mine. I have looked for it for so long!" The fox gave the lamp back at once. The
whale was so glad that they had a feast together. The end. 47 + 38 = 70 + 15 = 85. {"name": "Anna", "age": 27}
A fork copies a conversation at once. Both share the same pages until one of them writes something new.`,
  ]);
  before(async () => assert.ok((await measure.begin(model)) > 200));

  test('F32 does not differ from itself', async () => {
    assert.equal(await measure.divergence(model, 'f32'), 0);
  });
  for (const [type, most] of KV_LIMITS) {
    test(`${type.toUpperCase()}: less than ${most} nats per token`, async (t) => {
      assertBelow(t, await measure.divergence(model, type), most);
    });
  }
});

/** Returns the chat page's suggestions as conversations, with the answers of a model. @param {string} model */
async function chats(model) {
  const suggestions = JSON.parse(readFileSync(example('suggestions.json'), 'utf8'));
  const texts = [];
  for (const { prompt, system } of suggestions) {
    const begin = `<|im_start|>system
${system ?? 'You are Wick, a small and friendly assistant.'}<|im_end|>
<|im_start|>user
${prompt}<|im_end|>
<|im_start|>assistant
`;
    texts.push(`${begin}${await wick(['run', model, '-p', begin, '--kv', 'f32'])}<|im_end|>\n`);
  }
  return texts;
}

// The float model has the Q8_0 file's weights in F32, so the result for Q8_0 is the loss in its matrix
// products, and the results for other types are their total loss. Q4_K is quantized here from the same model.
describe('the built-in model, weights', () => {
  const float = join(folder, 'f32.gguf');
  const q4k = join(folder, 'q4_k.gguf');
  /** @type {Measure} */
  let measure;
  before(async () => {
    const file = example('wick-2.6m-q8_0.gguf');
    await wick(['quantize', file, float, 'f32', '--requantize', '--quiet']);
    await wick(['quantize', float, q4k, 'q4_k_s', '--quiet']);
    measure = new Measure('chat', await chats(float));
    assert.ok((await measure.begin(float)) > 500);
  });

  test('control tokens in a chat are parsed only with --special', async () => {
    const { path } = measure.parts[0];
    const ids = (await wick(['tokenize', float, '-f', path])).trim().split(' ');
    assert.equal((await perplexity(float, path, [])).tokens, ids.length);
    const plain = JSON.parse(await wick(['perplexity', float, '-f', path]));
    assert.ok(plain.tokens > ids.length);
  });
  for (const [type, model] of /** @type {const} */ ([
    ['q8_0', example('wick-2.6m-q8_0.gguf')],
    ['q4_k', q4k],
    ['q4_0', example('wick-2.6m-q4_0.gguf')],
  ])) {
    test(`${type.toUpperCase()}: less than ${WEIGHT_LIMITS[type]} nats per token`, async (t) => {
      assertBelow(t, await measure.divergence(model, 'f32'), WEIGHT_LIMITS[type]);
    });
  }
});

describe('stories260K', { skip: shared.skip }, () => {
  const file = (/** @type {string} */ name) =>
    join(shared.path, 'vectors/stories260K', `stories260K-${name}.gguf`);
  /** @type {Measure} */
  let measure;
  before(async () => {
    const story = readFileSync(join(shared.path, 'vectors/stories260K/greedy-256.txt'), 'utf8');
    measure = new Measure('story', [story]);
    assert.ok((await measure.begin(file('f32'))) > 200);
  });

  for (const [type, most] of KV_LIMITS) {
    test(`${type.toUpperCase()} KV cache: less than ${most}`, async (t) => {
      assertBelow(t, await measure.divergence(file('f32'), type), most);
    });
  }
  for (const [type, most] of /** @type {const} */ ([
    ['f16', 0.001],
    ['q8_0', WEIGHT_LIMITS.q8_0],
  ])) {
    test(`${type.toUpperCase()} weights: less than ${most}`, async (t) => {
      assertBelow(t, await measure.divergence(file(type), 'f32'), most);
    });
  }
});
