// Gemma 4 with experts in parallel to its feed-forward layers, like its model with 26 billion weights.
// No reference file has them, so a simple implementation in double precision replaces it. It reproduces llama.cpp's
// logits for the dense reference file, and gives the expected logits for that file with experts added.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { native, plainHosts, relaxedHosts, temporaryFolder, wick } from '../support/cli.mjs';
import { gemma4Logits } from '../support/gemma4_reference.mjs';
import { pair, types, u32 } from '../support/gguf_bytes.mjs';
import { addTensor, readPieces, writePieces } from '../support/gguf_pieces.mjs';
import { locate } from '../support/locate.mjs';
import { randomOf } from '../support/random_bytes.mjs';

const shared = locate('shared');
const reference = join(shared.path, 'vectors', 'reference');
const dense = join(reference, 'models', 'gemma4-dense.gguf');
const temporary = temporaryFolder();
const tolerance = 1e-4; // as in the manifest for architectures with GELU

const EXPERTS = 6;
const USED = 2;
const WIDTH = 32;
const HIDDEN = 32;
const tokens = Array.from({ length: 40 }, (_, i) => 6 + ((i * 37) % 300));

/** @returns {import('../support/gguf_pieces.mjs').Pieces} layer 2 stays dense, layer 1 has gate and up separate */
function withExperts() {
  const pieces = readPieces(dense);
  const random = randomOf(7);
  const set = (/** @type {string} */ name, /** @type {number} */ value) =>
    pieces.keys.set(`gemma4.${name}`, pair(`gemma4.${name}`, types.u32, u32(value)));
  set('expert_count', EXPERTS);
  set('expert_used_count', USED);
  set('expert_feed_forward_length', WIDTH);
  /** @param {string} name @param {number[]} dims @param {number} spread @param {number} [middle] */
  const put = (name, dims, spread, middle = 0) => {
    const count = dims.reduce((a, b) => a * b, 1);
    const value = () => middle + spread * (2 * random() - 1);
    addTensor(pieces, name, dims, Float32Array.from({ length: count }, value));
  };
  for (const layer of [0, 1, 3]) {
    const name = `blk.${layer}.`;
    put(`${name}ffn_gate_inp.weight`, [HIDDEN, EXPERTS], 3);
    put(`${name}ffn_gate_inp.scale`, [HIDDEN], 0.5, 1);
    for (const norm of ['pre_ffw_norm_2', 'post_ffw_norm_1', 'post_ffw_norm_2']) {
      put(`${name}${norm}.weight`, [HIDDEN], 0.5, 1);
    }
    if (layer === 1) {
      put(`${name}ffn_gate_exps.weight`, [HIDDEN, WIDTH, EXPERTS], 0.4);
      put(`${name}ffn_up_exps.weight`, [HIDDEN, WIDTH, EXPERTS], 0.4);
    } else {
      put(`${name}ffn_gate_up_exps.weight`, [HIDDEN, 2 * WIDTH, EXPERTS], 0.4);
    }
    put(`${name}ffn_down_exps.weight`, [WIDTH, HIDDEN, EXPERTS], 0.4);
    if (layer !== 3) put(`${name}ffn_down_exps.scale`, [EXPERTS], 0.5, 1);
  }
  return pieces;
}

let written = 0;

/** @param {import('../support/gguf_pieces.mjs').Pieces} pieces @returns {string} the file's path */
function write(pieces) {
  const path = join(temporary, `gemma4-experts-${written++}.gguf`);
  writeFileSync(path, writePieces(pieces));
  return path;
}

/**
 * @param {import('../support/cli.mjs').Host} host @param {string} path @param {number[]} fed
 * @param {string[]} [options]
 */
async function computeLogits(host, path, fed, options = []) {
  const args = ['logits', path, '--tokens', fed.join(','), '--out', '-', ...options];
  const { code, stdout, stderr } = await wick(host, args, { folders: [temporary] });
  assert.equal(code, 0, stderr);
  return new Float32Array(new Uint8Array(stdout).buffer);
}

/** @param {ArrayLike<number>} found @param {ArrayLike<number>} wanted determines the number of compared values */
function deviation(found, wanted) {
  let largest = 0;
  for (let i = 0; i < wanted.length; i++) {
    const difference = Math.abs(found[i] - wanted[i]);
    if (!(difference <= largest)) largest = difference; // keeps a NaN
  }
  return largest;
}

describe('gemma4 with experts', { skip: shared.skip }, () => {
  test('the implementation in double reproduces the logits of the dense reference file', () => {
    const text = readFileSync(join(reference, 'manifest.json'), 'utf8');
    const { archs } = JSON.parse(text.replace(/:NaN\b/g, ':null'));
    const { cases } = archs.find((/** @type {any} */ { id }) => id === 'gemma4-dense');
    for (const one of cases) {
      const golden = readFileSync(join(reference, one[one.golden].file));
      const wanted = new Float32Array(new Uint8Array(golden).buffer);
      const found = gemma4Logits(readPieces(dense), one.tokens).flat();
      assert.ok(deviation(found, wanted) <= 1e-5, `${one.id}: ${deviation(found, wanted)}`);
    }
  });

  for (const host of [native, plainHosts[0], relaxedHosts[0]]) {
    test(`logits, ${host.name}`, { skip: host.skip }, async () => {
      const pieces = withExperts();
      const wanted = gemma4Logits(pieces, tokens).flat();
      const found = await computeLogits(host, write(pieces), tokens);
      assert.equal(found.length, wanted.length);
      assert.ok(deviation(found, wanted) <= tolerance, `off by ${deviation(found, wanted)}`);
      assert.ok(deviation(gemma4Logits(readPieces(dense), tokens).flat(), wanted) > 1);
    });
  }

  test('a prefix has the same logits as in the whole prompt, and with two threads', async () => {
    const path = write(withExperts());
    const whole = await computeLogits(native, path, tokens);
    const part = await computeLogits(native, path, tokens.slice(0, 19), ['--threads', '2']);
    assert.deepEqual(part, whole.subarray(0, (whole.length / tokens.length) * 19));
  });

  /** @type {[string, RegExp][]} a missing tensor, and the error */
  const needed = [
    ['blk.0.ffn_gate_inp.scale', /'blk\.0\.ffn_gate_inp\.scale' is missing/],
    ['blk.0.ffn_gate_up_exps.weight', /'blk\.0\.ffn_gate_exps\.weight' is missing/],
    ['blk.1.ffn_up_exps.weight', /'blk\.1\.ffn_up_exps\.weight' is missing/],
    ['blk.1.pre_ffw_norm_2.weight', /'blk\.1\.pre_ffw_norm_2\.weight' is missing/],
    ['blk.3.post_ffw_norm_1.weight', /'blk\.3\.post_ffw_norm_1\.weight' is missing/],
    ['blk.3.post_ffw_norm_2.weight', /'blk\.3\.post_ffw_norm_2\.weight' is missing/],
  ];
  for (const [name, says] of needed) {
    test(`${name} is required`, async () => {
      const pieces = withExperts();
      pieces.tensors.delete(name);
      const args = ['logits', write(pieces), '--tokens', '1', '--out', '-'];
      const { code, stderr } = await wick(native, args);
      assert.equal(code, 3);
      assert.match(stderr, says);
    });
  }
});
