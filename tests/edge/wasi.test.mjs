// The command-line program as a WASI module in every runtime: the model is read from a file and from a pipe.
// Also runs examples/wasi.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import {
  extraHosts,
  native,
  plainHosts,
  relaxedHosts,
  smallHosts,
  temporaryFolder,
  wick,
} from '../support/cli.mjs';
import { built, locate, root } from '../support/locate.mjs';
import { run, wasiRuntimes } from '../support/process.mjs';

const shared = locate('shared');
const stories = join(shared.path, 'vectors/stories260K');
const temporary = temporaryFolder();
const prompt = ['-p', 'Once upon a time'];

/**
 * @param {import('../support/cli.mjs').Host} host @param {string[]} args
 * @param {Parameters<typeof wick>[2]} [options]
 */
async function text(host, args, options) {
  const { code, stdout, stderr } = await wick(host, args, { folders: [temporary], ...options });
  assert.equal(code, 0, stderr);
  return stdout.toString();
}

/** Output of the same module in other hosts. @type {Map<string, string>} */
const said = new Map();

for (const host of [plainHosts[0], relaxedHosts[0], ...smallHosts, ...extraHosts]) {
  const float = join(stories, 'stories260K-f32.gguf');
  const quantised = join(stories, 'stories260K-q8_0.gguf');

  describe(host.name, { skip: shared.skip || host.skip }, () => {
    test('a model in a file generates the published story', async () => {
      const story = await text(host, ['run', float, '-p', '', '-n', '100', '--kv', 'f32']);
      const published = readFileSync(join(stories, 'greedy-256.txt'), 'utf8');
      assert.ok(story.length > 200 && published.startsWith(story), story);
    });

    test('a model from a pipe gives the same text in every runtime', async () => {
      const args = ['run', '-', ...prompt, '-n', '60'];
      const story = await text(host, args, { input: readFileSync(quantised) });
      const wanted = said.get(host.program) ?? story;
      said.set(host.program, wanted);
      assert.equal(story, wanted);
      assert.match(story, /^, there was a little girl/);
    });

    test('decoding does not allocate, and memory stays within the plan', async () => {
      const args = ['run', float, ...prompt, '-n', '40', '--stats'];
      const { stderr } = await wick(host, args, { folders: [temporary] });
      const [line] = /^\{"load_ms.*$/m.exec(stderr) ?? []; // Deno may add its own warnings
      assert.ok(line, stderr);
      const stats = JSON.parse(line);
      assert.equal(stats.decode_allocations, 0);
      assert.match(stats.kernels, host.program.includes('relaxed') ? /^relaxed/ : /^simd128/);
      assert.ok(stats.memory_bytes_peak <= 1.1 * stats.memory_bytes_planned);
    });

    test('keys and values may have different types', {
      skip: !host.program.includes('full'),
    }, async () => {
      const shown = await text(host, ['inspect', float, '--json', '--kv', 'q8:f16']);
      const { k_type, v_type } = JSON.parse(shown).info;
      assert.deepEqual([k_type, v_type], ['q8', 'f16']);
      const said = await text(host, ['run', float, ...prompt, '-n', '8', '--kv', 'q8:f16']);
      assert.ok(said.length > 8);
    });

    test('exit codes and messages are passed on', async () => {
      const { code, stderr, stdout } = await wick(host, [
        'run',
        float,
        '--threads',
        '2',
        ...prompt,
      ]);
      assert.equal(code, 2);
      assert.match(stderr, /--threads 2: the limit here is 1/);
      assert.equal(stdout.length, 0);
      const missing = await wick(host, ['run', join(root, 'none.gguf'), ...prompt]);
      assert.equal(missing.code, 3);
      assert.match(missing.stderr, /cannot open .*none.gguf/);
    });
  });
}

describe('the output of a module', { skip: shared.skip }, () => {
  const host = plainHosts[0];

  test('a synthetic model is byte-identical to the native one', async () => {
    const [here, there] = [join(temporary, 'native.gguf'), join(temporary, 'wasi.gguf')];
    await text(native, ['synth', 'tiny', 'q4_k_m', here]);
    await text(host, ['synth', 'tiny', 'q4_k_m', there]);
    assert.ok(readFileSync(here).equals(readFileSync(there)));
  });

  test('tokens and tables equal the native ones', async () => {
    const model = join(shared.path, 'vectors/vocab/ggml-vocab-llama-bpe.gguf');
    for (const args of [
      ['tokenize', model, '-p', 'Hello, wörld! 你好'],
      ['inspect', model],
    ]) {
      assert.equal(await text(host, args), await text(native, args));
    }
  });
});

describe('examples/wasi', { skip: shared.skip }, () => {
  const model = join(stories, 'stories260K-q8_0.gguf');
  const examples = {
    node: { runtime: 'node', file: 'run.mjs', flags: ['--no-warnings'] },
    deno: { runtime: 'deno', file: 'run.mjs', flags: ['run', '--quiet', '-A'] },
    bun: { runtime: 'bun', file: 'run.mjs', flags: [] },
    wasmtime: { runtime: 'wasmtime', file: 'run.py', flags: [] },
  };
  for (const [name, { runtime, file, flags }] of Object.entries(examples)) {
    const { path, skip } = wasiRuntimes[runtime].find();
    test(`${name} generates a story`, { skip }, async () => {
      const example = join(root, 'examples/wasi', file);
      const args = [...flags, example, built('wasi/wick.wasm'), model, 'Once upon a time'];
      const { code, stdout, stderr } = await run(path, args);
      assert.equal(code, 0, stderr);
      assert.match(stdout.toString(), /^, there was a little girl/);
    });
  }
});

describe('the relaxed module without relaxed SIMD', () => {
  const module = built('wasi/wick-relaxed.wasm');
  /** @type {Record<string, {args: string[], words: RegExp}>} */
  const runtimes = {
    wasmtimeCommand: { args: ['run', '-W', 'relaxed-simd=n'], words: /relaxed SIMD/i },
    wasmedge: { args: [], words: /requires enabling Relaxed SIMD/ },
    // wazero decodes these instructions as different ones
    wazero: { args: ['run'], words: /error compiling wasm binary: invalid function/ },
  };
  for (const [name, { args, words }] of Object.entries(runtimes)) {
    const { path, skip } = locate(name);
    test(`${name} rejects the module`, { skip }, async () => {
      const { code, stdout, stderr } = await run(path, [...args, module, 'run', '-', ...prompt]);
      assert.notEqual(code, 0);
      assert.match(`${stdout}${stderr}`, words);
    });
  }
});
