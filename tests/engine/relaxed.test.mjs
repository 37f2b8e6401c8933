// Hosts that compute relaxed SIMD wrongly, like V8 11 (Node 20 with its flag), or do not support it: Wick uses
// plain SIMD or reports an error, and never generates wrong text.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { built, hasRelaxedSimd, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';

const flag = '--experimental-wasm-relaxed-simd';
const model = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
const dist = (/** @type {string} */ file) => join(root, 'dist', file);

// Other versions do not have or need this flag.
const flagged = await run(process.execPath, [flag, '-e', '0']);
const noFlag = flagged.code === 0 ? false : `this Node, ${process.version}, has no ${flag}`;

/** @param {string[]} flags @param {string} script @returns {Promise<any>} its output, as JSON */
async function tell(flags, script) {
  const args = [...flags, '--input-type=module', '-e', script];
  const { code, stdout, stderr } = await run(process.execPath, args);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout.toString());
}

describe(`Node with ${flag}`, { skip: noFlag }, () => {
  test('the package gives the same text as without relaxed SIMD', async () => {
    const script = `
      const { createEngine } = await import(${JSON.stringify(pathToFileURL(dist('index.js')).href)});
      const engine = await createEngine({ file: ${JSON.stringify(model)}, threads: 1 });
      const { kernels } = await engine.info();
      const messages = [{ role: 'user', content: 'Tell me a story about a fox.' }];
      const { choices } = await engine.chat.completions.create({ messages, max_tokens: 60, temperature: 0 });
      console.log(JSON.stringify({ kernels, text: choices[0].message.content }));
      await engine.close();`;
    const plain = await tell([], script);
    const relaxed = await tell([flag], script);
    assert.ok(plain.text.length > 100, plain.text);
    assert.equal(relaxed.text, plain.text);
    assert.equal(relaxed.kernels, 'simd128');
  });

  test("the package's command gives the same text as without relaxed SIMD", async () => {
    const args = [dist('cli.js'), 'run', model, '-p', 'Once', '-n', '40', '--temp', '0'];
    const plain = await run(process.execPath, args);
    const relaxed = await run(process.execPath, [flag, ...args]);
    assert.equal(relaxed.code, 0, relaxed.stderr);
    assert.equal(relaxed.stdout.toString(), plain.stdout.toString());
    assert.ok(plain.stdout.length > 40);
  });
});

describe(`the relaxed WASI module in Node with ${flag}`, { skip: noFlag }, () => {
  test('the relaxed module rejects the model with an error about the dot product', async () => {
    const runner = join(root, 'tests/support/run_wasi.mjs');
    const folders = JSON.stringify({ '/models': join(root, 'examples/models') });
    const args = ['run', '/models/wick-2.6m-q8_0.gguf', '-p', 'Once', '-n', '20'];
    const module = built('wasi/wick-relaxed.wasm');
    const { code, stdout, stderr } = await run(process.execPath, [
      ...['--no-warnings', flag, runner, folders, module, ...args],
    ]);
    assert.equal(code, 3);
    assert.equal(stdout.length, 0);
    assert.match(
      stderr,
      /computes incorrectly: the kernels 'relaxed-\w+' .* the relaxed dot.*plain SIMD/,
    );
  });
});

describe('features.js', () => {
  const { Instance } = WebAssembly;
  const { validate } = WebAssembly;
  const right = (/** @type {number[]} */ ...[n, x, y]) => 7 + 4 * n * x * y;

  /** Returns the detected feature if the probe's dot products are `dots`. @param {(...n: number[]) => number} dots */
  async function detect(dots) {
    try {
      WebAssembly.validate = () => true;
      WebAssembly.Module = /** @type {any} */ (class {});
      WebAssembly.Instance = /** @type {any} */ (
        class {
          exports = { f: dots };
        }
      );
      const again = `../../js/base/host_features.js?${Math.random()}`;
      return (await import(again)).detectSimd();
    } finally {
      Object.assign(WebAssembly, { validate, Module, Instance });
    }
  }
  const { Module } = WebAssembly;

  test('relaxed SIMD is used if dot products are correct', async () => {
    assert.equal(await detect(right), 'relaxed');
  });

  test('the engine falls back if dot products are or become wrong', async () => {
    assert.equal(await detect((n, x, y) => 8 * x * y * Math.min(n, 1)), 'simd128');
    let calls = 0;
    assert.equal(await detect((...n) => right(...n) + (++calls < 150 ? 0 : 4)), 'simd128');
    const trap = () => assert.fail('a trap');
    assert.equal(await detect(trap), 'simd128');
  });
});

describe('examples/wasi/run.mjs', { skip: hasRelaxedSimd(process.execPath) }, () => {
  test('the error states what the relaxed module needs', async () => {
    const example = join(root, 'examples/wasi/run.mjs');
    const args = [example, built('wasi/wick-relaxed.wasm'), model, 'Once'];
    const { code, stdout, stderr } = await run(process.execPath, ['--no-warnings', ...args]);
    assert.equal(code, 3);
    assert.equal(stdout.length, 0);
    assert.match(stderr, /wick-relaxed.wasm does not run here.*relaxed SIMD/);
  });
});
