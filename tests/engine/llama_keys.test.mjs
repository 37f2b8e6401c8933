// Adds keys that no reference model has, and compares the results with llama.cpp's library: Wick must
// either reject the file or compute llama.cpp's logits. `make soak` tries all keys, other runs a twentieth.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { native, temporaryFolder, wick } from '../support/cli.mjs';
import { f32, pair, string, types, u32 } from '../support/gguf_bytes.mjs';
import { readPieces, writePieces } from '../support/gguf_pieces.mjs';
import { Llama, noLlama, readFloats } from '../support/llama.mjs';
import { locate } from '../support/locate.mjs';
import { randomFrom } from '../support/random_numbers.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

const TOKENS = 14;
const bool = 7;
const i32 = 5;
const shared = locate('shared');

/** @param {number[]} numbers */
const floats = (numbers) => numbers.map((number) => [types.f32, f32(number)]);
/** @param {number[]} numbers */
const counts = (numbers) => numbers.map((number) => [types.u32, u32(number)]);
/** @param {string[]} texts */
const texts = (texts) => texts.map((text) => [types.string, string(text)]);
const flags = [false, true].map((flag) => [bool, Buffer.from([Number(flag)])]);
/** @param {number[]} numbers */
const list = (numbers) => [
  types.array,
  Buffer.concat([u32(i32), u32(numbers.length), u32(0), ...numbers.map(u32)]),
];

/** Keys without the architecture's name, and values for them. @type {Record<string, any[][]>} */
const keys = {
  'attention.sliding_window': counts([0, 2, 4, 8]),
  'attention.sliding_window_pattern': counts([1, 2, 3]),
  'attention.scale': floats([0, 0.1, 0.5]),
  'attention.clamp_kqv': floats([0.5, 2]),
  'attention.max_alibi_bias': floats([4, 8]),
  'attention.layer_norm_epsilon': floats([1e-3]),
  'attention.layer_norm_rms_epsilon': floats([1e-3]),
  'attention.temperature_scale': floats([0.1, 0.5]),
  'attention.shared_kv_layers': counts([0, 1]),
  logit_scale: floats([0, 0.5, 2]),
  embedding_scale: floats([0, 2]),
  residual_scale: floats([0, 0.5]),
  attn_logit_softcapping: floats([0, 5, 50]),
  final_logit_softcapping: floats([0, 5, 30]),
  use_parallel_residual: flags,
  'rope.dimension_count': counts([2, 4, 8, 12, 16]),
  'rope.dimension_sections': [list([2, 2, 2, 2]), list([4, 2, 2, 0])],
  'rope.freq_base': floats([100, 1e6]),
  'rope.freq_base_swa': floats([100, 1e6]),
  'rope.scale_linear': floats([2, 4]),
  'rope.scaling.type': texts(['none', 'linear', 'yarn', 'longrope', 'odd']),
  'rope.scaling.factor': floats([0, 0.5, 2, 4]),
  'rope.scaling.original_context_length': counts([8, 64, 128]),
  'rope.scaling.attn_factor': floats([0.5, 2]),
  'rope.scaling.yarn_log_multiplier': floats([0.1, 0.5]),
  'rope.scaling.finetuned': flags,
  expert_weights_scale: floats([0, 0.5, 2.5]),
  expert_weights_norm: flags,
  expert_gating_func: counts([0, 1, 2, 3]),
  expert_used_count: counts([1, 2, 3, 4]),
  expert_group_count: counts([1, 2]),
  expert_group_used_count: counts([1]),
  leading_dense_block_count: counts([0, 1]),
  interleave_moe_layer_step: counts([1, 2]),
  full_attention_interval: counts([1, 2, 4]),
};

/**
 * Intended differences. llama.cpp scales the windowed layers of gpt-oss even if 'rope.scaling.type' is
 * none, and its newer versions add the epsilon of a delta net's unit vectors at a different point.
 */
const knownDifferences = [
  /^gpt-oss rope\.scaling\.type none/,
  /^qwen3(5.*|next.*) attention\.layer_norm_rms_epsilon/,
];

/** llama.cpp looks up GELU in a table of 16-bit numbers and computes delta nets in chunks. */
const tolerances = [
  [/^(gemma|phi2|gpt2|starcoder|bloom|mpt|falcon(-40b)?$|gptneox)/, 0.1],
  [/^qwen3(5|next)/, 2e-3],
  [/./, 5e-4],
];

/** @param {string} folder @returns {any[]} */
function modelsOf(folder) {
  const text = readFileSync(join(folder, 'manifest.json'), 'utf8').replace(/:NaN\b/g, ':null');
  return JSON.parse(text).archs.map((/** @type {any} */ entry) => ({
    ...entry,
    path: join(folder, entry.model),
  }));
}

/** @param {Float32Array} a @param {Float32Array} b */
function distance(a, b) {
  assert.equal(a.length, b.length);
  let most = 0;
  for (let i = 0; i < a.length; i++) {
    const one = Math.abs(a[i] - b[i]);
    if (!(one <= most)) most = one; // also true for NaN
  }
  return most;
}

/** Formats a key's value for messages. @param {any[]} value */
function formatValue([type, bytes]) {
  if (type === types.f32) return Number(bytes.readFloatLE().toPrecision(4));
  if (type === types.u32) return bytes.readUInt32LE();
  return type === types.string ? bytes.toString('utf8', 8) : bytes.toString('hex');
}

describe('keys compared with llama.cpp', { skip: noLlama || shared.skip }, () => {
  const folder = temporaryFolder();
  const llama = new Llama();
  after(() => llama.close());
  const files = ['reference', 'reference-more'].flatMap((name) =>
    shared.skip ? [] : modelsOf(join(shared.path, 'vectors', name)),
  );
  const all = files.flatMap((file) =>
    Object.entries(keys).flatMap(([key, values]) => values.map((value) => ({ file, key, value }))),
  );

  test('each file is rejected or produces the same logits as llama.cpp', {
    timeout: 3_600_000,
  }, async () => {
    const random = randomFrom(soakSeed);
    const count = soakCount(all.length);
    const cases =
      count === all.length ? all : Array.from({ length: count }, () => random.pick(all));
    const [path, ours, theirs] = ['model.gguf', 'ours', 'theirs'].map((name) => join(folder, name));
    let compared = 0;
    /** @type {string[]} */
    const differ = [];
    for (const { file, key, value } of cases) {
      const name = `${file.id} ${key} ${formatValue(value)}`;
      const pieces = readPieces(file.path);
      const whole = `${file.arch}.${key}`;
      pieces.keys.set(whole, pair(whole, value[0], value[1]));
      writeFileSync(path, writePieces(pieces));
      const longest = file.cases.reduce((/** @type {any} */ a, /** @type {any} */ b) =>
        b.tokens.length > a.tokens.length ? b : a,
      );
      const tokens = longest.tokens.slice(0, TOKENS);
      const { code, stderr } = await wick(native, [
        ...['logits', path, '--tokens', tokens.join(','), '--out', ours],
      ]);
      if (code !== 0) {
        assert.match(
          stderr,
          /WICK_E_(FORMAT|UNSUPPORTED|SHAPE)|is an encoder/,
          `${name}: ${stderr}`,
        );
        continue;
      }
      if (!(await llama.logits(path, tokens, theirs))) continue;
      compared++;
      const most = distance(readFloats(ours), readFloats(theirs));
      const allowed = /** @type {number} */ (
        tolerances.find(([which]) => /** @type {RegExp} */ (which).test(file.id))?.[1]
      );
      const isKnown = knownDifferences.some((one) => one.test(name));
      if (!(most <= allowed) && !isKnown) differ.push(`${name}: ${most}`);
    }
    assert.deepEqual(differ, []);
    assert.ok(compared > count / 2, `only ${compared} of ${count} files were compared`);
  });
});
