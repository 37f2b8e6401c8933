// Checks the complete output of the `wick` command: tables against JSON, files against the output of a
// different command for the same model, and messages for allocation failures.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { lab, native, temporaryFolder, wick } from '../support/cli.mjs';
import { pair, string, u32, u64 } from '../support/gguf_bytes.mjs';
import { built, locate, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';
import { weightsFile } from '../support/weights_file.mjs';

const shared = locate('shared');
const vectors = join(shared.path, 'vectors');
const stories = join(vectors, 'stories260K/stories260K-f32.gguf');
const temporary = temporaryFolder();
const at = (/** @type {string} */ name) => join(temporary, name);
const builtIn = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
const shim = built('test/host_shim.so');

/**
 * @param {string[]} args @param {Parameters<typeof wick>[2]} [options]
 * @returns {Promise<Buffer>} its output; fails if the command fails
 */
async function bytesOf(args, options) {
  const { code, stdout, stderr } = await wick(native, args, options);
  assert.equal(code, 0, stderr);
  return stdout;
}

/** @param {string[]} args @param {Parameters<typeof wick>[2]} [options] */
const textOf = async (args, options) => (await bytesOf(args, options)).toString();

/** @param {string[]} args @param {Parameters<typeof wick>[2]} [options] @returns {Promise<any>} */
const jsonOf = async (args, options) => {
  const text = await textOf(args, options);
  assert.match(text, /[\]}]\n$/, 'the line must end with a line break');
  return JSON.parse(text);
};

/** @param {string[]} args @param {number} code @param {string} says */
async function assertRefused(args, code, says) {
  const result = await wick(native, args);
  assert.deepEqual([result.code, result.stderr], [code, `wick: ${says}\n`]);
  assert.equal(result.stdout.length, 0);
}

const sum = (/** @type {number[]} */ values) => values.reduce((a, b) => a + b, 0);

/** @param {Buffer} bytes */
const floatsOf = (bytes) => new Float32Array(new Uint8Array(bytes).buffer);

// ---- inspect ----

/** Formats a size, e.g. as "94.4 MB". @param {number | bigint} bytes */
function sized(bytes) {
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB'];
  let value = Number(bytes);
  let unit = 0;
  while (value >= 1000 && unit < 4) [value, unit] = [value / 1000, unit + 1];
  const digits = unit === 0 ? 0 : value < 9.995 ? 2 : 1;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/** Shortens a text to at most 72 characters and three dots. @param {string} text */
const shortened = (text) =>
  [...text].length <= 72 ? text : `${[...text].slice(0, 72).join('')}...`;

/** Returns the tables for a model's JSON. @param {string} path @param {any} json */
function tablesOf(path, { gguf, metadata, tensors, info }) {
  const { shape, plan, memory } = info;
  const isSplit = info.load.files > 1;
  const lines = [
    `${path}: GGUF version ${gguf.version}, directory ${sized(gguf.directory_bytes)}, ` +
      `tensor data from byte ${gguf.data_offset}, alignment ${gguf.alignment}`,
    '',
    `metadata (${metadata.length})`,
  ];
  for (const { key, type, value, item_type: item, count, first } of metadata) {
    const kind = item === undefined ? type : `${item}[${count}]`;
    const shown = shortened(JSON.stringify(item === undefined ? value : first));
    lines.push(`  ${key.padEnd(42)} ${kind.padEnd(15)} ${shown}`);
  }
  const columns = (/** @type {(string | number)[]} */ [name, type, dims, offset, bytes]) =>
    `  ${String(name).padEnd(32)} ${String(type).padEnd(8)} ${String(dims).padEnd(20)} ` +
    `${String(offset).padStart(14)} ${String(bytes).padStart(12)}`;
  lines.push('', `tensors (${tensors.length})`);
  lines.push(`${columns(['name', 'type', 'shape', 'offset', 'bytes'])}${isSplit ? '  file' : ''}`);
  for (const { name, type, shape: dims, file, offset_bytes, size_bytes } of tensors) {
    const row = columns([name, type, dims.join(' x '), offset_bytes, size_bytes]);
    lines.push(isSplit ? `${row}  ${String(file + 1).padStart(4)}` : row);
  }
  const unread = tensors.filter((/** @type {any} */ tensor) => tensor.unread);
  if (unread.length > 0) lines.push('', `unused tensors (${unread.length})`);
  for (const { name } of unread) lines.push(`  ${name}`);
  lines.push('', 'types');
  for (const [name, of] of Object.entries(/** @type {Record<string, any>} */ (info.types))) {
    const own = tensors.filter((/** @type {any} */ tensor) => tensor.type === name);
    assert.equal(of.tensors, own.length);
    assert.equal(of.bytes, sum(own.map((/** @type {any} */ tensor) => tensor.size_bytes)));
    lines.push(
      `  ${name.padEnd(8)} ${String(of.tensors).padStart(6)} tensors  ${sized(of.bytes).padStart(12)}`,
    );
  }
  if (shape) {
    lines.push(
      ...['', 'model'],
      `  ${info.architecture}, ${shape.parameters} parameters: ${shape.layers} layers, hidden ${shape.hidden}, ` +
        `ffn ${shape.ffn}, ${shape.heads} heads, ${shape.kv_heads} KV heads, head_dim ${shape.head_dim}, ` +
        `vocabulary ${shape.vocab}, context ${shape.context_trained}`,
    );
  }
  if (plan === null) {
    const { message } = info.error;
    return [...lines, '', 'memory plan', `  none: this model does not run here: ${message}`, ''];
  }
  lines.push('', `memory plan for a context of ${plan.context_tokens} tokens`);
  for (const [name, bytes] of /** @type {[string, number][]} */ ([
    ['weights', plan.weights_bytes],
    ['keys and values', plan.kv_bytes],
    ['scratch', plan.scratch_bytes],
    ['directory', plan.directory_bytes],
    ['tokenizer', plan.tokenizer_bytes],
    ['total', plan.total_bytes],
    ['limit here', memory.limit_bytes],
  ])) {
    const shown = name === 'limit here' && bytes === 0 ? 'none' : sized(bytes);
    lines.push(`  ${name.padEnd(16)} ${shown.padStart(12)}`);
  }
  return [...lines, ''];
}

/** @param {string[]} args @param {string} name the model's name in the tables @param {Buffer} [input] */
async function assertTables(args, name, input) {
  const [text, json] = [
    await textOf(['inspect', ...args], { input }),
    await jsonOf(['inspect', ...args, '--json'], { input }),
  ];
  const sizes = Object.keys(json.info.types).map((each) => json.info.types[each].number ?? 0);
  assert.deepEqual(
    sizes,
    sizes.toSorted((a, b) => a - b),
  );
  assert.deepEqual(text.split('\n'), tablesOf(name, json));
  return { text, json };
}

describe('inspect', { skip: shared.skip }, () => {
  test('the tables match the JSON', async () => {
    const reference = join(vectors, 'reference');
    for (const [file, ...options] of [
      [stories, '--ctx', '100', '--kv', 'q8:f32'],
      [join(reference, 'models/llama-256-Q3_K_L.gguf')],
      [join(reference, 'split/llama-small-F16-00001-of-00003.gguf')],
      [join(vectors, 'vocab/ggml-vocab-llama-spm.gguf')],
      [join(vectors, 'reference-more/models/bert-rank-labels.gguf')],
    ]) {
      await assertTables([file, ...options], file);
    }
    const input = readFileSync(stories);
    await assertTables(['-'], 'standard input', input);
  });

  test('unused tensors are listed', async () => {
    const file = readFileSync(join(vectors, 'reference/models/llama-256-Q3_K_L.gguf'));
    // without an output matrix the model uses the embedding
    file.set(string('output.weighx'), file.indexOf(string('output.weight')));
    const { text, json } = await assertTables(['-'], 'standard input', file);
    const unread = json.tensors.filter((/** @type {any} */ tensor) => tensor.unread);
    assert.deepEqual(
      unread.map((/** @type {any} */ tensor) => tensor.name),
      ['output.weighx'],
    );
    assert.match(text, /\nunused tensors \(1\)\n {2}output\.weighx\n\ntypes\n/);
  });
});

describe('inspect of made-up files', () => {
  const number = (/** @type {number} */ bytes, /** @type {bigint} */ value) => {
    const out = Buffer.alloc(8);
    out.writeBigInt64LE(value);
    return out.subarray(0, bytes);
  };
  const double = (/** @type {number} */ value) => {
    const out = Buffer.alloc(8);
    out.writeDoubleLE(value);
    return out;
  };
  const single = (/** @type {number} */ value) => {
    const out = Buffer.alloc(4);
    out.writeFloatLE(value);
    return out;
  };
  const list = (/** @type {number} */ type, /** @type {Buffer[]} */ items) =>
    Buffer.concat([u32(type), u64(items.length), ...items]);

  /** Names, GGUF type numbers and values of metadata, and their text in a table. @type {[string, number, Buffer, string, string][]} */
  const metadata = [
    ['general.architecture', 8, string('unheard-of'), 'string', '"unheard-of"'],
    ['a.u8', 0, number(1, 255n), 'u8', '255'],
    ['a.i8', 1, number(1, -128n), 'i8', '-128'],
    ['a.u16', 2, number(2, 65535n), 'u16', '65535'],
    ['a.i16', 3, number(2, -32768n), 'i16', '-32768'],
    ['a.u32', 4, number(4, 4294967295n), 'u32', '4294967295'],
    ['a.i32', 5, number(4, -2147483648n), 'i32', '-2147483648'],
    ['a.f32', 6, single(0.5), 'f32', '0.5'],
    ['a.bool', 7, number(1, 1n), 'bool', 'true'],
    ['a.u64', 10, number(8, 9007199254740991n), 'u64', '9007199254740991'],
    ['a.i64', 11, number(8, -9007199254740991n), 'i64', '-9007199254740991'],
    ['a.f64', 12, double(-0.25), 'f64', '-0.25'],
    ['a.none', 9, list(4, []), 'u32[0]', '[]'],
    [
      'a.eight',
      9,
      list(
        5,
        [1, 2, 3, 4, 5, 6, 7, -8].map((n) => number(4, BigInt(n))),
      ),
      'i32[8]',
      '[1,2,3,4,5,6,7,-8]',
    ],
    [
      'a.nine',
      9,
      list(
        7,
        Array.from({ length: 9 }, (_, i) => number(1, BigInt(i % 2))),
      ),
      'bool[9]',
      '[false,true,false,true,false,true,false,true]',
    ],
    ['a.texts', 9, list(8, ['a', '', 'ü'].map(string)), 'string[3]', '["a","","ü"]'],
    ['text.70', 8, string('x'.repeat(70)), 'string', `"${'x'.repeat(70)}"`],
    ['text.71', 8, string('x'.repeat(71)), 'string', `"${'x'.repeat(71)}...`],
    ['text.wide.70', 8, string('🦊'.repeat(70)), 'string', `"${'🦊'.repeat(70)}"`],
    ['text.wide.71', 8, string('🦊'.repeat(71)), 'string', `"${'🦊'.repeat(71)}...`],
    ['text.mixed', 8, string(`é${'aß'.repeat(40)}`), 'string', `"é${'aß'.repeat(35)}...`],
    ['text.long', 8, string('y'.repeat(300_000)), 'string', `"${'y'.repeat(71)}...`],
    [
      'text.items',
      9,
      list(
        8,
        Array.from({ length: 30 }, () => string('z'.repeat(90))),
      ),
      'string[30]',
      `["${'z'.repeat(70)}...`,
    ],
    ['a name that is longer than its column', 4, number(4, 1n), 'u32', '1'],
    [`k${'e'.repeat(509)}y`, 4, number(4, 2n), 'u32', '2'],
    [`k${'e'.repeat(510)}y`, 4, number(4, 3n), 'u32', '3'],
    [`k${'e'.repeat(900)}`, 4, number(4, 4n), 'u32', '4'],
    ['control\x1f\x01 \x7f~', 4, number(4, 5n), 'u32', '5'],
  ];
  // types by their GGML numbers, with block sizes, and totals just below and above each change of unit
  /** @type {[string, number, number, bigint[]][]} */
  const tensors = [
    ['I64', 27, 8, [1250n, 1n, 1n, 1n]],
    ['F32', 0, 4, [249n]],
    ['F16', 1, 2, [500n]],
    ['BF16', 30, 2, [2n, 1249n]],
    ['I8', 24, 1, [999_999n]],
    ['I16', 25, 2, [25n, 4n, 5_000n]],
    ['I32', 26, 4, [1_000_000_000n, 2n, 3n]],
    ['F64', 28, 8, [1_000_000n, 1_500_000_000n]],
  ];
  const names = tensors.map(([type], i) => `${type}.${'w'.repeat(10 * i)}`.slice(0, 63));

  function directory() {
    let offset = 0n;
    const bytes = tensors.map(([, , size, dims]) => dims.reduce((a, b) => a * b, BigInt(size)));
    const entries = tensors.flatMap(([, id, , dims], i) => {
      const entry = [string(names[i]), u32(dims.length), ...dims.map(u64), u32(id), u64(offset)];
      offset += ((bytes[i] + 31n) / 32n) * 32n;
      return entry;
    });
    const head = [Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(metadata.length)];
    const pairs = metadata.map(([key, type, value]) => pair(key, type, value));
    return { bytes, all: Buffer.concat([...head, ...pairs, ...entries]) };
  }

  test('every kind of value, long names and sums of every size are shown', async () => {
    const { bytes, all } = directory();
    const data = Math.ceil(all.length / 32) * 32;
    const input = Buffer.concat([all, Buffer.alloc(data - all.length + 64)]);
    const shown = await textOf(['inspect', '-'], { input });
    const clean = (/** @type {string} */ name) =>
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are replaced
      name.slice(0, 511).replaceAll(/[\x00-\x1f\x7f]/g, '?');
    const wanted = [
      `standard input: GGUF version 3, directory ${sized(all.length)}, tensor data from byte ${data}, alignment 32`,
      ...['', `metadata (${metadata.length})`],
      ...metadata.map(
        ([key, , , type, value]) => `  ${clean(key).padEnd(42)} ${type.padEnd(15)} ${value}`,
      ),
      ...['', `tensors (${tensors.length})`],
      `  ${'name'.padEnd(32)} type     ${'shape'.padEnd(20)} ${'offset'.padStart(14)} ${'bytes'.padStart(12)}`,
    ];
    let offset = BigInt(data);
    for (const [i, [type, , , dims]] of tensors.entries()) {
      wanted.push(
        `  ${names[i].padEnd(32)} ${type.padEnd(8)} ${dims.join(' x ').padEnd(20)} ` +
          `${String(offset).padStart(14)} ${String(bytes[i]).padStart(12)}`,
      );
      offset += ((bytes[i] + 31n) / 32n) * 32n;
    }
    wanted.push('', 'types');
    const order = tensors.map((_, i) => i).sort((a, b) => tensors[a][1] - tensors[b][1]);
    for (const i of order)
      wanted.push(`  ${tensors[i][0].padEnd(8)}      1 tensors  ${sized(bytes[i]).padStart(12)}`);
    const lines = shown.split('\n');
    assert.deepEqual(lines.slice(0, wanted.length), wanted);
    assert.match(
      lines.slice(wanted.length).join('\n'),
      /^\nmemory plan\n {2}none: .*unheard-of.*\n$/,
    );
    // the totals are just below and above each change of unit
    const sums = order.map((i) => sized(bytes[i]));
    for (const text of [
      '996 bytes',
      '1.00 KB',
      '1000.0 KB',
      '10.0 KB',
      '1.00 MB',
      '24.0 GB',
      '12000.0 TB',
    ])
      assert.ok(sums.includes(text), `${text} is not in ${sums}`);
  });

  test('types are listed in numeric order, each with all of its tensors', async () => {
    const weights = (
      /** @type {string} */ name,
      /** @type {'F32' | 'F16'} */ type,
      /** @type {number} */ count,
    ) => ({
      ...{ name, type, dims: [count], values: new Float32Array(count) },
    });
    const order = ['F16', 'F32', 'F16', 'F32', 'F16'].map((type, i) =>
      weights(`t${i}`, /** @type {'F32' | 'F16'} */ (type), 32 * (i + 1)),
    );
    writeFileSync(at('order.gguf'), weightsFile({ 'general.architecture': 'none' }, order));
    const shown = await textOf(['inspect', at('order.gguf')]);
    assert.ok(
      shown.includes(
        '\ntypes\n  F32           2 tensors     768 bytes\n  F16           3 tensors     576 bytes\n',
      ),
      shown,
    );
  });
});

// ---- synth ----

describe('synth', { concurrency: 2 }, () => {
  /** @param {number} inner @param {number} state @param {number} heads @param {number} groups */
  function scanKeys(inner, state, heads, groups) {
    const numbers = { inner_size: inner, state_size: state, time_step_rank: heads };
    const all = Object.entries({ conv_kernel: 4, ...numbers, group_count: groups });
    return all.map(([key, value]) => [`ssm.${key}`, 'u32', value]);
  }

  // from the models' published configurations
  const qwen35 = {
    ...{ architecture: 'qwen35', pre: 'qwen35', head: 256, hasQkNorms: true, epsilon: 1e-6 },
    ...{ attentionAt: [3, 7, 11, 15, 19, 23], ropeDims: 64 },
    ffnNorm: 'post_attention_norm.weight',
    keys: [...scanKeys(2048, 128, 16, 16), ['full_attention_interval', 'u32', 4]],
    layers: 24,
    hidden: 1024,
    ffn: 3584,
    heads: 8,
    kv: 2,
    vocab: 248320,
    context: 262144,
    theta: 10000000,
  };
  const shapes = {
    tiny: {
      layers: 2,
      hidden: 256,
      ffn: 512,
      heads: 4,
      kv: 2,
      vocab: 1024,
      context: 2048,
      theta: 10000,
    },
    'wick-2.6m': {
      layers: 4,
      hidden: 256,
      ffn: 512,
      heads: 4,
      kv: 2,
      vocab: 1024,
      context: 4096,
      theta: 10000,
    },
    '100mb': {
      layers: 13,
      hidden: 768,
      ffn: 2048,
      heads: 12,
      kv: 4,
      vocab: 16384,
      context: 4096,
      theta: 10000,
    },
    'smollm2-135m': {
      layers: 30,
      hidden: 576,
      ffn: 1536,
      heads: 9,
      kv: 3,
      vocab: 49152,
      context: 8192,
      theta: 100000,
    },
    'smollm2-360m': {
      layers: 32,
      hidden: 960,
      ffn: 2560,
      heads: 15,
      kv: 5,
      vocab: 49152,
      context: 8192,
      theta: 100000,
    },
    'qwen2.5-0.5b': {
      ...{ architecture: 'qwen2', pre: 'qwen2', hasBiases: true, epsilon: 1e-6 },
      layers: 24,
      hidden: 896,
      ffn: 4864,
      heads: 14,
      kv: 2,
      vocab: 151936,
      context: 32768,
      theta: 1000000,
    },
    'llama3.2-1b': {
      ...{ pre: 'llama-bpe', hasRopeFactors: true },
      layers: 16,
      hidden: 2048,
      ffn: 8192,
      heads: 32,
      kv: 8,
      vocab: 128256,
      context: 131072,
      theta: 500000,
    },
    'qwen3-0.6b': {
      ...{ architecture: 'qwen3', pre: 'qwen2', head: 128, hasQkNorms: true, epsilon: 1e-6 },
      layers: 28,
      hidden: 1024,
      ffn: 3072,
      heads: 16,
      kv: 8,
      vocab: 151936,
      context: 40960,
      theta: 1000000,
    },
    'qwen3-1.7b': {
      ...{ architecture: 'qwen3', pre: 'qwen2', head: 128, hasQkNorms: true, epsilon: 1e-6 },
      layers: 28,
      hidden: 2048,
      ffn: 6144,
      heads: 16,
      kv: 8,
      vocab: 151936,
      context: 40960,
      theta: 1000000,
    },
    'qwen3-8b': {
      ...{ architecture: 'qwen3', pre: 'qwen2', head: 128, hasQkNorms: true, epsilon: 1e-6 },
      hasOutput: true,
      layers: 36,
      hidden: 4096,
      ffn: 12288,
      heads: 32,
      kv: 8,
      vocab: 151936,
      context: 40960,
      theta: 1000000,
    },
    'gemma3-270m': {
      ...{ architecture: 'gemma3', head: 256, window: 512, hasQkNorms: true, epsilon: 1e-6 },
      hasPostNorms: true,
      layers: 18,
      hidden: 640,
      ffn: 2048,
      heads: 4,
      kv: 1,
      vocab: 262144,
      context: 32768,
      theta: 1000000,
    },
    'gemma3-1b': {
      ...{ architecture: 'gemma3', head: 256, window: 512, hasQkNorms: true, epsilon: 1e-6 },
      hasPostNorms: true,
      layers: 26,
      hidden: 1152,
      ffn: 6912,
      heads: 4,
      kv: 1,
      vocab: 262144,
      context: 32768,
      theta: 1000000,
    },
    'smollm3-3b': {
      ...{ architecture: 'smollm3', pre: 'llama-bpe', epsilon: 1e-6 },
      layers: 36,
      hidden: 2048,
      ffn: 11008,
      heads: 16,
      kv: 4,
      vocab: 128256,
      context: 65536,
      theta: 5000000,
    },
    'lfm2.5-350m': {
      ...{ architecture: 'lfm2', pre: 'llama-bpe', hasQkNorms: true },
      ...{ attentionAt: [2, 5, 8, 10, 12, 14], finalNorm: 'token_embd_norm.weight' },
      keys: [['shortconv.l_cache', 'u32', 3]],
      layers: 16,
      hidden: 1024,
      ffn: 4608,
      heads: 16,
      kv: 8,
      vocab: 65536,
      context: 128000,
      theta: 1000000,
    },
    'granite4-h-350m': {
      ...{ architecture: 'granitehybrid', attentionAt: [10, 13, 17, 27] },
      ropeKeys: [['rope.scaling.finetuned', 'bool', false]],
      keys: [
        ...scanKeys(1536, 128, 48, 1),
        ...[
          ['attention.scale', 'f32', 0.015625],
          ['embedding_scale', 'f32', 12],
          ['residual_scale', 'f32', 0.246],
          ['logit_scale', 'f32', 3],
        ],
      ],
      layers: 32,
      hidden: 768,
      ffn: 2048,
      heads: 12,
      kv: 4,
      vocab: 100352,
      context: 32768,
      theta: 10000,
    },
    'qwen3.5-0.8b': qwen35,
    'qwen3.5-0.8b-mtp': {
      ...qwen35,
      attentionAt: [...qwen35.attentionAt, 24],
      keys: [...qwen35.keys, ['nextn_predict_layers', 'u32', 1]],
      predicts: true,
      layers: 25,
    },
    'gpt-oss-cut': {
      ...{ architecture: 'gpt-oss', pre: 'gpt-4o', head: 64, window: 128, hasBiases: true },
      ...{ ffnNorm: 'post_attention_norm.weight', experts: 8 },
      ropeKeys: [
        ['rope.scaling.type', 'string', 'yarn'],
        ['rope.scaling.factor', 'f32', 32],
        ['rope.scaling.original_context_length', 'u32', 4096],
      ],
      keys: [
        ['expert_count', 'u32', 8],
        ['expert_used_count', 'u32', 4],
        ['expert_feed_forward_length', 'u32', 2880],
      ],
      layers: 4,
      hidden: 2880,
      ffn: 2880,
      heads: 64,
      kv: 8,
      vocab: 32768,
      context: 131072,
      theta: 150000,
    },
  };
  /**
   * A shape with optional fields in addition to its sizes.
   * @typedef {(typeof shapes)['tiny'] & {architecture?: string, pre?: string, head?: number,
   *   window?: number, hasBiases?: boolean, hasRopeFactors?: boolean, hasQkNorms?: boolean,
   *   hasPostNorms?: boolean, epsilon?: number, attentionAt?: number[], finalNorm?: string, ffnNorm?: string,
   *   ropeDims?: number, experts?: number, hasOutput?: boolean, predicts?: boolean, ropeKeys?: Key[], keys?: Key[]}} Shape
   * @typedef {[string, string, number | string | boolean]} Key
   */
  const fileTypes = {
    ...{ f32: 0, f16: 1, bf16: 32, q8_0: 7, q4_0: 2, q6_k: 18, q4_k_m: 15, q1_0: 40, mxfp4: 38 },
  };
  const all = /** @type {[string, Shape][]} */ (Object.entries(shapes));

  /** Returns the tensors of a layer's mixer. @param {Shape} s @param {number} layer @returns {[string, number[]][]} */
  function mixerOf(s, layer) {
    const { head = s.hidden / s.heads, hasBiases, hasQkNorms, architecture } = s;
    const q = head * s.heads;
    const kv = head * s.kv;
    /** @param {boolean | undefined} has @param {[string, number[]]} tensor @returns {[string, number[]][]} */
    const where = (has, tensor) => (has ? [tensor] : []);
    if (s.attentionAt?.includes(layer) ?? true)
      return [
        ['attn_q.weight', [s.hidden, architecture === 'qwen35' ? 2 * q : q]],
        ...where(hasBiases, ['attn_q.bias', [q]]),
        ...where(hasQkNorms, ['attn_q_norm.weight', [head]]),
        ['attn_k.weight', [s.hidden, kv]],
        ...where(hasBiases, ['attn_k.bias', [kv]]),
        ...where(hasQkNorms, ['attn_k_norm.weight', [head]]),
        ['attn_v.weight', [s.hidden, kv]],
        ...where(hasBiases, ['attn_v.bias', [kv]]),
        ['attn_output.weight', [q, s.hidden]],
        ...where(architecture === 'gpt-oss', ['attn_output.bias', [s.hidden]]),
        ...where(architecture === 'gpt-oss', ['attn_sinks.weight', [s.heads]]),
      ];
    if (architecture === 'lfm2')
      return [
        ['shortconv.conv.weight', [3, 1024]],
        ['shortconv.in_proj.weight', [1024, 3072]],
        ['shortconv.out_proj.weight', [1024, 1024]],
      ];
    if (architecture === 'granitehybrid')
      return [
        ['ssm_in.weight', [768, 1536 + 1536 + 128 + 128 + 48]],
        ['ssm_conv1d.weight', [4, 1536 + 128 + 128]],
        ['ssm_conv1d.bias', [1792]],
        ['ssm_dt.bias', [48]],
        ['ssm_a', [1, 48]],
        ['ssm_d', [1, 48]],
        ['ssm_norm.weight', [1536, 1]],
        ['ssm_out.weight', [1536, 768]],
      ];
    return [
      ['attn_qkv.weight', [1024, 3 * 2048]],
      ['attn_gate.weight', [1024, 2048]],
      ['ssm_conv1d.weight', [4, 3 * 2048]],
      ['ssm_dt.bias', [16]],
      ['ssm_a', [16]],
      ['ssm_beta.weight', [1024, 16]],
      ['ssm_alpha.weight', [1024, 16]],
      ['ssm_norm.weight', [128]],
      ['ssm_out.weight', [2048, 1024]],
    ];
  }

  /** @param {Shape} s @returns {[string, number[]][]} */
  function feedForwardOf({ hidden, ffn, experts }) {
    if (experts === undefined)
      return [
        ['ffn_gate.weight', [hidden, ffn]],
        ['ffn_up.weight', [hidden, ffn]],
        ['ffn_down.weight', [ffn, hidden]],
      ];
    return [
      ['ffn_gate_inp.weight', [hidden, experts]],
      ['ffn_gate_inp.bias', [experts]],
      ['ffn_gate_exps.weight', [hidden, ffn, experts]],
      ['ffn_gate_exps.bias', [ffn, experts]],
      ['ffn_up_exps.weight', [hidden, ffn, experts]],
      ['ffn_up_exps.bias', [ffn, experts]],
      ['ffn_down_exps.weight', [ffn, hidden, experts]],
      ['ffn_down_exps.bias', [hidden, experts]],
    ];
  }

  /** @param {Shape} s @returns {[string, number[]][]} */
  function tensorsOf(s) {
    const { head = s.hidden / s.heads, hasPostNorms, finalNorm, ffnNorm } = s;
    /** @type {[string, number[]][]} */
    const tensors = [['token_embd.weight', [s.hidden, s.vocab]]];
    for (let layer = 0; layer < s.layers; layer++) {
      const add = (/** @type {string} */ part, /** @type {number[]} */ ...dims) =>
        tensors.push([`blk.${layer}.${part}`, dims]);
      add('attn_norm.weight', s.hidden);
      for (const [part, dims] of mixerOf(s, layer)) add(part, ...dims);
      if (hasPostNorms) add('post_attention_norm.weight', s.hidden);
      add(ffnNorm ?? 'ffn_norm.weight', s.hidden);
      for (const [part, dims] of feedForwardOf(s)) add(part, ...dims);
      if (hasPostNorms) add('post_ffw_norm.weight', s.hidden);
      if (!s.predicts || layer + 1 < s.layers) continue;
      add('nextn.eh_proj.weight', 2 * s.hidden, s.hidden);
      for (const norm of ['enorm', 'hnorm', 'shared_head_norm']) {
        add(`nextn.${norm}.weight`, s.hidden);
      }
    }
    tensors.push([finalNorm ?? 'output_norm.weight', [s.hidden]]);
    if (s.experts || s.hasOutput) tensors.push(['output.weight', [s.hidden, s.vocab]]);
    if (s.hasRopeFactors) tensors.push(['rope_freqs.weight', [head / 2]]);
    return tensors;
  }

  for (const [name, s] of all) {
    test(`${name}: metadata, vocabulary and shapes`, async () => {
      const pipe = `"${built(native.program)}" synth ${name} q8_0 - | "${built(native.program)}" inspect - --json`;
      const { code, stdout, stderr } = await run('/bin/sh', ['-c', pipe]);
      assert.equal(code, 0, stderr);
      const { metadata, tensors } = JSON.parse(stdout.toString());
      const { architecture = 'llama', pre = 'gpt-2', epsilon = 1e-5 } = s;
      const own = (/** @type {string} */ key) => `${architecture}.${key}`;
      const plain = metadata
        .filter(
          (/** @type {any} */ of) =>
            of.item_type === undefined && of.key !== 'tokenizer.chat_template',
        )
        .map((/** @type {any} */ of) => [of.key, of.type, of.value]);
      const lengths = ['attention.key_length', 'attention.value_length'];
      const more = s.head ? lengths.map((key) => [own(key), 'u32', s.head]) : [];
      if (s.window) more.push([own('attention.sliding_window'), 'u32', s.window]);
      const owned = (/** @type {any[]} */ keys = []) =>
        keys.map(([key, type, value]) => [own(key), type, value]);
      const hasLists = ['lfm2', 'granitehybrid'].includes(architecture); // 0 for layers without attention
      const kvHeads = hasLists ? [] : [['attention.head_count_kv', 'u32', s.kv]];
      assert.deepEqual(plain, [
        ['general.architecture', 'string', architecture],
        ['general.name', 'string', `random weights in the shape of ${name}`],
        ['general.file_type', 'u32', 7],
        ['general.quantization_version', 'u32', 2],
        [own('context_length'), 'u32', s.context],
        [own('embedding_length'), 'u32', s.hidden],
        [own('block_count'), 'u32', s.layers],
        [own('feed_forward_length'), 'u32', s.ffn],
        [own('attention.head_count'), 'u32', s.heads],
        ...owned(kvHeads),
        [own('rope.dimension_count'), 'u32', s.ropeDims ?? s.head ?? s.hidden / s.heads],
        [own('vocab_size'), 'u32', s.vocab],
        [own('rope.freq_base'), 'f32', s.theta],
        ...owned(s.ropeKeys),
        [own('attention.layer_norm_rms_epsilon'), 'f32', epsilon],
        ...more,
        ...owned(s.keys),
        ['tokenizer.ggml.model', 'string', 'gpt2'],
        ['tokenizer.ggml.pre', 'string', pre],
        ['tokenizer.ggml.bos_token_id', 'u32', s.vocab - 3],
        ['tokenizer.ggml.eos_token_id', 'u32', s.vocab - 1],
        ['tokenizer.ggml.add_bos_token', 'bool', false],
      ]);
      const lists = metadata
        .filter((/** @type {any} */ of) => of.item_type !== undefined)
        .map((/** @type {any} */ of) => [of.key, of.item_type, of.count]);
      assert.deepEqual(lists, [
        ...(hasLists ? [[own('attention.head_count_kv'), 'i32', s.layers]] : []),
        ...(s.ropeDims ? [[own('rope.dimension_sections'), 'i32', 4]] : []),
        ['tokenizer.ggml.tokens', 'string', s.vocab],
        ['tokenizer.ggml.token_type', 'i32', s.vocab],
        ['tokenizer.ggml.merges', 'string', s.vocab - 256 - 3],
      ]);
      const found = tensors.map((/** @type {any} */ of) => [of.name, of.shape]);
      assert.deepEqual(found, tensorsOf(s));
      const isPlain =
        /^blk\.\d+\.(ssm_(conv1d|a|d|norm)\b|shortconv\.conv|ffn_gate_inp|.*_exps\.bias)/;
      for (const { name: tensor, type, shape } of tensors)
        assert.equal(type, shape.length === 1 || isPlain.test(tensor) ? 'F32' : 'Q8_0', tensor);
    });
  }

  test('the vocabulary has bytes, merged words and three control tokens', async () => {
    // GPT-2's characters for the bytes
    /** @type {number[]} */
    const seen = [];
    for (let i = 33; i < 256; i++) if (i < 127 || (i > 160 && i !== 173)) seen.push(i);
    let next = 256;
    const bytes = Array.from({ length: 256 }, (_, i) =>
      String.fromCodePoint(seen.includes(i) ? i : next++),
    );
    const letters = [...'abcdefghijklmnopqrstuvwxyz'];
    const pairs = letters.flatMap((a) => letters.map((b) => a + b));
    /** @type {[string, string][]} */
    const merges = [
      ...letters.map((a) => /** @type {[string, string]} */ (['Ġ', a])),
      ...letters.flatMap((a) => letters.map((b) => /** @type {[string, string]} */ ([a, b]))),
      ...letters.flatMap((a) => pairs.map((b) => /** @type {[string, string]} */ ([`Ġ${a}`, b]))),
      ...pairs
        .slice(0, 2)
        .flatMap((a) => pairs.map((b) => /** @type {[string, string]} */ ([a, b]))),
    ];
    for (const [name, vocab] of /** @type {const} */ ([
      ['tiny', 1024],
      ['smollm2-135m', 49152],
    ])) {
      const count = Math.min(merges.length, vocab - 259);
      const head = `"${built(native.program)}" synth ${name} q4_0 - | head -c 4000000`;
      const { stdout } = await run('/bin/sh', ['-c', head]);
      const block = (
        /** @type {string} */ key,
        /** @type {string[]} */ items,
        /** @type {number} */ of,
      ) => Buffer.concat([string(key), u32(9), u32(8), u64(of), ...items.map(string)]);
      const words = [...bytes, ...merges.slice(0, count).map((m) => m.join(''))];
      const isWhole = count === vocab - 259;
      const controls = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'];
      const tokens = block(
        'tokenizer.ggml.tokens',
        isWhole ? [...words, ...controls] : words,
        vocab,
      );
      assert.ok(stdout.includes(tokens), `${name}: tokens`);
      const parts = merges.slice(0, count).map((m) => m.join(' '));
      assert.ok(
        stdout.includes(block('tokenizer.ggml.merges', parts, vocab - 259)),
        `${name}: merges`,
      );
      const kinds = Array.from({ length: vocab }, (_, i) => u32(i < vocab - 3 ? 1 : 3));
      const types = [string('tokenizer.ggml.token_type'), u32(9), u32(5), u64(vocab), ...kinds];
      assert.ok(stdout.includes(Buffer.concat(types)), `${name}: types`);
    }
  });

  /** Returns the tensors of a tiny model as floats. @param {string} type */
  async function floatsOfTiny(type) {
    const [file, plain] = [at(`stats-${type}.gguf`), at(`stats-${type}-f32.gguf`)];
    await textOf(['synth', 'tiny', type, file]);
    await textOf(['quantize', file, plain, 'f32', '--requantize', '--quiet']);
    const { tensors } = await jsonOf(['inspect', plain, '--json']);
    const bytes = readFileSync(plain);
    return tensors.map((/** @type {any} */ { name, shape, offset_bytes, size_bytes }) => ({
      name,
      shape,
      values: floatsOf(bytes.subarray(offset_bytes, offset_bytes + size_bytes)),
    }));
  }

  for (const type of Object.keys(fileTypes)) {
    test(`${type}: weights have a mean and deviation that keep a model's vectors in range`, async () => {
      const firsts = new Set();
      for (const { name, shape, values } of await floatsOfTiny(type)) {
        const mean =
          values.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0) /
          values.length;
        const squares = values.reduce(
          (/** @type {number} */ a, /** @type {number} */ b) => a + (b - mean) ** 2,
          0,
        );
        const deviation = Math.sqrt(squares / values.length);
        const isNorm = shape.length === 1;
        // uniform within 0.1 around 1, or with a width that depends on the row length
        let wanted = isNorm ? 0.1 / Math.sqrt(3) : 1 / Math.sqrt(shape[0]);
        if (name === 'token_embd.weight') wanted *= 3;
        if (/attn_output|ffn_down/.test(name)) wanted *= 4 / Math.sqrt(2 * 2);
        assert.ok(
          Math.abs(deviation / wanted - 1) < (isNorm ? 0.12 : 0.04),
          `${name}: ${deviation / wanted}`,
        );
        const off = Math.abs(mean - (isNorm ? 1 : 0)) / (wanted / Math.sqrt(values.length));
        assert.ok(off < (/f16|_k/.test(type) ? 20 : 5), `${name}: the mean is off by ${off}`);
        const signs = values.filter(
          (/** @type {number} */ value) => value < (isNorm ? 1 : 0),
        ).length;
        const share = signs / values.length;
        assert.ok(
          share > (isNorm ? 0.35 : 0.44) && share < (isNorm ? 0.65 : 0.56),
          `${name}: ${share} below`,
        );
        firsts.add(values.slice(0, 4).join(' '));
      }
      assert.equal(firsts.size, 20, 'two tensors begin with the same values');
    });
  }

  test('mxfp4 is used for experts, whose weights have about the same deviation as the others', async () => {
    const program = `"${built(native.program)}"`;
    const pipe = `${program} synth gpt-oss-cut mxfp4 - | ${program} inspect - --json`;
    const { tensors } = JSON.parse((await run('/bin/sh', ['-c', pipe])).stdout.toString());
    const experts = tensors.filter((/** @type {any} */ of) => of.type === 'MXFP4');
    assert.equal(experts.length, 3 * 4);
    assert.ok(experts.every((/** @type {any} */ of) => /_exps\.weight$/.test(of.name)));
    const [{ offset_bytes }] = experts;
    const part = `${program} synth gpt-oss-cut mxfp4 - | tail -c +${offset_bytes + 1} | head -c ${17 * 20000}`;
    const { stdout } = await run('/bin/sh', ['-c', part]);
    const halves = [0, 1, 2, 3, 4, 6, 8, 12];
    let squares = 0;
    for (let block = 0; block < 20000; block++) {
      const scale = 2 ** (stdout[17 * block] - 128); // of halves
      for (let i = 1; i < 17; i++)
        for (const code of [stdout[17 * block + i] & 15, stdout[17 * block + i] >> 4])
          squares += (halves[code & 7] * scale) ** 2;
    }
    const ratio = Math.sqrt(squares / (20000 * 32)) * Math.sqrt(2880);
    assert.ok(ratio > 0.7 && ratio < 1.4, `${ratio}`);
  });

  test('the files of the first seed have not changed', async () => {
    /** @type {Record<string, string>} */
    const digests = {
      f32: '17b3ec72d653689e',
      f16: 'fd2e01d74bf8dd6c',
      bf16: '9c04ff7f7adcc73d',
      q8_0: 'ebe14367d82580ec',
      q4_0: 'c452e903c8d05732',
      q6_k: '27248fea230cde67',
      q4_k_m: 'f9135e710950b5be',
      q1_0: '1ae9dbcc24567841',
      mxfp4: 'dd939dcd4504a056',
    };
    for (const type of Object.keys(digests)) {
      const bytes = await bytesOf(['synth', 'tiny', type, '-']);
      assert.equal(
        createHash('sha256').update(bytes).digest('hex').slice(0, 16),
        digests[type],
        type,
      );
      const fileType = Buffer.concat([string('general.file_type'), u32(4)]);
      const from = bytes.indexOf(fileType) + fileType.length;
      assert.equal(bytes.readUInt32LE(from), fileTypes[/** @type {'f32'} */ (type)]);
    }
  });

  // a strip of 1 MiB has 58,254 blocks of Q4_0, and its last 4 bytes are half of a random number
  test('weights of several strips have not changed', async () => {
    const bytes = await bytesOf(['synth', '100mb', 'q4_0', '-']);
    assert.equal(createHash('sha256').update(bytes).digest('hex').slice(0, 16), 'b93419e0ede85133');
  });

  test('llama3.2-1b stretches long wavelengths by 32, as its configuration says', async () => {
    // rope_scaling in its config.json: factor 32, low_freq_factor 1, high_freq_factor 4, trained on 8192
    const tail = `"${built(native.program)}" synth llama3.2-1b q4_0 - | tail -c 128`;
    const { stdout } = await run('/bin/sh', ['-c', tail]);
    const found = [...floatsOf(stdout)];
    assert.equal(found.length, 32);
    let between = 0;
    for (const [i, factor] of found.entries()) {
      const wavelength = 2 * Math.PI * 500000 ** (i / 32);
      let wanted = 1;
      if (wavelength > 8192) wanted = 32;
      else if (wavelength >= 8192 / 4) {
        const smooth = (8192 / wavelength - 1) / (4 - 1);
        wanted = 1 / ((1 - smooth) / 32 + smooth);
        between++;
      }
      assert.ok(Math.abs(factor / wanted - 1) < 1e-6, `${i}: ${factor}, not ${wanted}`);
    }
    assert.ok(between > 1 && found[0] === 1 && found[31] === 32);
  });

  test('the help lists every shape and type; other names are rejected', async () => {
    const help = await textOf(['synth', '--help']);
    const shown = `shapes: ${Object.keys(shapes).join(' ')}\ntypes:  ${Object.keys(fileTypes).join(' ')}\n`;
    assert.ok(help.endsWith(shown), help);
    const both = await wick(native, ['synth', 'tin', 'q4', at('none.gguf')]);
    assert.equal(both.code, 2);
    assert.equal(
      both.stderr,
      "wick: unknown shape 'tin' ('wick synth --help' lists them)\n" +
        "wick: unknown type 'q4' ('wick synth --help' lists them)\n",
    );
    await assertRefused(
      ['synth', 'tin', 'f32', at('none.gguf')],
      2,
      "unknown shape 'tin' ('wick synth --help' lists them)",
    );
    assert.ok(!existsSync(at('none.gguf')));
  });
});

// ---- logits ----

test('equal tokens have equal logits in any command, with an F32 KV cache', {
  skip: shared.skip,
}, async () => {
  const text = 'Once upon a time there was a girl.';
  const tokens = await textOf(['tokenize', stories, '-p', text]);
  const count = tokens.trim().split(' ').length;
  const logits = await bytesOf(['logits', stories, '--tokens', tokens, '--out', '-']);
  assert.equal(logits.length, count * 512 * 4);
  /** @param {string} kv */
  const saved = async (kv) => {
    await textOf(['perplexity', stories, '--kv', kv, '--save', at('saved.f32')], { input: text });
    return readFileSync(at('saved.f32'));
  };
  assert.ok((await saved('f32')).equals(logits));
  for (const other of ['f16', 'f16:f32', 'f32:f16'])
    assert.ok(!(await saved(other)).equals(logits), other);
  // one window, and the same text split into windows
  const first = await bytesOf([
    'logits',
    stories,
    '--tokens',
    tokens,
    '--out',
    '-',
    '--ctx',
    String(count),
  ]);
  assert.ok(first.equals(logits));
  await assertRefused(
    ['logits', stories, '--tokens', '1,2', '--out', '-', '--ctx', '1'],
    2,
    'prompt: the prompt is too long: it has 2 tokens, which exceeds the available context size of 1 (WICK_E_FULL)',
  );
});

// ---- vectors ----

describe('embed and rerank', { skip: shared.skip }, () => {
  const models = join(vectors, 'reference-more/models');
  const bert = join(models, 'bert-cls.gguf');
  const ranking = join(models, 'bert-rank.gguf');
  const texts = ['a hen', '', 'b c', 'the fox and the hen'];
  const given = texts.flatMap((one) => ['-p', one]);

  test('each input has one vector, as JSON and as floats', async () => {
    const json = await jsonOf(['embed', bert, ...given]);
    assert.equal(json.length, texts.length);
    const ids = await Promise.all(texts.map((one) => textOf(['tokenize', bert, '-p', one])));
    const floats = floatsOf(await bytesOf(['embed', bert, ...given, '--out', '-']));
    assert.equal(floats.length, 4 * 64);
    for (const [i, { tokens, embedding, ...rest }] of json.entries()) {
      assert.deepEqual(rest, {});
      assert.equal(tokens, ids[i].trim().split(' ').length);
      assert.deepEqual(Float32Array.from(embedding), floats.slice(64 * i, 64 * i + 64));
      const [alone] = await jsonOf(['embed', bert, '--tokens', ids[i]]);
      assert.deepEqual(alone, json[i]);
    }
    await textOf(['embed', bert, ...given, '--out', at('vectors.f32')]);
    assert.deepEqual(floatsOf(readFileSync(at('vectors.f32'))), floats);
  });

  test('without pooling each token has a vector; vectors can be truncated and normalized', async () => {
    const [whole] = await jsonOf(['embed', bert, '-p', 'a hen']);
    const [every] = await jsonOf(['embed', bert, '-p', 'a hen', '--pooling', 'none']);
    assert.deepEqual(Object.keys(every), ['tokens', 'embeddings']);
    assert.equal(every.embeddings.length, every.tokens);
    for (const row of every.embeddings) assert.equal(row.length, 64);
    assert.deepEqual(
      every.embeddings[0],
      whole.embedding,
      'the pooled vector is that of the first token',
    );
    assert.notDeepEqual(every.embeddings[1], every.embeddings[0]);
    const [last] = await jsonOf(['embed', bert, '-p', 'a hen', '--pooling', 'last']);
    assert.deepEqual(last.embedding, every.embeddings.at(-1));
    const [mean] = await jsonOf(['embed', bert, '-p', 'a hen', '--pooling', 'mean']);
    for (const [i, value] of mean.embedding.entries())
      assert.ok(
        Math.abs(value - sum(every.embeddings.map((/** @type {any} */ r) => r[i])) / every.tokens) <
          1e-5,
      );
    const floats = floatsOf(
      await bytesOf(['embed', bert, '-p', 'a hen', '--pooling', 'none', '--out', '-']),
    );
    assert.deepEqual(floats, Float32Array.from(every.embeddings.flat()));
    const [few] = await jsonOf(['embed', bert, '-p', 'a hen', '--dimensions', '7']);
    assert.deepEqual(few.embedding, whole.embedding.slice(0, 7));
    const [unit] = await jsonOf(['embed', bert, '-p', 'a hen', '--normalize']);
    const length = Math.sqrt(sum(whole.embedding.map((/** @type {number} */ x) => x * x)));
    for (const [i, value] of unit.embedding.entries())
      assert.ok(Math.abs(value - whole.embedding[i] / length) < 1e-6);
    const both = await jsonOf([
      'embed',
      bert,
      '-p',
      'a hen',
      '--normalize',
      '--no-normalize',
      '--json',
    ]);
    assert.deepEqual(both, [whole]);
  });

  test('inputs are the lines of a file or of standard input', async () => {
    const wanted = await jsonOf(['embed', bert, ...given]);
    const lines = texts.join('\n');
    writeFileSync(at('lines.txt'), `${lines}\n`);
    assert.deepEqual(await jsonOf(['embed', bert], { input: lines }), wanted);
    assert.deepEqual(await jsonOf(['embed', bert], { input: `${lines}\n` }), wanted);
    assert.deepEqual(await jsonOf(['embed', bert, '-f', at('lines.txt')]), wanted);
    assert.deepEqual(await jsonOf(['embed', bert, '-f', '-'], { input: lines }), wanted);
    const crowd = Array.from({ length: 60 }, (_, i) => 'a '.repeat(i % 7));
    const many = await jsonOf(['embed', bert], { input: crowd.join('\n') });
    assert.equal(many.length, 60);
    for (const [i, one] of many.entries()) assert.deepEqual(one, many[i % 7]);
    const both = ['embed', bert, '-p', 'a', '-f', at('lines.txt')];
    await assertRefused(both, 2, 'give the text with -p or -f, not both');
    await assertRefused(
      ['embed', '-'],
      2,
      'standard input is the model already: give the text with -p or -f',
    );
    const nowhere = await wick(native, [
      'embed',
      bert,
      '-p',
      'a',
      '--out',
      join(temporary, 'no/where'),
    ]);
    assert.equal(nowhere.code, 3);
    assert.match(nowhere.stderr, /^wick: cannot create .*no\/where: /);
    await assertRefused(
      ['embed', bert, '-p', 'a', '--dimensions', '65'],
      2,
      'embed: 65 dimensions: vectors have 64 (WICK_E_ARG)',
    );
  });

  test('scores are labelled and rank documents', async () => {
    const [labels] = await jsonOf(['embed', join(models, 'bert-rank-labels.gguf'), '-p', 'a hen']);
    assert.deepEqual(Object.keys(labels), ['tokens', 'scores']);
    assert.equal(labels.scores.length, 3);
    const [asked] = await jsonOf(['embed', ranking, '-p', 'a hen', '--pooling', 'rank']);
    assert.deepEqual(Object.keys(asked), ['tokens', 'scores']);
    const [pooled] = await jsonOf(['embed', ranking, '-p', 'a hen', '--pooling', 'cls']);
    assert.deepEqual([Object.keys(pooled), pooled.embedding.length], [['tokens', 'embedding'], 64]);

    const documents = ['one', 'two fish', 'one', 'the hen', '', 'a fox'];
    const args = [
      'rerank',
      ranking,
      '--query',
      'a hen',
      ...documents.flatMap((one) => ['--document', one]),
    ];
    const found = await jsonOf([...args, '--json']);
    /** @type {any[]} */
    const alone = [];
    for (const [index, document] of documents.entries()) {
      const one = ['rerank', ranking, '--query', 'a hen', '--document', document, '--json'];
      const [{ score }] = await jsonOf(one);
      alone.push({ index, score });
    }
    assert.deepEqual(
      found,
      alone.toSorted((a, b) => b.score - a.score),
    ); // equal scores keep their order
    assert.equal(new Set(alone.map(({ score }) => score)).size, 5);
    const rows = found.map(
      (/** @type {any} */ { index, score }) => `${score}\t${documents[index]}\n`,
    );
    assert.equal(await textOf(args), rows.join(''));
    await assertRefused(
      ['rerank', ranking, '--document', 'a'],
      2,
      "--query is missing ('wick rerank --help')",
    );
  });

  test('input that is too long is rejected, or truncated on request', async () => {
    const long = 'a '.repeat(400);
    const refused = await wick(native, ['embed', bert, '-p', long, '--ctx', '64']);
    assert.deepEqual([refused.code, refused.stdout.length], [2, 0], refused.stderr);
    assert.match(refused.stderr, /^wick: embed: .*64/);
    const [cut] = await jsonOf(['embed', bert, '-p', long, '--ctx', '64', '--truncate']);
    assert.equal(cut.tokens, 64);
    const pair = ['rerank', ranking, '--query', 'a', '--document', long, '--ctx', '64'];
    const longer = await wick(native, pair);
    assert.equal(longer.code, 2, longer.stderr);
    assert.match(longer.stderr, /^wick: rerank: .*64/);
    assert.equal((await jsonOf([...pair, '--truncate', '--json'])).length, 1);
  });
});

// ---- quantize ----

describe('quantize', () => {
  const source = at('quantize.gguf');
  const sizes = { F32: 4, F16: 2, Q8_0: 34 / 32, Q4_0: 18 / 32 };
  before(() => {
    const tensors = /** @type {const} */ ([
      ['token_embd.weight', 'F16', [64, 300]],
      ['output_norm.weight', 'F32', [64]],
      ['blk.0.attn_q.weight', 'F32', [64, 64]],
      ['blk.0.a_name_that_is_wider_than_its_column.weight', 'F16', [32, 2]],
    ]).map(([name, type, dims]) => {
      const values = new Float32Array(dims.reduce((/** @type {number} */ a, b) => a * b, 1));
      return { name, type, dims: [...dims], values: values.map((_, i) => Math.sin(i)) };
    });
    writeFileSync(source, weightsFile({ 'general.architecture': 'llama' }, tensors));
  });

  test('every tensor and the totals are reported', async () => {
    for (const type of ['q8_0', 'f32']) {
      const out = at(`told-${type}.gguf`);
      const told = await wick(native, ['quantize', source, out, type]);
      assert.equal(told.code, 0, told.stderr);
      const [before, after] = [
        await jsonOf(['inspect', source, '--json']),
        await jsonOf(['inspect', out, '--json']),
      ];
      const sums = [0, 0];
      let wanted = '';
      for (const [i, from] of before.tensors.entries()) {
        const to = after.tensors[i];
        assert.equal(from.name, to.name);
        const values = to.shape.reduce(
          (/** @type {number} */ a, /** @type {number} */ b) => a * b,
          1,
        );
        assert.equal(to.size_bytes, values * sizes[/** @type {'F32'} */ (to.type)]);
        sums[0] += from.size_bytes;
        sums[1] += to.size_bytes;
        wanted +=
          `[${String(i + 1).padStart(4)}/   4] ${from.name.padEnd(40)} ${from.type.padStart(5)} -> ` +
          `${to.type.padEnd(5)} ${(to.size_bytes / 1e6).toFixed(2).padStart(9)} MB\n`;
      }
      wanted += `weights: ${(sums[0] / 1e6).toFixed(2)} MB -> ${(sums[1] / 1e6).toFixed(2)} MB\n`;
      assert.equal(told.stderr, wanted);
      assert.equal(told.stdout.length, 0);
    }
  });

  test('the help lists every type, and every type is accepted', async () => {
    const help = await textOf(['quantize', '--help']);
    const names = /\ntypes: ([a-z0-9_ ]+)\n$/.exec(help)?.[1].split(' ') ?? [];
    for (const name of [
      'f32',
      'f16',
      'bf16',
      'q8_0',
      'q4_0',
      'q5_0',
      'q4_k_s',
      'q4_k_m',
      'q5_k_m',
      'q6_k',
    ])
      assert.ok(names.includes(name), `${name} is not in ${names}`);
    assert.equal(new Set(names).size, names.length);
    for (const name of names) {
      const made = await bytesOf(['quantize', source, '-', name, '--quiet']);
      assert.equal(made.subarray(0, 4).toString(), 'GGUF');
    }
  });

  test('an output that is full or cannot be created is reported', async () => {
    const nowhere = await wick(native, ['quantize', source, at('no/where'), 'q8_0']);
    assert.equal(nowhere.code, 3);
    assert.match(nowhere.stderr, /wick: cannot create .*no\/where: [^\n]*\n$/);
    const command = `"${built(native.program)}" quantize "${source}" - q8_0 --quiet > /dev/full`;
    const full = await run('/bin/sh', ['-c', command]);
    assert.equal(full.code, 3);
    assert.match(full.stderr, /^wick: cannot write -: [^\n]*\n$/);
    const folder = await wick(native, ['quantize', temporary, at('x.gguf'), 'q8_0']);
    assert.equal(folder.code, 3);
    assert.match(folder.stderr, /^wick: cannot read .*: [^\n]*\n$/);
    assert.ok(!existsSync(at('x.gguf')));
  });
});

// ---- the time of day ----

test('templates get the local time on any day and in any time zone', async () => {
  const template = at('now.jinja');
  writeFileSync(template, "{{ strftime_now('%Y-%m-%dT%H:%M:%S %j') }}");
  /** @param {string} day @param {string} zone as POSIX writes it @param {number} ahead of UTC, in minutes */
  const assertShown = async (day, zone, ahead) => {
    const seconds = Date.parse(`${day}Z`) / 1000;
    const env = { LD_PRELOAD: shim, SHIM_TIME_S: String(seconds), TZ: zone };
    const args = ['template', builtIn, '-p', '{"messages":[]}', '--template', template];
    const { stdout, stderr } = await run(built(native.program), args, { env });
    const local = new Date((seconds + 60 * ahead) * 1000);
    const first = Date.UTC(local.getUTCFullYear(), 0, 1);
    const number = Math.floor((local.getTime() - first) / 86_400_000) + 1;
    const wanted = `${local.toISOString().slice(0, 19)} ${String(number).padStart(3, '0')}`;
    assert.equal(stdout.toString(), wanted, `${day} ${zone} ${stderr}`);
  };
  for (const day of [
    ...['1970-01-02T00:00:01', '1999-12-31T23:59:59', '2000-02-29T12:00:00', '2000-12-31T23:00:00'],
    ...['2023-03-01T00:00:00', '2024-02-29T23:59:59', '2024-12-31T18:31:00', '2026-11-22T16:30:05'],
    ...['2100-02-28T23:59:59', '2100-03-01T00:00:00', '2400-02-29T07:08:09', '2401-01-01T00:00:00'],
  ]) {
    await assertShown(day, 'UTC0', 0);
    await assertShown(day, 'IST-5:30', 330);
    await assertShown(day, 'PST8', -480);
  }
});

test('chats also get the local time', async () => {
  const template = at('chat.jinja');
  writeFileSync(template, "{{ messages[0].content }} {{ strftime_now('%d %B %Y %H:%M') }}");
  const env = { LD_PRELOAD: shim, SHIM_TIME_S: '1709251199', TZ: 'UTC0' };
  const args = ['chat', builtIn, '-p', 'Once', '-n', '24', '--template', template];
  const { code, stdout, stderr } = await run(built(native.program), args, { env });
  assert.equal(code, 0, stderr);
  const prompt = 'Once 29 February 2024 23:59';
  const told = await textOf(['run', builtIn, '-p', prompt, '-n', '24']);
  assert.equal(stdout.toString(), `${told}\n`);
  const other = await textOf(['run', builtIn, '-p', 'Once 28 March 1999 00:00', '-n', '24']);
  assert.notEqual(other, told);
});

// ---- streams ----

describe('streams', () => {
  const prompt = ['-p', 'Once upon a time'];

  /** Counts the writes of a command to its streams. @param {string[]} args @param {string} [input] */
  async function writesOf(args, input) {
    const env = { LD_PRELOAD: shim, SHIM_WRITE_COUNT: at('writes') };
    const { code, stdout, stderr } = await run(built(native.program), args, { env, input });
    assert.equal(code, 0, stderr);
    return {
      writes: Number(readFileSync(at('writes'), 'utf8')),
      stdout: stdout.toString(),
      stderr,
    };
  }

  test('text and progress are shown as they arrive', async () => {
    const told = await writesOf(['run', builtIn, ...prompt, '-n', '40']);
    assert.ok(told.writes > 30, `${told.writes} writes for 40 tokens`);
    const chat = await writesOf(['chat', builtIn, '-n', '30'], 'Tell me a story.\n');
    assert.ok(chat.writes > 20, `${chat.writes} writes for 30 tokens`);
    const logprobs = await writesOf(['run', builtIn, ...prompt, '-n', '9', '--logprobs', '1']);
    assert.equal(logprobs.stderr.split('\n').length, 10);
    assert.ok(logprobs.writes >= 16, `${logprobs.writes} writes for 9 tokens and lines`);
    await textOf(['synth', 'tiny', 'f16', at('streams.gguf')]);
    const out = at('streams-out.gguf');
    const quantized = await writesOf(['quantize', at('streams.gguf'), out, 'q8_0']);
    assert.equal(quantized.writes, 21, 'one line for each of 20 tensors, and the total');
    const bench = [
      'bench',
      at('streams.gguf'),
      '-p',
      '2',
      '-n',
      '1',
      '-r',
      '1',
      '--threads',
      '1,1,1',
    ];
    assert.equal((await writesOf(bench)).writes, 3, 'one write for each number of threads');
    const help = await writesOf(['run', '--help']);
    assert.equal(help.writes, 1, 'output that is available immediately takes one write');
  });

  test('full or empty pipes and interrupted calls lose no data', async () => {
    const env = { LD_PRELOAD: shim, SHIM_PIECE_BYTES: '1000' };
    const text = 'Once upon a time there was a girl. '.repeat(50);
    const model = at('pieces.gguf');
    await textOf(['synth', 'tiny', 'q4_0', model]);
    for (const [args, input] of /** @type {[string[], string | Buffer][]} */ ([
      [['tokenize', builtIn], text],
      [['inspect', builtIn, '--json'], ''],
      [['inspect', '-'], readFileSync(model)],
      [['quantize', '-', '-', 'f32', '--requantize', '--quiet'], readFileSync(model)],
      [['run', builtIn, '-n', '12'], 'Once upon a time'],
      [['chat', builtIn, '-n', '12'], 'Tell me a story.\nWhy?'],
      [['logits', builtIn, '--tokens', '5,6,7', '--out', '-'], ''],
    ])) {
      const { code, stdout, stderr } = await run(built(native.program), args, { env, input });
      assert.deepEqual([code, stderr], [0, ''], args[0]);
      assert.ok(stdout.equals(await bytesOf(args, { input })), args[0]);
    }
    const refused = await run(built(native.program), ['run', at('none.gguf'), ...prompt], {
      env: { ...env, SHIM_PIECE_BYTES: '1' },
    });
    assert.equal(refused.code, 3);
    assert.match(refused.stderr, /^wick: cannot open .*none\.gguf: No such file or directory\n$/);
  });

  test('input may have any size up to 256 MiB', async () => {
    // the size of the first buffer, and one more byte
    for (const size of [65_535, 65_536, 65_537, 131_072, 200_001]) {
      const input = 'x y '.repeat(size / 4 + 1).slice(0, size);
      const ids = await textOf(['tokenize', builtIn, '--no-bos'], { input });
      const back = await textOf([
        'detokenize',
        builtIn,
        '--tokens',
        ids.slice(0, 100_000).replace(/ \d*$/, ''),
      ]);
      assert.ok(input.startsWith(back) && back.length > 10_000, `${size}`);
      const count = ids.split(' ').length;
      const [whole] = [
        (
          await textOf(['tokenize', builtIn, '--no-bos'], { input: input.slice(0, size - 2) })
        ).split(' '),
      ];
      assert.ok(count > whole.length, `${size}: the last bytes were ignored`);
    }
  });

  test('output larger than the buffer is written in order', async () => {
    const tokens = Array.from({ length: 60_000 }, (_, i) => 300 + (i % 500)).join(' ');
    const long = await textOf([
      'detokenize',
      builtIn,
      '--tokens',
      tokens.slice(0, 120_000).replace(/ \d*$/, ''),
    ]);
    assert.ok(long.length > 65_536, `${long.length} bytes`);
    const half = await textOf([
      'detokenize',
      builtIn,
      '--tokens',
      tokens.slice(0, 40_000).replace(/ \d*$/, ''),
    ]);
    assert.ok(half.length < 65_536 && long.startsWith(half));
    const ids = (await textOf(['tokenize', builtIn], { input: long })).trim();
    assert.ok(ids.length > 65_536);
    assert.match(ids, /^\d+( \d+)*$/);
  });
});

// ---- allocation failures ----

test('a failure of any allocation of a command is reported', async () => {
  const counted = at('calls');
  const text = at('memory.txt');
  writeFileSync(text, 'Once upon a time there was a girl.');
  const schema = at('memory.json');
  writeFileSync(schema, '{"enum": [1, 2]}');
  const tiny = at('memory.gguf');
  await textOf(['synth', 'tiny', 'f16', tiny]);
  const conversation = '{"messages": [{"role": "user", "content": "Hi"}]}';
  /** @type {string[][]} */
  const commands = [
    ['tokenize', builtIn, '-p', 'Once'],
    ['tokenize', builtIn, '-f', text],
    ['detokenize', builtIn, '--tokens', '5,6,7'],
    ['template', builtIn, '-p', conversation],
    ['run', builtIn, '-p', 'Once', '-n', '2', '--logprobs', '2', '--choice', 'a', '--choice', 'b'],
    ['run', builtIn, '-f', text, '-n', '1', '--json-schema', schema],
    ['chat', builtIn, '-p', 'Hi', '-n', '2', '--system', 'Be kind.'],
    ['logits', builtIn, '--tokens', '5,6', '--out', '-'],
    ['perplexity', builtIn, '-f', text],
    ['embed', builtIn, '-p', 'a', '-p', 'b', '--pooling', 'mean'],
    ['embed', builtIn, '-f', text, '--pooling', 'mean'],
    ['embed', builtIn, '--tokens', '5,6', '--pooling', 'mean'],
    ['quantize', tiny, '-', 'q8_0', '--quiet'],
    ['synth', 'tiny', 'q4_0', '-'],
    ['bench', tiny, '-p', '2', '-n', '1', '-r', '1', '--threads', '1'],
    ['constrain', '--regex', 'a'],
    ['inspect', builtIn],
  ];
  for (const command of commands) {
    const wanted = await bytesOf(command);
    let refused = 0;
    // the engine's allocations are aligned; allocation failures of the loader are tested elsewhere
    const hasFew = /^(synth|quantize|constrain)$/.test(command[0]);
    for (const kind of hasFew ? ['MALLOC', 'CALLOC', 'ALIGNED'] : ['MALLOC', 'CALLOC']) {
      for (let call = 1; call < 100; call++) {
        const env = {
          LD_PRELOAD: shim,
          [`SHIM_${kind}_FAILS`]: String(call),
          [`SHIM_${kind}_COUNT`]: counted,
        };
        const { code, signal, stdout, stderr } = await run(built(native.program), command, { env });
        const about = `${command.join(' ')}, ${kind} ${call}: ${stderr}`;
        assert.equal(signal, null, about);
        if (code === 0) {
          // the failed allocation is not the command's, or is for the list of token types, which readers do not need
          const isPlain = command[0] === 'synth' && !stdout.includes('tokenizer.ggml.token_type');
          if (command[0] !== 'bench' && !isPlain) assert.ok(stdout.equals(wanted), about);
          if (Number(readFileSync(counted, 'utf8')) <= call + 8) break;
          continue;
        }
        refused++;
        assert.equal(code, 4, about);
        assert.match(stderr, /^wick: [^\n]*memory[^\n]*\n$/, about);
      }
    }
    assert.ok(refused > 0, `${command[0]}: ${refused}`);
  }
});

test('every command frees its memory, whether it succeeds or fails', async () => {
  const counted = at('blocks');
  const tiny = at('blocks.gguf');
  const text = at('blocks.txt');
  writeFileSync(text, 'Once upon a time there was a girl.');
  await textOf(['synth', 'tiny', 'f16', tiny]);
  const [short, group] = [
    ['--mix', '4/2', '--requests', '2', '--rate', '0'],
    ['--short', '2x3/2'],
  ];
  const none = at('nowhere.gguf');
  /** @type {[number, string[]][]} */
  const commands = [
    [0, ['tokenize', builtIn, '-p', 'Once']],
    [0, ['detokenize', builtIn, '--tokens', '5,6']],
    [2, ['detokenize', builtIn, '--tokens', '5,-6']],
    [0, ['run', builtIn, '-f', text, '-n', '2', '--choice', 'a', '--logprobs', '2', '--stop', 'b']],
    [2, ['run', builtIn, '-p', 'a', '--regex', '(a']],
    [3, ['run', none, '-p', 'a']],
    [3, ['run', text, '-p', 'a']],
    [0, ['logits', builtIn, '--tokens', '5,6', '--out', at('blocks.f32')]],
    [2, ['logits', builtIn, '--tokens', '5,-6', '--out', '-']],
    [0, ['embed', builtIn, '-p', 'a', '--tokens', '5,6', '--pooling', 'mean']],
    [2, ['embed', builtIn, '-f', text, '--pooling', 'mean', '--dimensions', '100000']],
    [0, ['perplexity', builtIn, '-f', text, '--save', at('blocks.f32')]],
    [0, ['perplexity', builtIn, '-f', text, '--kl', at('blocks.f32')]],
    [0, ['quantize', tiny, at('blocks-q8_0.gguf'), 'q8_0']],
    [3, ['quantize', text, '-', 'q8_0']],
    [0, ['synth', 'tiny', 'q4_0', '-']],
    [0, ['constrain', '--regex', 'a', '--model', builtIn]],
    [2, ['constrain', '--regex', '(a', '--model', builtIn]],
    [0, ['inspect', builtIn, '--json']],
    [0, ['bench', tiny, '-p', '2', '-n', '2', '-r', '2', '--threads', '1,1']],
    [2, ['bench', tiny, '-p', '5000', '-r', '1', '--threads', '1']],
    [0, ['serve', builtIn, ...short]],
    [2, ['serve', builtIn, '--mix', '5000/2']],
    [0, ['convoy', builtIn, '--long', '1x9/2', ...group]],
    [0, ['saturation', builtIn, ...group]],
  ];
  for (const [wanted, command] of commands) {
    const env = { LD_PRELOAD: shim, SHIM_BLOCK_COUNT: counted };
    const { program } = /^(serve|convoy|saturation)$/.test(command[0]) ? lab : native;
    const { code, stderr } = await run(built(program), command, { env });
    assert.equal(code, wanted, `${command.join(' ')}: ${stderr}`);
    assert.equal(readFileSync(counted, 'utf8'), '0', `blocks not freed by ${command.join(' ')}`);
  }
});
