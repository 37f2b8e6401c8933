// Files of more than 4 GiB whose weights need less memory: each host reads only the weights, not the
// bytes between them.

import assert from 'node:assert/strict';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { native, plainHosts, wick } from '../support/cli.mjs';
import { locate, root } from '../support/locate.mjs';
import { openEngine } from '../support/package.mjs';
import { openPackagePage } from '../support/package_page.mjs';

const GAP_BYTES = 4.5 * 2 ** 30;
const folder = mkdtempSync(join(tmpdir(), 'wick-large-'));
after(() => rmSync(folder, { recursive: true }));
const small = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
const large = join(folder, 'large.gguf');
const PROMPT = 'Once upon a time';
const TOKENS = 8;

/** Writes the same model with a hole of 4.5 GiB before the tensor data. */
async function writeLarge() {
  const { stdout } = await wick(native, ['inspect', small, '--json']);
  const { tensors } = JSON.parse(stdout.toString());
  const bytes = readFileSync(small);
  const dataStart = Math.min(...tensors.map((/** @type {any} */ one) => one.offset_bytes));
  for (const { name, shape } of tensors) {
    // an entry has the name, the number of dimensions, the dimensions, the type, and the offset
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(name.length));
    const entry = Buffer.concat([length, Buffer.from(name)]);
    const at = bytes.indexOf(entry) + entry.length + 4 + 8 * shape.length + 4;
    bytes.writeBigUInt64LE(bytes.readBigUInt64LE(at) + BigInt(GAP_BYTES), at);
  }
  const file = openSync(large, 'w');
  writeSync(file, bytes, 0, dataStart, 0);
  writeSync(file, bytes, dataStart, bytes.length - dataStart, dataStart + GAP_BYTES);
  closeSync(file);
}

/** @param {import('../support/cli.mjs').Host} host @param {string} file @returns {Promise<string>} */
async function runOn(host, file) {
  const args = ['run', file, '-p', PROMPT, '-n', String(TOKENS), '--temp', '0'];
  const { code, stdout, stderr } = await wick(host, args, { folders: [folder] });
  assert.equal(code, 0, stderr);
  return stdout.toString();
}

describe('a file of more than 4 GiB', () => {
  /** @type {string} */
  let wanted;
  before(async () => {
    await writeLarge();
    assert.ok(statSync(large).size > 2 ** 32);
    wanted = await runOn(native, small);
  });

  for (const host of [native, ...plainHosts]) {
    test(host.name, { skip: host.skip }, async () => {
      assert.equal(await runOn(host, large), wanted);
    });
  }

  /** @param {import('../../js/index.js').Engine} engine */
  const textOf = (engine) => engine.generate(PROMPT, { maxTokens: TOKENS, temperature: 0 }).text();

  test('the package in Node: a file and a URL', async (t) => {
    const plain = await textOf(await openEngine(t, { file: small }));
    assert.equal(await textOf(await openEngine(t, { file: large })), plain);
    const server = await serve({ root: folder });
    t.after(() => server.close());
    assert.equal(
      await textOf(await openEngine(t, { url: `${server.url}large.gguf`, cache: false })),
      plain,
    );
  });

  describe('in Chromium', { skip: locate('chromium').skip }, () => {
    const page = openPackagePage(folder);
    test('a page loads the model from a URL', async () => {
      const found = await page.evaluate(
        async ({ prompt, maxTokens }) => {
          const { createEngine } = await import(/** @type {any} */ ('/wick-llm/index.js'));
          const engine = await createEngine({
            url: '/models/large.gguf',
            cache: false,
            threads: 1,
          });
          const text = await engine.generate(prompt, { maxTokens, temperature: 0 }).text();
          await engine.close();
          return text;
        },
        { prompt: PROMPT, maxTokens: TOKENS },
      );
      assert.equal(wanted.trim(), found.trim());
    });
  });
});
