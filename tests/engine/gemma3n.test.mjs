// Gemma 3n has several streams per token: if a projection gives rows of zeros, they have no length to scale by.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { native, temporaryFolder, wick } from '../support/cli.mjs';
import { readPieces, writePieces } from '../support/gguf_pieces.mjs';
import { locate } from '../support/locate.mjs';

const shared = locate('shared');
const temporary = temporaryFolder();
const F32 = 0;

describe('projections of zeros', { skip: shared.skip }, () => {
  for (const name of ['altup_proj.weight', 'altup_unembd_proj.weight']) {
    test(`${name}: rows of zeros stay zero`, async () => {
      const model = join(shared.path, 'vectors/reference-more/models/gemma3n.gguf');
      const pieces = readPieces(model);
      const tensor = pieces.tensors.get(name);
      assert.ok(tensor?.type === F32, name);
      const bytes = 4 * tensor.dims.reduce((product, dim) => product * dim, 1);
      pieces.data.fill(0, tensor.offset, tensor.offset + bytes);
      const path = join(temporary, `${name}.gguf`);
      writeFileSync(path, writePieces(pieces));
      const logitsOf = async (/** @type {string} */ file) => {
        const args = ['logits', file, '--tokens', '5,12,19', '--out', '-'];
        const { code, stdout, stderr } = await wick(native, args);
        assert.equal(code, 0, stderr);
        return new Float32Array(new Uint8Array(stdout).buffer);
      };
      const found = await logitsOf(path);
      assert.ok(found.every(Number.isFinite));
      assert.notDeepEqual(found, await logitsOf(model));
    });
  }
});
