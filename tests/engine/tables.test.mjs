// Tables that stay in the model's file: the `wick` command and the package, in Node and in Chromium, give the same output
// as with tables in memory, even if only the layers fit.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readlinkSync,
  renameSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { e2b, writeGemma4 } from '../../tools/bench/gemma4_file.mjs';
import { native, plainHosts, relaxedHosts, smallHosts, wick } from '../support/cli.mjs';
import { isFull } from '../support/level.mjs';
import { built, locate } from '../support/locate.mjs';
import { createEngine, hasCode, openEngine, sleep, temporaryFolder } from '../support/package.mjs';
import { openPackagePage } from '../support/package_page.mjs';

/** @param {string} code @param {RegExp} message */
const isError = (code, message) => (/** @type {any} */ error) => {
  assert.match(error.message, message);
  return hasCode(code)(error);
};

const folder = temporaryFolder();
const path = join(folder, 'gemma4.gguf');
const shape = {
  ...{ ...e2b, layers: 3, hidden: 64, ffn: 128, heads: 2, headDim: 32, windowHeadDim: 32 },
  ...{ vocab: 4096, context: 512, window: 64 },
};
/** The bytes of the table in Q8_0. */
const TABLE_BYTES = (shape.vocab * shape.layers * shape.perLayer * 34) / 32;
/** Links to all open files of this process, on systems that have this folder. */
const OPEN_FILES = '/proc/self/fd';
const PROMPT = 'abc abd';
/** The sampled token depends on all logits. */
const request = { maxTokens: 24, seed: 1, temperature: 1, ignoreEnd: true };

before(() => writeGemma4(path, shape));

/** Files in the shared folder, by their kind of tables. */
const models = {
  'per-layer embeddings of Gemma 4': 'reference/models/gemma4-ple.gguf',
  'per-layer embeddings of Gemma 3n': 'reference-more/models/gemma3n.gguf',
  'a separate output': 'reference/models/llama-256-Q4_K_M.gguf',
  'files of a split model': 'reference/split/llama-small-F16-00001-of-00003.gguf',
};

describe('the `wick` command', () => {
  const hosts = [native, ...(isFull ? [...plainHosts, ...relaxedHosts] : [relaxedHosts[0]])];
  for (const host of hosts) {
    test(`the text is the same with tables in the file: ${host.name}`, {
      skip: host.skip,
    }, async (t) => {
      const shared = locate('shared');
      const files = shared.skip
        ? []
        : Object.values(models).map((name) => join(shared.path, 'vectors', name));
      for (const file of [path, ...files]) {
        const run = async (/** @type {string} */ where) => {
          const args = ['run', file, '-p', 'abc abd', '-n', '8', '--logprobs', '2'];
          const found = await wick(host, [...args, '--tables', where], { folders: [folder] });
          assert.equal(found.code, 0, found.stderr);
          // Deno writes a warning about WASI to the same stream
          const logprobs = found.stderr.split('\n').filter((line) => line.startsWith('{'));
          assert.equal(logprobs.length, 8, found.stderr);
          return { text: found.stdout.toString('latin1'), logprobs };
        };
        assert.deepEqual(await run('outside'), await run('inside'), file);
      }
      if (shared.skip) t.diagnostic('without the shared folder: one model alone');
    });
  }

  test('inspect shows which tables stay in the file', async () => {
    const args = ['inspect', path, '--json'];
    const plan = async (/** @type {string[]} */ more) => {
      const { stdout } = await wick(native, [...args, ...more]);
      return JSON.parse(stdout.toString()).info.plan;
    };
    const inside = await plan([]);
    const outside = await plan(['--tables', 'outside']);
    assert.equal(inside.outside_bytes, 0);
    assert.equal(outside.outside_bytes, TABLE_BYTES);
    assert.ok(inside.weights_bytes - outside.weights_bytes >= TABLE_BYTES * 0.99);
    const { stdout } = await wick(native, ['inspect', path, '--tables', 'outside']);
    assert.match(stdout.toString(), /tables outside +3\.34 MB of the file, not in the total/);
  });

  test('standard input and the small program are rejected with an error that names them', async () => {
    const piped = await wick(native, ['run', '-', '-p', 'a', '--tables', 'outside'], { input: '' });
    assert.equal(piped.code, 2);
    assert.match(piped.stderr, /--tables outside: standard input cannot be read while/);
    const small = smallHosts.find(({ skip }) => !skip);
    if (!small) return;
    const args = ['run', path, '-p', 'a', '--tables', 'outside'];
    const refused = await wick(small, args, { folders: [folder] });
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /keeping tables outside is not in this program; wick-full\.wasm/);
  });

  test('a truncated file is reported with the tensor and offset', async () => {
    const cut = join(folder, 'cut.gguf');
    copyFileSync(path, cut);
    truncateSync(cut, 2_000_000);
    const { code, stderr } = await wick(native, ['run', cut, '-p', 'a', '--tables', 'outside']);
    assert.notEqual(code, 0);
    assert.match(stderr, /per_layer_token_embd\.weight|blk\./);
  });

  /** Returns the error of a chat whose file changes between two questions. @param {string} file @param {() => void} change */
  async function toldAfter(file, change) {
    const template = join(folder, 'template.jinja');
    copyFileSync(path, file);
    writeFileSync(template, '{{ messages[-1].content }}');
    const args = ['chat', file, '--tables', 'outside', '-n', '4', '--template', template];
    const child = spawn(built('native/wick'), args);
    let told = '';
    child.stderr.on('data', (bytes) => (told += bytes));
    child.stdin.write('abc\n');
    await once(child.stdout, 'data');
    change();
    child.stdin.end('abd\n');
    child.stdout.resume();
    const [code] = await once(child, 'close');
    return { code, told };
  }

  test('a file that is truncated while it is open is reported as such', async () => {
    const file = join(folder, 'cut-later.gguf');
    const { told } = await toldAfter(file, () => {
      truncateSync(file, 0);
      utimesSync(file, 1, 1);
    });
    assert.match(told, /could not be read: the file ends at byte \d+ of file 1/);
  });

  test('a file that is modified while it is open is no longer read', async () => {
    const file = join(folder, 'written-later.gguf');
    const later = Date.now() / 1000 + 100;
    const { code, told } = await toldAfter(file, () => utimesSync(file, later, later));
    assert.match(told, /could not be read: /);
    assert.notEqual(code, 0);
    assert.equal(
      (await toldAfter(file, () => utimesSync(file, 1, 1))).told.includes('read'),
      false,
    );
  });
});

describe('the package in Node', () => {
  /** @param {import('../../js/index.js').Engine} engine */
  const say = (engine) => engine.generate(PROMPT, request).text();

  test('the text is the same if only the layers fit', async (t) => {
    const inside = await openEngine(t, { file: path, tables: 'inside' });
    const wanted = await say(inside);
    const { plan, memory } = await inside.info();
    assert.equal(plan?.outsideBytes, 0);
    const memoryLimit = (plan?.totalBytes ?? 0) - TABLE_BYTES / 2;
    const outside = await openEngine(t, { file: path, memoryLimit });
    const told = await outside.info();
    assert.equal(told.plan?.outsideBytes, TABLE_BYTES);
    assert.equal(await say(outside), wanted);
    assert.equal(await say(outside), wanted);
    const after = await outside.info();
    assert.ok(after.memory.peakBytes <= memoryLimit, `${after.memory.peakBytes}`);
    assert.ok(memory.peakBytes - after.memory.peakBytes > TABLE_BYTES * 0.9);
    assert.ok(memory.linearBytes - after.memory.linearBytes > TABLE_BYTES * 0.8);
    await assert.rejects(
      createEngine({ file: path, memoryLimit, tables: 'inside' }),
      hasCode('NOMEM'),
    );
  });

  test('logits of the whole vocabulary are the same after the prompt and after each token', async (t) => {
    const shared = locate('shared');
    const names = shared.skip ? [] : Object.values(models).slice(0, 3);
    const files = [path, ...names.map((name) => join(shared.path, 'vectors', name))];
    for (const file of files) {
      const logitsOf = async (/** @type {'inside' | 'outside'} */ tables) => {
        const engine = await openEngine(t, { file, tables });
        /** @type {Float32Array[]} */
        const seen = [];
        const logitsHook = (/** @type {Float32Array} */ logits) => {
          seen.push(logits.slice());
        };
        await engine.generate(PROMPT, { ...request, maxTokens: 6, logitsHook }).text();
        return { seen, outsideBytes: (await engine.info()).plan?.outsideBytes ?? 0 };
      };
      const [inside, outside] = [await logitsOf('inside'), await logitsOf('outside')];
      assert.equal(inside.outsideBytes, 0, file);
      assert.ok(outside.outsideBytes > 0, file);
      assert.equal(inside.seen.length, 6, file);
      assert.deepEqual(outside.seen, inside.seen, file);
    }
    if (shared.skip) t.diagnostic('without the shared folder: one model alone');
  });

  test('sessions, saved states and threads continue with tables outside', async (t) => {
    const inside = await openEngine(t, { file: path, tables: 'inside' });
    const outside = await openEngine(t, { file: path, tables: 'outside', threads: 2 });
    const session = await inside.createSession();
    await session.prompt(PROMPT, { ...request, maxTokens: 4 }).text();
    const state = await session.save();
    const { session: moved } = await outside.loadState(state);
    const more = { ...request, maxTokens: 12 };
    const wanted = await session.prompt('abe', more).text();
    assert.equal(await moved?.prompt('abe', more).text(), wanted);
  });

  test('sources that cannot be read while the model runs are rejected, or tables stay in memory', async (t) => {
    const { readFileSync } = await import('node:fs');
    const bytes = readFileSync(path);
    const refused = isError('UNSUPPORTED', /tables: 'outside' needs a model that can be read/);
    await assert.rejects(createEngine({ bytes, tables: 'outside', threads: 1 }), refused);
    const engine = await openEngine(t, { bytes, tables: 'auto' });
    assert.equal((await engine.info()).plan?.outsideBytes, 0);
    const wrong = /** @type {any} */ ('elsewhere');
    await assert.rejects(createEngine({ bytes, tables: wrong }), isError('ARG', /tables must be/));
  });

  test('a file truncated during a run ends the request with a typed error', async (t) => {
    const file = join(folder, 'shortened.gguf');
    copyFileSync(path, file);
    const { atime, mtime } = statSync(file);
    utimesSync(file, atime, mtime); // rounded to milliseconds, which can be restored
    const engine = await openEngine(t, { file, tables: 'outside' });
    const wanted = await say(engine);
    truncateSync(file, 400_000);
    utimesSync(file, atime, mtime);
    const fails = async () => engine.generate(PROMPT, request).text();
    await assert.rejects(
      fails,
      isError('IO', /row \d+ of the tensor 'per_layer_token_embd\.weight'.* at byte \d+ of file 1/),
    );
    copyFileSync(path, file);
    utimesSync(file, atime, mtime);
    assert.equal(await say(engine), wanted);
  });

  test('a modified file is rejected; a replacement with the same name has no effect', async (t) => {
    const file = join(folder, 'changed.gguf');
    copyFileSync(path, file);
    const engine = await openEngine(t, { file, tables: 'outside' });
    renameSync(file, join(folder, 'moved.gguf')); // before any row is read
    writeFileSync(file, Buffer.alloc(statSync(path).size));
    const inside = await openEngine(t, { file: path, tables: 'inside' });
    assert.equal(await say(engine), await say(inside));
    utimesSync(join(folder, 'moved.gguf'), 1, 1);
    await assert.rejects(say(engine), isError('IO', /reading failed at byte \d+ of file 1/));
  });

  test('tables of small files stay in memory, also in a plan without weights', async (t) => {
    const { size } = statSync(path);
    for (const directoryOnly of [false, true]) {
      const small = { file: path, directoryOnly, memoryLimit: 8 * size };
      const engine = await openEngine(t, small);
      assert.equal((await engine.info()).plan?.outsideBytes, 0);
    }
    const wanted = { file: path, directoryOnly: true, tables: /** @type {const} */ ('outside') };
    const planned = await openEngine(t, wanted);
    assert.equal((await planned.info()).plan?.outsideBytes, TABLE_BYTES);
  });
});

describe("the model's file", { skip: existsSync(OPEN_FILES) ? false : `no ${OPEN_FILES}` }, () => {
  /** Waits until this process has the file open `wanted` times; streams close it shortly after the end. @param {number} wanted */
  const isOpen = async (wanted) => {
    const count = () =>
      readdirSync(OPEN_FILES).filter((name) => {
        try {
          return readlinkSync(join(OPEN_FILES, name)) === path;
        } catch {
          return false; // closed in the meantime
        }
      }).length;
    for (let i = 0; i < 100 && count() !== wanted; i++) await sleep(20);
    assert.equal(count(), wanted);
  };

  /** @type {Record<string, {options: object, times: number}>} */
  const cases = {
    'a small file': { options: {}, times: 0 },
    'a file that fits, though it is large compared with the limit': {
      options: { memoryLimit: 1 },
      times: 0,
    },
    'only a plan': { options: { tables: 'outside', directoryOnly: true }, times: 0 },
    'tables outside': { options: { tables: 'outside' }, times: 1 },
  };
  for (const [name, { options, times }] of Object.entries(cases)) {
    test(`stays open ${times === 0 ? 'only while it loads' : 'until the engine closes'}: ${name}`, async (t) => {
      const inside = await createEngine({ file: path, threads: 1, tables: 'inside' });
      const fits = ((await inside.info()).plan?.totalBytes ?? 0) * 1.05;
      await inside.close();
      const limit = 'memoryLimit' in options ? { memoryLimit: Math.ceil(fits) } : {};
      const engine = await openEngine(t, { file: path, ...options, ...limit });
      await isOpen(times);
      assert.equal(((await engine.info()).plan?.outsideBytes ?? 0) > 0, 'tables' in options);
      await engine.close();
      await isOpen(0);
    });
  }

  test('the file is closed if loading fails', async () => {
    const memoryLimit = 400_000;
    await assert.rejects(createEngine({ file: path, threads: 1, memoryLimit }), hasCode('NOMEM'));
    await isOpen(0);
  });
});

describe('the package in Chromium', () => {
  const page = openPackagePage(folder);

  test('a Blob and a stored model give the same text if only the layers fit', async () => {
    const found = await page.evaluate(
      async ({ prompt, request, tableBytes }) => {
        const entry = '/wick-llm/index.js';
        const { createEngine } = await import(entry);
        const address = new URL('/models/gemma4.gguf', document.baseURI).href;
        const blob = await (await fetch(address)).blob();
        /** @param {object} options */
        const say = async (options) => {
          const engine = await createEngine(options);
          const said = await engine.generate(prompt, request).text();
          let logits = '';
          const logitsHook = (/** @type {Float32Array} */ seen) => {
            logits += seen.join();
          };
          await engine.generate(prompt, { ...request, maxTokens: 3, logitsHook }).text();
          const { plan, memory } = await engine.info();
          await engine.close();
          return { said, logits, plan, peak: memory.peakBytes };
        };
        const inside = await say({ blob, tables: 'inside', threads: 1 });
        const memoryLimit = inside.plan.totalBytes - tableBytes / 2;
        const all = { inside, blob: await say({ blob, memoryLimit }) };
        // the first visit fetches and stores the model, the second reads the stored file
        const fetched = await say({ url: address });
        const kept = await say({ url: address, memoryLimit, cache: 'only' });
        const threads = await say({ url: address, memoryLimit, threads: 2 });
        return { ...all, fetched, kept, threads, memoryLimit };
      },
      { prompt: PROMPT, request, tableBytes: TABLE_BYTES },
    );
    const { inside, fetched, memoryLimit, ...outside } = found;
    assert.equal(inside.plan.outsideBytes, 0);
    assert.equal(fetched.plan.outsideBytes, 0);
    assert.equal(fetched.said, inside.said);
    assert.ok(inside.logits.length > 3 * shape.vocab);
    assert.ok(fetched.logits === inside.logits);
    for (const [name, { said, logits, plan, peak }] of Object.entries(outside)) {
      assert.equal(plan.outsideBytes, TABLE_BYTES, name);
      assert.equal(said, inside.said, name);
      assert.ok(logits === inside.logits, `${name}: logits differ`);
      assert.ok(peak <= memoryLimit, `${name}: ${peak}`);
    }
  });
});
