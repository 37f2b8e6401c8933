// Public bug reports about GGUF keys that abort other loaders: each file either runs or is rejected with a message.
// tests/outside/README.md lists them.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { native, temporaryFolder, wick } from '../support/cli.mjs';
import { pair, string, types, u32, u64 } from '../support/gguf_bytes.mjs';
import { readPieces, writePieces } from '../support/gguf_pieces.mjs';
import { root } from '../support/locate.mjs';

const model = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
const temporary = temporaryFolder();
const BOOL = 7;
const I32 = 5;

/** @param {string} key @param {Buffer[]} items @param {number} [type] */
const list = (key, items, type = types.string) =>
  pair(key, types.array, u32(type), u64(items.length), ...items);

const { keys } = readPieces(model);
/** Returns the strings in a key with a list of strings. @param {string} key */
function texts(key) {
  const value = /** @type {Buffer} */ (keys.get(key)).subarray(8 + Buffer.byteLength(key) + 4 + 4);
  const found = [];
  for (let at = 8; at < value.length; ) {
    const end = at + 8 + Number(value.readBigUInt64LE(at));
    found.push(value.toString('utf8', at + 8, end));
    at = end;
  }
  return found;
}

const [tokens, merges, kinds] = ['tokens', 'merges', 'token_type'].map(
  (name) => `tokenizer.ggml.${name}`,
);
const [bos, addBos, eos] = ['bos_token_id', 'add_bos_token', 'eos_token_id'].map(
  (name) => `tokenizer.ggml.${name}`,
);
const twice = texts(tokens).map((text, id, all) => string(id === 500 ? all[501] : text));
const i32s = (/** @type {number} */ count) => Array.from({ length: count }, () => u32(1));

/** The keys that a report changes, and the error, if the file is rejected. @type {[report: string, Record<string, Buffer | undefined>, RegExp?][]} */
const cases = [
  ['ggml-org/llama.cpp#24884', { '': pair('', types.u32, u32(1)) }, /is 0 bytes long/],
  ['ggml-org/llama.cpp#24885: a duplicate token', { [tokens]: list(tokens, twice) }],
  [
    'ggml-org/llama.cpp#24885: a BOS token that is added but missing',
    { [bos]: undefined, [addBos]: pair(addBos, BOOL, Buffer.of(1)) },
  ],
  ['EricLBuehler/mistral.rs#2225', { [eos]: pair(eos, types.u32, u32(0xffff_ffff)) }],
  [
    'EricLBuehler/mistral.rs#2215: too few types',
    { [kinds]: list(kinds, i32s(3), I32) },
    /token_type has 3 items for 1024 tokens/,
  ],
  ['EricLBuehler/mistral.rs#2215: types of u32', { [kinds]: list(kinds, i32s(1024), types.u32) }],
  [
    'EricLBuehler/mistral.rs#2215: types that are strings',
    { [kinds]: list(kinds, twice) },
    /token_type.* is of type/,
  ],
  [
    'EricLBuehler/mistral.rs#2215: merges with only one part',
    { [merges]: list(merges, [string('ab'), string(''), string(' ')]) },
  ],
  ['pie-project/pie#364', { 'llama.vocab_size': undefined }],
  [
    'ollama/ollama#9535',
    { 'general.name': list('general.name', [string('a')]) },
    /'general.name' is of type array/,
  ],
];

for (const [report, changes, says] of cases) {
  test(report, async () => {
    const pieces = readPieces(model);
    for (const [key, bytes] of Object.entries(changes)) {
      if (bytes) pieces.keys.set(key, bytes);
      else pieces.keys.delete(key);
    }
    const path = join(temporary, 'changed.gguf');
    writeFileSync(path, writePieces(pieces));
    const args = ['run', path, '-p', 'Once upon a', '-n', '3', '--temp', '0'];
    const { code, signal, stderr } = await wick(native, args);
    assert.equal(signal, null);
    assert.equal(code, says ? 3 : 0, stderr.toString());
    if (says) assert.match(stderr.toString(), says);
  });
}
