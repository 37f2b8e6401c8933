// Experts with gate and up in one tensor, as in newer files, give the same bits as with two tensors.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { native, plainHosts, temporaryFolder, wick } from '../support/cli.mjs';
import { addTensor, readPieces, tensorValues, writePieces } from '../support/gguf_pieces.mjs';
import { locate } from '../support/locate.mjs';

const shared = locate('shared');
const temporary = temporaryFolder();

/** Makes a file with the gate's rows before the up rows, expert by expert. @param {string} path @returns {Buffer} the file */
function fuse(path) {
  const pieces = readPieces(path);
  for (const [name, { dims }] of [...pieces.tensors]) {
    if (!name.endsWith('ffn_gate_exps.weight')) continue;
    const upName = name.replace('gate', 'up');
    const gate = tensorValues(pieces, name);
    const up = tensorValues(pieces, upName);
    assert.ok(gate !== undefined && up !== undefined);
    const size = dims[0] * dims[1];
    const fused = new Float32Array(2 * gate.length);
    for (let expert = 0; expert < dims[2]; expert++) {
      const at = expert * size;
      fused.set(gate.subarray(at, at + size), 2 * at);
      fused.set(up.subarray(at, at + size), 2 * at + size);
    }
    pieces.tensors.delete(name);
    pieces.tensors.delete(upName);
    addTensor(pieces, name.replace('gate', 'gate_up'), [dims[0], 2 * dims[1], dims[2]], fused);
  }
  return writePieces(pieces);
}

describe('experts with gate and up in one tensor', { skip: shared.skip }, () => {
  for (const id of ['qwen3moe', 'qwen2moe', 'llama-moe']) {
    for (const host of [native, plainHosts[0]]) {
      test(`${id}, ${host.name}`, { skip: host.skip }, async () => {
        const path = join(shared.path, 'vectors', 'reference', 'models', `${id}.gguf`);
        const fused = join(temporary, `${id}-fused.gguf`);
        writeFileSync(fused, fuse(path));
        const tokens = Array.from({ length: 30 }, (_, i) => 6 + ((i * 37) % 250)).join(',');
        const logitsOf = async (/** @type {string} */ model) => {
          const args = ['logits', model, '--tokens', tokens, '--out', '-'];
          const { code, stdout, stderr } = await wick(host, args, { folders: [temporary] });
          assert.equal(code, 0, stderr);
          return stdout;
        };
        assert.deepEqual(await logitsOf(fused), await logitsOf(path));
      });
    }
  }
});
