// The small WASI program: for every reference file, it gives the same results as wick-full.wasm or fails before weights are
// read, with an error that names wick-full.wasm. The same applies to KV types, adapters and commands.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, test } from 'node:test';
import { native, plainHosts, smallHosts, temporaryFolder, wick } from '../support/cli.mjs';
import { pair, types, u32 } from '../support/gguf_bytes.mjs';
import { readPieces, writePieces } from '../support/gguf_pieces.mjs';
import { locate } from '../support/locate.mjs';

const shared = locate('shared');
const vectors = join(shared.path, 'vectors');
const temporary = temporaryFolder();
const [full] = plainHosts;
const [small] = smallHosts;
const relaxed = smallHosts.find(({ program }) => program.includes('relaxed')) ?? assert.fail();
const prompt = ['-p', 'Once upon a time', '-n', '6'];
const elsewhere = /^wick: .* is not in this program; wick-full\.wasm has all features/;
const llama = join(vectors, 'reference/models/llama.gguf');

/** @param {import('../support/cli.mjs').Host} host @param {string[]} args @param {Uint8Array} [input] */
async function said(host, args, input) {
  const options = { folders: [temporary], ...(input && { input }) };
  const { code, stdout, stderr } = await wick(host, args, options);
  return { code, text: stdout.toString('latin1'), words: stderr.trim() };
}

/** @param {string[]} args @param {number} code @param {RegExp} words @param {Uint8Array} [input] */
async function assertRefused(args, code, words, input) {
  const found = await said(small, args, input);
  assert.match(found.words, words);
  assert.equal(found.words.split('\n').length, 1);
  assert.deepEqual([found.code, found.text], [code, '']);
}

/** @param {string[]} files @param {(file: string) => Promise<void>} visit runs concurrently */
async function visitAll(files, visit) {
  const left = [...files];
  const visitSome = async () => {
    for (let file = left.shift(); file; file = left.shift()) await visit(file);
  };
  await Promise.all(Array.from({ length: 4 }, visitSome));
}

describe('models', { skip: shared.skip }, () => {
  test('each reference file runs as in wick-full.wasm, or is rejected with the reason', async () => {
    const folders = ['reference', 'reference-more'].map((set) => join(vectors, set, 'models'));
    const files = folders.flatMap((folder) =>
      readdirSync(folder)
        .filter((name) => name.endsWith('.gguf'))
        .map((name) => join(folder, name)),
    );
    const counts = { runs: 0, refused: 0 };
    await visitAll(files, async (file) => {
      const here = await said(small, ['run', file, ...prompt]);
      const there = await said(full, ['run', file, ...prompt]);
      assert.doesNotMatch(there.words, /not in this program/, basename(file));
      if (elsewhere.test(here.words)) {
        assert.deepEqual([here.code, here.text], [3, ''], basename(file));
        counts.refused++;
      } else {
        assert.deepEqual(here, there, basename(file));
        counts.runs++;
      }
    });
    assert.ok(counts.runs > 45 && counts.refused > 70, JSON.stringify(counts));
  });

  /** @type {[name: string, words: RegExp][]} */
  const refusals = [
    ['qwen35', /the architecture 'qwen35' \(general\.architecture\) is not.*at byte \d+\)$/],
    ['llama-moe', /support for 'llama\.expert_count' is not in/],
    ['llama-256-IQ4_NL', /the type IQ4_NL \(tensor 'token_embd\.weight'\) is not in/],
  ];
  for (const [name, words] of refusals) {
    test(`${name} is rejected before its weights are read`, async () => {
      const bytes = readFileSync(join(vectors, `reference/models/${name}.gguf`));
      // at least as many bytes as the directories of these files
      const directory = bytes.subarray(0, Math.min(bytes.length, 65_536));
      await assertRefused(['run', '-', ...prompt], 3, words, directory);
      await assertRefused(['run', '-', ...prompt], 3, elsewhere, directory);
    });
  }

  test('supported vocabularies can be used from models that it cannot run', async () => {
    const file = join(vectors, 'reference/models/qwen35.gguf');
    const words = ['tokenize', file, '-p', 'Hello, wörld! 你好'];
    const here = await said(small, words);
    assert.match(here.text, /^\d+( \d+)+\n$/);
    assert.deepEqual(here, await said(full, words));
    const bert = join(vectors, 'vocab/ggml-vocab-bert-bge.gguf');
    await assertRefused(['tokenize', bert, '-p', 'a'], 3, /the tokenizer 'bert' \(tokenizer\.gg/);
  });

  test('an unknown architecture is not reported as supported elsewhere', async () => {
    const bytes = readFileSync(llama);
    const at = bytes.indexOf('llama', bytes.indexOf('general.architecture'));
    const file = join(temporary, 'other.gguf');
    writeFileSync(file, bytes.fill('other', at, at + 5));
    await assertRefused(['run', file, ...prompt], 3, /'other'.*has all features/);
    const there = await said(full, ['run', file, ...prompt]);
    assert.match(
      there.words,
      /the architecture 'other' \(general\.architecture\) is not supported/,
    );
  });

  test('keys of rare layers are rejected only for values that use them', async () => {
    const bool = 7;
    const file = join(temporary, 'keys.gguf');
    /** @param {[name: string, type: number, value: Buffer][]} keys */
    const write = (...keys) => {
      const pieces = readPieces(llama);
      for (const [name, type, value] of keys) pieces.keys.set(name, pair(name, type, value));
      writeFileSync(file, writePieces(pieces));
    };
    write(
      ['llama.expert_count', types.u32, u32(0)],
      ['llama.attention.causal', bool, Buffer.from([1])],
    );
    const plain = await said(small, ['run', llama, ...prompt]);
    assert.equal(plain.code, 0, plain.words);
    assert.deepEqual(await said(small, ['run', file, ...prompt]), plain);
    write(['llama.attention.causal', bool, Buffer.from([0])]);
    await assertRefused(['run', file, ...prompt], 3, /support for 'llama\.attention\.causal' is/);
  });
});

describe('adapters', { skip: shared.skip }, () => {
  const adapter = join(vectors, 'reference-more/lora/llama.qv.gguf');

  test('adapters of common types change the output as in wick-full.wasm', async () => {
    const args = ['run', llama, '--lora', adapter, ...prompt];
    const here = await said(small, args);
    assert.equal(here.code, 0, here.words);
    assert.deepEqual(here, await said(full, args));
    assert.notDeepEqual(here.text, (await said(small, ['run', llama, ...prompt])).text);
  });

  test('adapters of other types are rejected', async () => {
    const IQ4_NL = 20;
    const pieces = readPieces(adapter);
    const [[name, { entry }]] = pieces.tensors;
    entry.writeUInt32LE(IQ4_NL, entry.length - 12);
    const file = join(temporary, 'adapter.gguf');
    writeFileSync(file, writePieces(pieces));
    const words = new RegExp(`the type IQ4_NL \\(tensor '${name}'\\) is not in this program`);
    await assertRefused(['run', llama, '--lora', file, ...prompt], 3, words);
  });
});

describe('settings', { skip: shared.skip }, () => {
  for (const kv of ['q8', 'q4', 'f16:q8', 'q4:f32']) {
    test(`--kv ${kv} is rejected`, () =>
      assertRefused(['run', llama, '--kv', kv, ...prompt], 3, /the KV type q[48] is not in this/));
  }
});

test('text of any size passes through the heap', { skip: shared.skip }, async () => {
  const vocabulary = join(vectors, 'vocab/ggml-vocab-llama-bpe.gguf');
  for (const megabytes of [0.1, 3]) {
    const text = Buffer.alloc(megabytes * 1e6, 'Once upon a time there was a fox.\n');
    const here = await said(small, ['tokenize', vocabulary], text);
    assert.equal(here.code, 0, here.words);
    assert.ok(here.text.length > text.length / 2, `${here.text.length}`);
    assert.deepEqual(here, await said(native, ['tokenize', vocabulary], text));
  }
});

describe('commands', () => {
  const further = ['inspect', 'logits', 'bench', 'perplexity', 'quantize', 'embed-component'];

  test('other commands and their help are rejected', async () => {
    for (const name of [...further, 'constrain', 'media', 'synth']) {
      const words = new RegExp(`^wick: the command '${name}' is in wick-full\\.wasm$`);
      await assertRefused([name, 'x'], 2, words);
      await assertRefused(['help', name], 2, words);
    }
  });

  test('help lists the available commands and the program that has more', async () => {
    const { code, text } = await said(small, ['--help']);
    assert.equal(code, 0);
    const listed = [...text.matchAll(/^ {2}([a-z-]+) +\w/gm)].map(([, name]) => name);
    const usual = ['run', 'chat', 'embed', 'rerank', 'tokenize', 'detokenize', 'template'];
    assert.deepEqual(listed, usual);
    const others = [...further, 'constrain', 'media', 'synth'].join(' ');
    assert.ok(text.includes(`\nwick-full.wasm has more commands: ${others}.\n`), text);
    const whole = (await said(full, ['--help'])).text;
    const all = [...whole.matchAll(/^ {2}([a-z-]+) +\w/gm)].map(([, name]) => name);
    assert.deepEqual(all, [...usual, ...others.split(' ')]);
    assert.doesNotMatch(whole, /\.wasm/);
    for (const name of usual) {
      assert.deepEqual(await said(small, [name, '--help']), await said(full, [name, '--help']));
    }
  });

  test('the program with relaxed SIMD names its full version', { skip: relaxed.skip }, async () => {
    const { words } = await said(relaxed, ['bench', 'x']);
    assert.equal(words, "wick: the command 'bench' is in wick-full-relaxed.wasm");
  });
});
