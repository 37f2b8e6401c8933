// `wick media`: images of all encoders against reference vectors (resized pixels byte by byte, rows
// within tolerances, chunks and positions of prompts), and files that are refused.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { native, temporaryFolder, wick } from '../support/cli.mjs';
import { locate } from '../support/locate.mjs';

const shared = locate('shared');
const folder = join(shared.path, 'vectors', 'vision');
const temporary = temporaryFolder();
const manifest = shared.skip
  ? { types: [], refuse: [], alternatives: [] }
  : JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));

/** @typedef {{text?: string, image?: string, audio?: string, width?: number, height?: number}} Part */

const hasAudio = (/** @type {any} */ one) => one.parts.some((/** @type {Part} */ p) => p.audio);
let runs = 0;

/** @param {string} name */
function floatsOf(name) {
  const bytes = new Uint8Array(readFileSync(name)); // at an aligned address
  return new Float32Array(bytes.buffer, 0, bytes.byteLength / 4);
}

/** @param {string} model @param {string} mmproj @param {Part[]} parts @param {string[]} options */
async function media(model, mmproj, parts, options = []) {
  const name = join(temporary, `parts-${runs++}`);
  const named = parts.map((part) =>
    part.image ? { ...part, image: join(folder, part.image) } : part,
  );
  writeFileSync(`${name}.json`, JSON.stringify(named));
  const files = ['--out', `${name}.rows`, '--pixels', `${name}.rgb`];
  const from = ['media', join(folder, model), '--mmproj', join(folder, mmproj)];
  const done = await wick(native, [
    ...from,
    ...['--parts', `${name}.json`, '--json', ...files, ...options],
  ]);
  if (done.code !== 0) {
    return { ...done, chunks: [], rows: new Float32Array(), pixels: Buffer.alloc(0) };
  }
  return {
    ...done,
    chunks: JSON.parse(done.stdout.toString()),
    rows: floatsOf(`${name}.rows`),
    pixels: readFileSync(`${name}.rgb`),
  };
}

/** @param {Float32Array} found @param {Float32Array} wanted @param {number} tolerance */
function assertNear(found, wanted, tolerance) {
  assert.equal(found.length, wanted.length);
  let most = 0;
  for (let i = 0; i < wanted.length; i++) {
    const off = Math.abs(found[i] - wanted[i]);
    most = off <= most ? most : off; // NaN stays
  }
  assert.ok(most <= tolerance, `off by ${most}, at most ${tolerance}`);
}

/** @param {Float32Array} values */
const rmsOf = (values) => Math.sqrt(values.reduce((sum, v) => sum + v * v, 0) / values.length);

/** @param {any} done @param {{file: string}[]} embeddings @param {(one: any, rms: number) => number} tolerance */
function assertRows(done, embeddings, tolerance) {
  let at = 0;
  for (const one of embeddings) {
    const wanted = floatsOf(join(folder, one.file));
    assertNear(done.rows.subarray(at, at + wanted.length), wanted, tolerance(one, rmsOf(wanted)));
    at += wanted.length;
  }
  assert.equal(at, done.rows.length);
}

/** @param {any[]} found @param {any[]} wanted */
function assertChunks(found, wanted) {
  const keys = ['type', 'pos0', 'tokens', 'n_tokens', 'n_pos', 'non_causal', 'pos_txy', 'pos_z'];
  const known = (/** @type {any} */ chunk, /** @type {any} */ like) =>
    Object.fromEntries(keys.filter((key) => key in like).map((key) => [key, chunk[key]]));
  assert.deepEqual(
    found.map((chunk, i) => known(chunk, wanted[i] ?? {})),
    wanted.map((chunk) => known(chunk, chunk)),
  );
}

/** @param {Buffer} pixels @param {any[]} found @param {any[]} wanted */
function assertPixels(pixels, found, wanted) {
  let at = 0;
  wanted.forEach((chunk, i) => {
    if (chunk.type !== 'image') return;
    const { width, height } = found[i];
    assert.deepEqual([width, height], [chunk.prep.width, chunk.prep.height]);
    const bytes = pixels.subarray(at, at + width * height * 3);
    const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
    assert.equal(hash, chunk.prep.sha256_16);
    at += bytes.length;
  });
  assert.equal(at, pixels.length);
}

const exact = (/** @type {any} */ _, /** @type {number} */ rms) => 2e-4 + 2e-4 * rms;

describe('images', { concurrency: 2, skip: shared.skip }, () => {
  for (const type of manifest.types) {
    for (const one of type.cases) {
      const skip = hasAudio(one) && 'encoders of audio do not run yet';
      test(`${type.id}: ${one.id}`, { skip }, async () => {
        const done = await media(type.text_model, type.mmproj, one.parts);
        assert.equal(done.code, 0, done.stderr);
        assertChunks(done.chunks, one.chunks);
        assertPixels(done.pixels, done.chunks, one.chunks);
        const embeddings = one.chunks.flatMap((/** @type {any} */ c) => c.embd ?? []);
        assertRows(done, embeddings, exact);
      });
    }
    for (const quantised of type.quantised) {
      const one = type.cases.find((/** @type {any} */ c) => c.id === quantised.case);
      const skip = hasAudio(one) && 'encoders of audio do not run yet';
      test(`${type.id}: ${quantised.type}`, { skip }, async () => {
        const done = await media(type.text_model, quantised.mmproj, one.parts);
        assert.equal(done.code, 0, done.stderr);
        assertRows(done, quantised.embd, ({ dev_stock_llamacpp }) =>
          Math.max(3e-4, 4 * dev_stock_llamacpp.max_abs),
        );
      });
    }
  }
});

describe('published models', { skip: shared.skip }, () => {
  for (const alternative of manifest.alternatives) {
    const type = manifest.types.find((/** @type {any} */ t) => t.id === alternative.type);
    const one = type.cases.find((/** @type {any} */ c) => c.id === alternative.case);
    const skip = hasAudio(one) && 'encoders of audio do not run yet';
    test(`${type.id}: ${alternative.name}`, { skip }, async () => {
      const done = await media(type.text_model, type.mmproj, one.parts, ['--published']);
      assert.equal(done.code, 0, done.stderr);
      assertRows(done, alternative.embd, exact);
    });
  }
});

describe('files that are refused', { concurrency: 2, skip: shared.skip }, () => {
  for (const { file, expect, why } of manifest.refuse) {
    test(why, async () => {
      const [{ text_model, cases }] = manifest.types;
      const { code, stderr } = await media(text_model, file, cases[0].parts);
      if (expect === 'accept') assert.equal(code, 0, stderr);
      else assert.equal(code, 3, stderr);
      if (expect !== 'accept') assert.match(stderr.toString(), /^wick: .*(mmproj: |ends in ).*\n$/);
    });
  }
});

describe('threads, formats and limits', { skip: shared.skip }, () => {
  const type = manifest.types[0];
  const image = type?.cases[0].parts[1];
  const one = (/** @type {Part[]} */ parts, /** @type {string[]} */ ...options) =>
    media(type.text_model, type.mmproj, parts, options);

  test('rows are the same for any number of threads', async () => {
    const single = await one([image]);
    const several = await one([image], '--threads', '3');
    assert.deepEqual(several.rows, single.rows);
  });

  test('a PPM file gives what its pixels give', async () => {
    const { width, height } = image;
    const path = join(temporary, 'image.ppm');
    const pixels = readFileSync(join(folder, image.image));
    writeFileSync(
      path,
      Buffer.concat([Buffer.from(`P6 # a comment\n${width} ${height}\n255\n`), pixels]),
    );
    const raw = await one([image]);
    const name = join(temporary, 'ppm.json');
    writeFileSync(name, JSON.stringify([{ image: 'image.ppm' }])); // relative to the JSON
    const from = ['media', join(folder, type.text_model), '--mmproj', join(folder, type.mmproj)];
    const done = await wick(native, [...from, '--parts', name, '--json', '--out', `${name}.rows`]);
    assert.equal(done.code, 0, done.stderr);
    assert.deepEqual(floatsOf(`${name}.rows`), raw.rows);
    assert.deepEqual(JSON.parse(done.stdout.toString()), raw.chunks);
  });

  test('an image with too few bytes, without pixels or beyond the limits is refused', async () => {
    for (const size of [{ width: 2000 }, { width: 0, height: 7 }, { width: 999999 }]) {
      const { code, stderr } = await one([{ ...image, ...size }]);
      assert.equal(code, 2, stderr);
      assert.match(stderr.toString(), /^wick: .*\n$/);
    }
  });

  test('another image or encoder has another key', async () => {
    const other = manifest.types[0].quantised[0];
    const tall = type.cases[1].parts[1];
    const keyOf = (/** @type {any} */ done) =>
      done.chunks.find((/** @type {any} */ chunk) => chunk.key).key;
    const keys = [
      keyOf(await one([image])),
      keyOf(await one([tall])),
      keyOf(await media(type.text_model, other.mmproj, [image])),
    ];
    assert.equal(new Set(keys).size, 3);
    assert.equal(keyOf(await one([image])), keys[0]);
  });
});
