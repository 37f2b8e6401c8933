// `wick media`: compares images and recordings for all encoders with reference vectors (resized pixels byte
// by byte, spectra and rows within tolerances, chunks and positions in prompts), and tests rejected files.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { native, temporaryFolder, wick } from '../support/cli.mjs';
import { locate } from '../support/locate.mjs';
import { wavOf } from '../support/media_files.mjs';

const shared = locate('shared');
const folder = join(shared.path, 'vectors', 'vision');
const temporary = temporaryFolder();
const manifest = shared.skip
  ? { types: [], refuse: [], alternatives: [] }
  : JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));

/** @typedef {{text?: string, image?: string, audio?: string, width?: number, height?: number}} Part */

let runs = 0;

/** @param {string} name */
function floatsOf(name) {
  const bytes = new Uint8Array(readFileSync(name)); // copied for alignment
  return new Float32Array(bytes.buffer, 0, bytes.byteLength / 4);
}

/** @param {string} model @param {string} mmproj @param {Part[]} parts @param {string[]} options */
async function media(model, mmproj, parts, options = []) {
  const name = join(temporary, `parts-${runs++}`);
  const named = parts.map(({ image, audio, ...part }) => ({
    ...part,
    ...(image && { image: resolve(folder, image) }),
    ...(audio && { audio: resolve(folder, audio) }),
  }));
  writeFileSync(`${name}.json`, JSON.stringify(named));
  const files = ['--out', `${name}.rows`, '--inputs', `${name}.inputs`];
  const from = ['media', join(folder, model), '--mmproj', join(folder, mmproj)];
  const done = await wick(native, [
    ...from,
    ...['--parts', `${name}.json`, '--json', ...files, ...options],
  ]);
  if (done.code !== 0) {
    return { ...done, chunks: [], rows: new Float32Array(), inputs: Buffer.alloc(0) };
  }
  return {
    ...done,
    chunks: JSON.parse(done.stdout.toString()),
    rows: floatsOf(`${name}.rows`),
    inputs: readFileSync(`${name}.inputs`),
  };
}

/** @param {Float32Array} found @param {Float32Array} wanted @param {number} tolerance */
function assertNear(found, wanted, tolerance) {
  assert.equal(found.length, wanted.length);
  let most = 0;
  for (let i = 0; i < wanted.length; i++) {
    const off = Math.abs(found[i] - wanted[i]);
    most = off <= most ? most : off; // keeps NaN
  }
  assert.ok(most <= tolerance, `off by ${most}, limit is ${tolerance}`);
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

/** Pixels byte by byte, spectra within the manifest's tolerance. @param {Buffer} inputs @param {any[]} found @param {any[]} wanted */
function assertInputs(inputs, found, wanted) {
  let at = 0;
  wanted.forEach(({ type, prep }, i) => {
    if (type === 'text') return;
    const { width, height } = found[i];
    const size = width * height * (type === 'image' ? 3 : 4);
    const bytes = new Uint8Array(inputs.subarray(at, at + size)); // copied for alignment
    at += size;
    if (type === 'image') {
      assert.deepEqual([width, height], [prep.width, prep.height]);
      const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
      assert.equal(hash, prep.sha256_16);
      return;
    }
    assert.deepEqual([width, height], [prep.n_frames, prep.n_mel]);
    const spectrum = new Float32Array(bytes.buffer);
    const stored = floatsOf(join(folder, prep.file));
    const frames = prep.stored_frames; // the first frames of each band
    const first = Float32Array.from(
      stored,
      (_, at) => spectrum[Math.floor(at / frames) * width + (at % frames)],
    );
    assertNear(first, stored, 1e-3);
  });
  assert.equal(at, inputs.length);
}

// the vectors were made with llama.cpp
const like = ['--like-llama-cpp'];

const exact = (/** @type {any} */ _, /** @type {number} */ rms) => 2e-4 + 2e-4 * rms;

// normalization by band magnifies rounding errors
const magnified = () => 1e-3;

describe('images and recordings', { concurrency: 2, skip: shared.skip }, () => {
  for (const type of manifest.types) {
    for (const one of type.cases) {
      test(`${type.id}: ${one.id}`, async () => {
        const done = await media(type.text_model, type.mmproj, one.parts, like);
        assert.equal(done.code, 0, done.stderr);
        assertChunks(done.chunks, one.chunks);
        assertInputs(done.inputs, done.chunks, one.chunks);
        const embeddings = one.chunks.flatMap((/** @type {any} */ c) => c.embd ?? []);
        assertRows(done, embeddings, type.id === 'lfm2a' ? magnified : exact);
      });
    }
    for (const quantised of type.quantised) {
      const one = type.cases.find((/** @type {any} */ c) => c.id === quantised.case);
      test(`${type.id}: ${quantised.type}`, async () => {
        const done = await media(type.text_model, quantised.mmproj, one.parts, like);
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
    test(`${type.id}: ${alternative.name}`, async () => {
      const done = await media(type.text_model, type.mmproj, one.parts);
      assert.equal(done.code, 0, done.stderr);
      assertRows(done, alternative.embd, exact);
    });
  }
});

describe('rejected files', { concurrency: 2, skip: shared.skip }, () => {
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
  /** Runs `wick media` without output files. @param {Part[]} parts @param {string[]} options */
  const plain = (parts, ...options) => {
    const name = join(temporary, `plain-${runs++}.json`);
    writeFileSync(
      name,
      JSON.stringify(parts.map((part) => ({ ...part, image: resolve(folder, part.image ?? '') }))),
    );
    const from = ['media', join(folder, type.text_model), '--mmproj', join(folder, type.mmproj)];
    return wick(native, [...from, '--parts', name, ...options]);
  };

  for (const { id, text_model, mmproj, cases } of manifest.types) {
    test(`${id}: rows are the same for any number of threads`, async () => {
      const single = await media(text_model, mmproj, cases[0].parts);
      const several = await media(text_model, mmproj, cases[0].parts, ['--threads', '3']);
      assert.deepEqual(several.rows, single.rows);
      assert.ok(single.rows.length > 0);
    });
  }

  test('tiles and tokens of an image are limited', async () => {
    const picturesOf = async (/** @type {string[]} */ ...options) => {
      const { code, stderr, chunks } = await one([image], '--max-tiles', ...options);
      assert.equal(code, 0, stderr);
      const pictures = chunks.filter((/** @type {any} */ chunk) => chunk.type === 'image');
      return pictures.map((/** @type {any} */ { n_tokens }) => n_tokens);
    };
    const all = await picturesOf('0');
    const [rows] = all;
    assert.ok(all.length > 3);
    for (const limit of [3, 2, 1]) assert.ok((await picturesOf(`${limit}`)).length <= limit);
    assert.deepEqual(await picturesOf('1'), [rows]);
    assert.deepEqual(await picturesOf('0', '--max-image-tokens', `${all.length * rows}`), all);
    const fewer = await picturesOf('0', '--max-image-tokens', `${all.length * rows - 1}`);
    assert.ok(fewer.length < all.length && fewer.length > 1);
    const { code, stderr } = await one([image], '--max-image-tokens', `${rows - 1}`);
    assert.equal(code, 2, stderr);
    assert.match(stderr.toString(), /takes at least \d+ tokens, limit is \d+/);
  });

  test('a single overview is not preceded by a row break', async () => {
    const textBefore = async (/** @type {string} */ limit) => {
      const { chunks } = await one([image], '--max-tiles', limit);
      const last = chunks.findLastIndex((/** @type {any} */ { type }) => type === 'image');
      return chunks[last - 1].tokens;
    };
    const [all, alone] = [await textBefore('0'), await textBefore('1')];
    const [lineBreak, ...markers] = all.slice(-3);
    assert.deepEqual(alone.slice(-2), markers);
    assert.ok(!alone.includes(lineBreak));
  });

  test('without an encoder or parts, the command says which option is missing', async () => {
    for (const [missing, given] of [
      ['--mmproj', ['--parts', 'none.json']],
      ['--parts', ['--mmproj', join(folder, type.mmproj)]],
    ]) {
      const done = await wick(native, ['media', join(folder, type.text_model), ...given]);
      assert.equal(done.code, 2);
      assert.equal(done.stderr.toString(), `wick: ${missing} is missing ('wick media --help')\n`);
    }
  });

  test('the cost is reported before encoding', async () => {
    const costOf = async (/** @type {string[]} */ ...options) => {
      const { code, stdout, stderr } = await plain([image], '--cost', ...options);
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout.toString());
    };
    const { chunks } = await one([image]);
    const pictures = chunks.filter((/** @type {any} */ chunk) => chunk.type === 'image');
    const [{ n_tokens, macs, n_embd }] = pictures;
    const cost = await costOf();
    assert.equal(cost.type, 'image');
    assert.equal(cost.chunks, pictures.length);
    assert.equal(cost.tokens, pictures.length * n_tokens);
    assert.equal(cost.macs, pictures.length * macs);
    assert.equal(cost.row_bytes, 4 * cost.tokens * n_embd);
    assert.ok(cost.weight_bytes > 1e5 && cost.encode_bytes > 1e4);
    assert.ok(cost.prepare_bytes > cost.prepared_bytes);
    const single = await costOf('--max-tiles', '1');
    assert.equal(single.macs, macs);
    assert.equal(single.encode_bytes, cost.encode_bytes);
  });

  test('a PPM file gives the same result as its pixels', async () => {
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

  test('an image with too few bytes, without pixels or beyond the limits is rejected', async () => {
    for (const size of [{ width: 2000 }, { width: 0, height: 7 }, { width: 999999 }]) {
      const { code, stderr } = await one([{ ...image, ...size }]);
      assert.equal(code, 2, stderr);
      assert.match(stderr.toString(), /^wick: .*\n$/);
    }
  });

  test('a WAV file gives the same result as its samples', async () => {
    const listener = manifest.types.find((/** @type {any} */ t) => t.id === 'qwen3a');
    const samples = floatsOf(join(folder, listener.cases[0].parts[1].audio));
    const wav = (/** @type {number} */ rate) => wavOf(Buffer.from(samples.buffer), rate);
    const path = join(temporary, 'audio.wav');
    const hear = (/** @type {string} */ audio) =>
      media(listener.text_model, listener.mmproj, [{ audio }]);
    writeFileSync(path, wav(16000));
    const raw = await hear(listener.cases[0].parts[1].audio);
    assert.deepEqual((await hear(path)).rows, raw.rows);
    writeFileSync(path, wav(44100));
    const { code, stderr } = await hear(path);
    assert.equal(code, 2);
    assert.match(stderr.toString(), /rate is not 16 kHz/);
  });

  test('a file of 256 MiB is rejected because of its size', async () => {
    const size = 2 ** 28;
    for (const kind of ['image', 'audio']) {
      const path = join(temporary, `large.${kind}`);
      writeFileSync(path, 'P6 9000 9000 255\n');
      truncateSync(path, size); // a sparse file
      const { code, stderr } = await one([{ [kind]: path }]);
      assert.equal(code, 2);
      assert.match(stderr.toString(), new RegExp(`has ${size} bytes, limit is ${size - 1}\\n$`));
      rmSync(path);
    }
  });

  test('inspect plans the memory of the encoders, with a model or with the mmproj file alone', async () => {
    const [model, mmproj] = [type.text_model, type.mmproj].map((name) => join(folder, name));
    /** @param {string[]} args */
    const inspect = async (...args) => {
      const { code, stdout, stderr } = await wick(native, ['inspect', ...args]);
      assert.equal(code, 0, stderr);
      return stdout.toString();
    };
    const both = JSON.parse(await inspect(model, '--mmproj', mmproj, '--json')).info;
    const alone = JSON.parse(await inspect(mmproj, '--json')).info;
    const { weights_bytes, prepare_bytes, encode_bytes, cache_bytes, total_bytes } =
      both.media_plan;
    assert.equal(total_bytes, weights_bytes + cache_bytes + Math.max(prepare_bytes, encode_bytes));
    assert.equal(alone.media_plan.weights_bytes, weights_bytes);
    assert.ok(both.memory.bytes_peak < weights_bytes, 'no weights were read');
    assert.equal(JSON.parse(await inspect(model, '--json')).info.media_plan, undefined);
    const shown = await inspect(mmproj);
    assert.match(shown, /memory plan of the encoders, for the largest input\n {2}weights +\d/);
    const { code, stderr } = await wick(native, ['inspect', model, '--mmproj', model]);
    assert.equal(code, 3);
    assert.match(stderr.toString(), /general\.architecture is '\w+', not 'clip'/);
  });

  test('different images and encoders have different keys', async () => {
    const other = manifest.types[0].quantised[0];
    const tall = type.cases[1].parts[1];
    const keyOf = (/** @type {any} */ done) =>
      done.chunks.find((/** @type {any} */ chunk) => chunk.key).key;
    const limited = (/** @type {string[]} */ ...options) =>
      media(type.text_model, type.mmproj, [image], options);
    const keys = [
      keyOf(await one([image])),
      keyOf(await limited('--max-tiles', '40')),
      keyOf(await limited('--max-image-tokens', '40000')),
      keyOf(await limited('--like-llama-cpp')),
      keyOf(await one([tall])),
      keyOf(await media(type.text_model, other.mmproj, [image])),
    ];
    assert.equal(new Set(keys).size, keys.length);
    assert.equal(keyOf(await one([image])), keys[0]);
  });
});
