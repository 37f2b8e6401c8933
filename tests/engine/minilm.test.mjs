// A real embedding model, all-MiniLM-L6-v2: converts its weights to GGUF files with tools/embed/bert_gguf.mjs and
// `wick quantize`, and compares token ids and vectors with its reference, sentence-transformers
// (tests/engine/minilm/reference.json, made with tools/embed/reference.py).

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { convertBert } from '../../tools/embed/bert_gguf.mjs';
import { readSafetensors } from '../../tools/embed/safetensors.mjs';
import { native, plainHosts, relaxedHosts, temporaryFolder, wick } from '../support/cli.mjs';
import { locate, root } from '../support/locate.mjs';
import { openEngine } from '../support/package.mjs';

const weights = locate('minilm');
const folder = temporaryFolder();
const files = { F32: join(folder, 'f32.gguf'), Q8_0: join(folder, 'q8_0.gguf') };
/** @type {{cases: {text: string, ids: number[], vector: string}[]}} */
const { cases } = JSON.parse(
  readFileSync(join(root, 'tests/engine/minilm/reference.json'), 'utf8'),
);

/** The minimum cosine. A text without words has only [CLS] and [SEP], so rounding has a larger effect. */
const least = { F32: { text: 0.9999, empty: 0.9999 }, Q8_0: { text: 0.999, empty: 0.998 } };

/** @param {ArrayLike<number>} found @param {string} wanted float32 in base64 */
function cosine(found, wanted) {
  const bytes = new Uint8Array(Buffer.from(wanted, 'base64'));
  const other = new Float32Array(bytes.buffer);
  assert.equal(found.length, other.length);
  let dot = 0;
  let a = 0;
  let b = 0;
  for (let i = 0; i < other.length; i++) {
    dot += found[i] * other[i];
    a += found[i] ** 2;
    b += other[i] ** 2;
  }
  return dot / Math.sqrt(a * b);
}

/** @param {ArrayLike<number>[]} vectors of all cases @param {'F32' | 'Q8_0'} type */
function assertNear(vectors, type) {
  assert.equal(vectors.length, cases.length);
  for (const [i, { text, vector }] of cases.entries()) {
    const wanted = least[type][text === '' ? 'empty' : 'text'];
    const found = cosine(vectors[i], vector);
    assert.ok(found >= wanted, `${type}: ${JSON.stringify(text)}: cosine ${found}`);
  }
}

describe('all-MiniLM-L6-v2', { skip: weights.skip }, () => {
  before(async () => {
    writeFileSync(files.F32, convertBert(weights.path));
    const { code, stderr } = await wick(native, ['quantize', files.F32, files.Q8_0, 'q8_0']);
    assert.equal(code, 0, stderr);
  });

  for (const type of /** @type {const} */ (['F32', 'Q8_0'])) {
    for (const host of [native, plainHosts[0], relaxedHosts[0]]) {
      test(`${type}: vectors, ${host.name}`, { skip: host.skip }, async () => {
        const texts = cases.flatMap(({ text }) => ['-p', text]);
        const { code, stdout, stderr } = await wick(host, ['embed', files[type], ...texts], {
          folders: [folder],
        });
        assert.equal(code, 0, stderr);
        const found = JSON.parse(stdout.toString());
        assertNear(
          found.map((/** @type {any} */ { embedding }) => embedding),
          type,
        );
      });
    }

    test(`${type}: token ids and vectors, the package`, async (t) => {
      const engine = await openEngine(t, { file: files[type] });
      for (const { text, ids } of cases) assert.deepEqual([...(await engine.tokenize(text))], ids);
      assertNear(await engine.embed(cases.map(({ text }) => text)), type);
    });
  }
});

test('files other than safetensors are rejected', () => {
  const whole = Buffer.from('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}');
  const head = Buffer.alloc(8);
  head.writeBigUInt64LE(BigInt(whole.length));
  const file = Buffer.concat([head, whole, Buffer.alloc(4)]);
  assert.deepEqual(readSafetensors(file).get('a')?.shape, [1]);
  assert.throws(
    () => readSafetensors(file.subarray(0, file.length - 1)),
    /a extends beyond the end of the file/,
  );
  assert.throws(
    () => readSafetensors(file.subarray(0, 20)),
    /invalid header size 54 in a file of 20 bytes/,
  );
  assert.throws(
    () => readSafetensors(new Uint8Array(3)),
    /invalid header size 0 in a file of 3 bytes/,
  );
});
