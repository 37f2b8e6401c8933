// `wick quantize`: it chooses the same types as llama.cpp, its quantization errors are not larger, and invalid input is rejected.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { native, plainHosts, temporaryFolder, wick } from '../support/cli.mjs';
import { isFull } from '../support/level.mjs';
import { libraries, noLlama } from '../support/llama.mjs';
import { root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';
import { weightsFile } from '../support/weights_file.mjs';

const folder = temporaryFolder();
const at = (/** @type {string} */ name) => join(folder, name);

/** @param {string[]} args @param {Parameters<typeof wick>[2]} [options] */
async function quantize(args, options) {
  const { code, stdout, stderr } = await wick(native, ['quantize', ...args], options);
  assert.equal(code, 0, stderr);
  return { stdout, stderr };
}

/** @param {string} file */
async function tensorsOf(file) {
  const { stdout } = await wick(native, ['inspect', file, '--json']);
  /** @type {{name: string, type: string, offset_bytes: number, size_bytes: number}[]} */
  const tensors = JSON.parse(stdout.toString()).tensors;
  return new Map(tensors.map((tensor) => [tensor.name, tensor]));
}

/** Normally distributed numbers; every 50th is ten times as large, like the outliers in real weights. */
class Weights {
  #state = 1;
  uniform() {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return (this.#state + 0.5) / 2 ** 32;
  }
  /** @param {number} count */
  take(count) {
    const values = new Float32Array(count);
    for (let i = 0; i < count; i++) {
      const radius = Math.sqrt(-2 * Math.log(this.uniform()));
      const size = i % 50 === 49 ? 0.2 : 0.02;
      values[i] = size * radius * Math.cos(2 * Math.PI * this.uniform()) + 0.001;
    }
    return values;
  }
}

/**
 * Writes a llama model with ten layers. Its feed-forward rows are whole blocks of 256; its hidden rows may
 * or may not be.
 * @param {number} hidden
 * @param {{experts?: number, tied?: boolean, fused?: boolean}} [shape]
 */
function llama(hidden, { experts = 0, tied = false, fused = false } = {}) {
  const random = new Weights();
  const ffn = 256;
  /** @type {Parameters<typeof weightsFile>[1]} */
  const tensors = [];
  const add = (/** @type {string} */ name, /** @type {number[]} */ ...dims) =>
    tensors.push({
      name,
      type: dims.length > 1 ? 'F16' : 'F32',
      dims,
      values: random.take(dims.reduce((a, b) => a * b)),
    });
  add('token_embd.weight', hidden, 64);
  if (!tied) add('output.weight', hidden, 64);
  add('output_norm.weight', hidden);
  for (let layer = 0; layer < 10; layer++) {
    const part = (/** @type {string} */ name, /** @type {number[]} */ ...dims) =>
      add(`blk.${layer}.${name}.weight`, ...dims);
    part('attn_norm', hidden);
    if (fused) {
      part('attn_qkv', hidden, 3 * hidden);
    } else {
      for (const name of ['attn_q', 'attn_k', 'attn_v']) part(name, hidden, hidden);
    }
    part('attn_output', hidden, hidden);
    part('ffn_norm', hidden);
    if (experts > 0) {
      part('ffn_gate_inp', hidden, experts);
      for (const name of ['ffn_gate_exps', 'ffn_up_exps']) part(name, hidden, ffn, experts);
      part('ffn_down_exps', ffn, hidden, experts);
    } else {
      for (const name of ['ffn_gate', 'ffn_up']) part(name, hidden, ffn);
      part('ffn_down', ffn, hidden);
    }
  }
  const metadata = {
    'general.architecture': 'llama',
    'general.name': 'for quantising',
    'llama.block_count': 10,
    'llama.context_length': 64,
    'llama.embedding_length': hidden,
    'llama.feed_forward_length': ffn,
    'llama.attention.head_count': 2,
    'llama.attention.layer_norm_rms_epsilon': Float32Array.of(1e-5),
    'llama.vocab_size': 64,
    ...(experts > 0 && { 'llama.expert_count': experts, 'llama.expert_used_count': 2 }),
  };
  return weightsFile({ ...metadata, 'tokenizer.ggml.model': 'none' }, tensors);
}

/** @type {Map<string, Promise<Map<string, Float32Array>>>} by file, because several tests request the same source concurrently */
const floats = new Map();

/** Returns the weights of a file as floats, by tensor. Each file is read once. @param {string} file */
function floatsOf(file) {
  const found = floats.get(file) ?? readFloats(file);
  floats.set(file, found);
  return found;
}

/** @param {string} file */
async function readFloats(file) {
  const plain = `${file}.f32`;
  await quantize([file, plain, 'f32', '--requantize', '--quiet']);
  const bytes = readFileSync(plain);
  const tensors = await tensorsOf(plain);
  return new Map(
    [...tensors].map(([name, { offset_bytes, size_bytes }]) => {
      const values = new Float32Array(size_bytes / 4);
      for (let i = 0; i < values.length; i++) values[i] = bytes.readFloatLE(offset_bytes + 4 * i);
      return [name, values];
    }),
  );
}

/** @param {Float32Array} a @param {Float32Array} b */
const squaredError = (a, b) => a.reduce((sum, value, i) => sum + (value - b[i]) ** 2, 0);

describe('compared with llama.cpp', { skip: noLlama, concurrency: 2 }, () => {
  const shapes = {
    plain: () => llama(256),
    tied: () => llama(256, { tied: true }),
    'rows of 96': () => llama(96),
    'a fused projection': () => llama(256, { fused: true }),
    '8 experts': () => llama(256, { experts: 8 }),
    '4 experts': () => llama(256, { experts: 4 }),
  };
  const fileTypes = { q8_0: 7, q4_0: 2, q4_k_m: 15, q4_k_s: 14, q5_k_m: 17, q6_k: 18, q5_0: 8 };
  for (const [shape, make] of Object.entries(shapes)) {
    const source = at(`${shape.replaceAll(' ', '-')}.gguf`);
    const all = Object.entries(fileTypes);
    const main = ['tied', 'a fused projection'].includes(shape) ? ['q4_k_m'] : [];
    const types = all.filter(([type]) =>
      isFull ? shape === 'plain' || type.endsWith('_m') : main.includes(type),
    );
    for (const [type, id] of types) {
      test(`${shape}, ${type}: types are equal, and no error is larger`, async () => {
        if (!existsSync(source)) writeFileSync(source, make());
        const [ours, theirs] = [`${source}.${type}.ours`, `${source}.${type}.theirs`];
        await quantize([source, ours, type, '--quiet']);
        const script = join(root, 'tests/support/llama_quantize.py');
        const reports = await run('python3', [script, libraries, source, theirs, String(id)]);
        assert.equal(reports.code, 0, reports.stderr);
        const [mine, yours] = [await tensorsOf(ours), await tensorsOf(theirs)];
        assert.deepEqual([...mine.keys()].sort(), [...yours.keys()].sort());
        for (const [name, { type }] of mine) assert.equal(type, yours.get(name)?.type, name);
        const exact = await floatsOf(source);
        const [a, b] = [await floatsOf(ours), await floatsOf(theirs)];
        /** @type {Record<string, [number, number]>} */
        const errors = {};
        for (const [name, values] of exact) {
          const kind = mine.get(name)?.type ?? '';
          errors[kind] ??= [0, 0];
          const sums = errors[kind];
          sums[0] += squaredError(values, a.get(name) ?? values);
          sums[1] += squaredError(values, b.get(name) ?? values);
        }
        let compared = 0;
        for (const [kind, [we, they]] of Object.entries(errors)) {
          if (kind === 'F32' || kind === 'F16') continue;
          assert.ok(we > 0 && we <= they, `${kind}: ${we} against ${they}`);
          compared++;
        }
        assert.ok(compared > 0);
      });
    }
  }
});

describe('the file', { concurrency: 2 }, () => {
  const source = at('source.gguf');
  const makeSource = () => existsSync(source) || writeFileSync(source, llama(256));

  test('threads, pipes and hosts do not change the file', async () => {
    makeSource();
    await quantize([source, at('one.gguf'), 'q4_k_m']);
    const bytes = readFileSync(at('one.gguf'));
    await quantize([source, at('four.gguf'), 'q4_k_m', '--threads', '4']);
    assert.deepEqual(readFileSync(at('four.gguf')), bytes);
    const piped = await quantize(['-', '-', 'q4_k_m'], { input: readFileSync(source) });
    assert.deepEqual(piped.stdout, bytes);
    for (const host of plainHosts.filter((h) => !h.skip)) {
      const out = at(`${host.runtime}.gguf`);
      const args = ['quantize', source, out, 'Q4_K_M', '--quiet'];
      const { code, stderr } = await wick(host, args, { folders: [folder] });
      assert.equal(code, 0, `${host.name}: ${stderr}`);
      assert.deepEqual(readFileSync(out), bytes, host.name);
    }
  });

  test('metadata is copied except for the type', async () => {
    makeSource();
    await quantize([source, at('metadata.gguf'), 'q6_k']);
    const { stdout } = await wick(native, ['inspect', at('metadata.gguf'), '--json']);
    /** @type {{key: string, value: unknown}[]} */
    const metadata = JSON.parse(stdout.toString()).metadata;
    const values = Object.fromEntries(metadata.map(({ key, value }) => [key, value]));
    assert.equal(values['general.name'], 'for quantising');
    assert.equal(values['general.file_type'], 18);
    assert.equal(values['general.quantization_version'], 2);
  });

  test('each tensor and the total are reported, unless --quiet is given', async () => {
    makeSource();
    const { stderr } = await quantize([source, at('reports.gguf'), 'q4_0']);
    assert.match(stderr, /\[ +\d+\/ +93\] blk\.3\.ffn_down\.weight +F16 -> Q4_0 +0\.04 MB/);
    assert.match(stderr, /weights: [\d.]+ MB -> [\d.]+ MB/);
    assert.equal((await quantize([source, at('reports.gguf'), 'q4_0', '--quiet'])).stderr, '');
  });

  test('a quantized model generates text', async () => {
    const model = at('tiny-f16.gguf');
    await wick(native, ['synth', 'tiny', 'f16', model]);
    for (const { type } of [{ type: 'q8_0' }, { type: 'q5_k_m' }, { type: 'bf16' }]) {
      await quantize([model, at(`tiny-${type}.gguf`), type]);
      const args = ['run', at(`tiny-${type}.gguf`), '-p', 'some words', '-n', '8'];
      const { code, stdout, stderr } = await wick(native, args);
      assert.equal(code, 0, stderr);
      assert.ok(stdout.length > 0);
    }
  });
});

describe('rejected input', () => {
  const source = at('refused.gguf');
  const tensor = (/** @type {number} */ value) => ({
    name: 'blk.0.ffn_up.weight',
    type: /** @type {const} */ ('F16'),
    dims: [32, 2],
    values: new Float32Array(64).fill(0.5).fill(value, 40, 41),
  });
  const file = (/** @type {number} */ value, metadata = {}) =>
    weightsFile({ 'general.architecture': 'llama', ...metadata }, [tensor(value)]);
  before(() => writeFileSync(source, file(0.5)));

  /** @param {string[]} args @param {number} code @param {RegExp} says */
  async function assertRefused(args, code, says) {
    const result = await wick(native, ['quantize', ...args]);
    assert.equal(result.code, code, result.stderr);
    assert.match(result.stderr, says);
    assert.equal(result.stderr.trim().split('\n').length, 1);
  }

  test('an unknown or missing type is rejected', async () => {
    await assertRefused([source, at('x'), 'q9'], 2, /unknown type 'q9'/);
    await assertRefused([source, at('x')], 2, /TYPE is missing/);
  });

  test('a file cannot overwrite itself, even under another name', async () => {
    const bytes = readFileSync(source);
    symlinkSync(source, at('link.gguf'));
    await assertRefused([source, source, 'q8_0'], 2, /is both IN and OUT/);
    await assertRefused([source, at('link.gguf'), 'q8_0'], 2, /is both IN and OUT/);
    assert.deepEqual(readFileSync(source), bytes);
  });

  test('a missing file and a file that is not a model are rejected', async () => {
    await assertRefused([at('nowhere'), at('x'), 'q8_0'], 3, /cannot open .*nowhere/);
    writeFileSync(at('text'), 'this is a text and no model');
    await assertRefused([at('text'), at('x'), 'q8_0'], 3, /GGUF/);
  });

  test('a weight that is nonfinite or too large is rejected with its position', async () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
      writeFileSync(at('wild.gguf'), file(value));
      const says = /value 40 of tensor 'blk\.0\.ffn_up\.weight' is not finite/;
      await assertRefused([at('wild.gguf'), at('x'), 'q8_0'], 3, says);
    }
    assert.ok(!readdirSync(folder).includes('x'), 'an incomplete file was left');
  });

  test('a file truncated anywhere is rejected', async () => {
    const bytes = file(0.5);
    for (const length of [3, 40, bytes.length - 130, bytes.length - 1]) {
      writeFileSync(at('cut.gguf'), bytes.subarray(0, length));
      await assertRefused([at('cut.gguf'), at('x'), 'q8_0'], 3, /ends|truncated/);
      assert.ok(!existsSync(at('x')));
    }
  });

  test('an already quantized file is rejected unless allowed', async () => {
    await quantize([source, at('q8.gguf'), 'q8_0']);
    const args = [at('q8.gguf'), at('again.gguf'), 'q4_0'];
    await assertRefused(args, 3, /'blk\.0\.ffn_up\.weight' is already quantised \(Q8_0\)/);
    await quantize([...args, '--requantize']);
    assert.equal((await tensorsOf(at('again.gguf'))).get('blk.0.ffn_up.weight')?.type, 'Q4_0');
  });

  test('a part of a split model is rejected', async () => {
    writeFileSync(at('part.gguf'), file(0.5, { 'split.count': 3 }));
    await assertRefused([at('part.gguf'), at('x'), 'q8_0'], 3, /split into 3 files/);
  });
});
