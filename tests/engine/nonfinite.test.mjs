// Sets a weight of each reference model to NaN: the pass that uses it fails with an error in the first block that can
// detect it.

import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { native, temporaryFolder, wick } from '../support/cli.mjs';
import { readPieces, writePieces } from '../support/gguf_pieces.mjs';
import { locate } from '../support/locate.mjs';

const shared = locate('shared');
const folders = ['reference', 'reference-more'];
const F32 = 0;
const TOKEN = 7;
const temporary = temporaryFolder();

/** Blocks with a recurrent state check its inputs. @type {Record<string, RegExp>} */
const words = { 'rwkv7.gguf': /the input of the mixes of layer 0 is not finite/ };

test('a token with a nonfinite embedding is an error', { skip: shared.skip }, async () => {
  let count = 0;
  for (const folder of folders.map((name) => join(shared.path, 'vectors', name, 'models'))) {
    for (const file of readdirSync(folder).filter((name) => name.endsWith('.gguf'))) {
      const pieces = readPieces(join(folder, file));
      const embedding = pieces.tensors.get('token_embd.weight');
      if (embedding?.type !== F32) continue;
      const data = Buffer.from(pieces.data);
      data.writeFloatLE(Number.NaN, embedding.offset + 4 * TOKEN * embedding.dims[0]);
      const path = join(temporary, file);
      writeFileSync(path, writePieces({ ...pieces, data }));
      const args = ['logits', path, '--tokens', `5,${TOKEN}`, '--out', '-'];
      const { code, stderr } = await wick(native, args);
      assert.equal(code, 3, `${file}: ${stderr}`);
      assert.match(stderr.toString(), words[file] ?? /not finite|it embeds texts/, file);
      count++;
    }
  }
  assert.ok(count > 50, `${count} files`);
});
