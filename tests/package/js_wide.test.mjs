// Models that need more than 4 GiB: the 64-bit module gives bit-identical results, and is loaded if a plan needs it or
// memoryLimit allows more; models that do not fit in memory are rejected with the numbers and the reason. Tested in Node 24 and
// Chromium, which support 64-bit memory, and in the Node that runs the tests, which may not.

import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, launchFirefox, PATIENCE_MS } from '../support/browsers.mjs';
import { claimModel } from '../support/claimed_model.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import { createEngine, dist, modelPath, temporaryFolder } from '../support/package.mjs';
import { openPackagePage } from '../support/package_page.mjs';
import { run } from '../support/process.mjs';

const GiB = 2 ** 30;
const shared = locate('shared');
const node24 = locate('node24');
const folder = temporaryFolder();
const reference = join(shared.path, 'vectors/reference/models');

/** Writes the Wick model with a declared context size whose KV cache needs more than 4 GiB. */
function writeLongModel() {
  const bytes = readFileSync(modelPath);
  const at = bytes.indexOf('llama.context_length') + 'llama.context_length'.length + 4;
  bytes.writeUInt32LE(LONG_CONTEXT, at);
  const path = join(folder, 'long.gguf');
  writeFileSync(path, bytes);
  return path;
}
const LONG_CONTEXT = 3_000_000;
const long = writeLongModel();
const claimed = (/** @type {number} */ layers) => {
  const path = join(folder, `claimed-${layers}.gguf`);
  const { bytes, weightsBytes } = claimModel({ layers });
  writeFileSync(path, bytes);
  truncateSync(path, bytes.length + weightsBytes); // a hole
  return path;
};

/**
 * Returns answers that need every record of web/layout.mjs with addresses. Runs in pages and other processes, so it does not
 * use anything from this file.
 * @param {string} entry the package's entry point
 * @param {any} options of createEngine
 * @param {{canChat: boolean}} model
 */
async function answersOf(entry, options, { canChat }) {
  /** @type {typeof import('../../js/index.js')} */
  const { createEngine } = await import(entry);
  const engine = await createEngine(options);
  while (options.threads > (await engine.info()).threads) {
    await new Promise((settle) => setTimeout(settle, 20));
  }
  /** @type {number[]} */
  const sums = [];
  const logitsHook = (/** @type {Float32Array} */ logits) => {
    const bits = new Uint32Array(logits.buffer, logits.byteOffset, logits.length);
    sums.push(bits.reduce((sum, value) => (Math.imul(sum, 31) + value) >>> 0, 7));
  };
  /** @type {number[]} */
  const tokens = [];
  const onToken = (/** @type {{token: number}} */ { token }) => tokens.push(token);
  const greedy = { temperature: 0, maxTokens: 12, ignoreEnd: true };
  /** @type {Record<string, unknown>} */
  const found = {};
  await engine.generate([3, 4, 5, 6], { ...greedy, onToken, logitsHook }).text();
  if (canChat) {
    const sampled = { ...greedy, temperature: 0.9, seed: 5, logprobs: 2, logitBias: { 40: 2 } };
    const further = { stop: ['zz', 'the'], drySequenceBreakers: ['\n', '"'], dryMultiplier: 0.8 };
    found.sampled = await engine.generate('Once upon a time', { ...sampled, ...further }).text();
    const regex = '[a-z ]{5,12}\\.';
    found.constrained = await engine.generate('A fox', { ...greedy, regex }).text();
    const messages = [{ role: /** @type {const} */ ('user'), content: 'Tell me a story.' }];
    const request = { messages, max_tokens: 12, temperature: 0 };
    found.chat = (await engine.chat.completions.create(request)).choices[0].message.content;
    const vectors = await engine.embed(['a fox', 'a dog']);
    found.vectors = vectors.map((vector) => [...vector]);
    const session = await engine.createSession();
    await session.append('A long sentence that is saved.');
    const bytes = await session.save();
    await session.close();
    found.restored = (await engine.loadState(bytes)) !== null;
    found.stateBytes = bytes.length;
  }
  const { memory, kernels, threads } = await engine.info();
  await engine.close();
  return { answers: { tokens, sums, ...found, kernels, threads }, memory };
}

/** @param {string} script an expression whose value is printed @returns {Promise<any>} */
async function inNode24(script) {
  const args = ['--input-type=module', '-e', `console.log(JSON.stringify(await (${script})))`];
  const { code, stdout, stderr } = await run(node24.path, args);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout.toString());
}

const entry = pathToFileURL(join(dist, 'index.js')).href;
/** @param {object} options @param {{canChat: boolean}} model */
const answersInNode24 = (options, model) =>
  inNode24(`(${answersOf})(${[entry, options, model].map((one) => JSON.stringify(one))})`);

/** @param {object} options of createEngine @returns {Promise<{code: string, message: string, cause: any}>} */
const refusalInNode24 = (options) =>
  inNode24(`import(${JSON.stringify(entry)}).then(({ createEngine }) =>
    createEngine(${JSON.stringify(options)}).then(() => ({ code: 'loaded' }),
    ({ code, message, cause }) => ({ code, message, cause })))`);

describe('in Node 24', { skip: node24.skip }, () => {
  for (const threads of [1, 2]) {
    test(`results are bit-identical to those with 32-bit addresses (${threads} threads)`, async () => {
      const model = { canChat: true };
      const options = { file: modelPath, threads };
      const narrow = await answersInNode24(options, model);
      const wide = await answersInNode24({ ...options, memoryLimit: 5 * GiB }, model);
      assert.deepEqual(wide.answers, narrow.answers);
      assert.equal(narrow.answers.tokens.length, 12);
      assert.ok(narrow.memory.limitBytes < 4 * GiB);
      assert.equal(wide.memory.limitBytes, 5 * GiB);
      assert.deepEqual([narrow.memory.mostBytes, wide.memory.mostBytes], [16 * GiB, 16 * GiB]);
    });
  }

  for (const id of ['qwen3', 'gemma3', 'llama-moe', 'mamba', 'qwen35', 'deepseek2']) {
    test(`bit-identical results with ${id}`, { skip: shared.skip || !isFull }, async () => {
      const options = { file: join(reference, `${id}.gguf`), threads: 1, kvType: 'f32' };
      const narrow = await answersInNode24(options, { canChat: false });
      const wide = await answersInNode24({ ...options, memoryLimit: 5 * GiB }, { canChat: false });
      assert.deepEqual(wide.answers, narrow.answers);
      assert.equal(wide.memory.limitBytes, 5 * GiB);
    });
  }

  test('a plan over 4 GiB gets the memory it needs', async () => {
    const options = { file: long, threads: 2 };
    const narrow = await answersInNode24(options, { canChat: false });
    const wide = await answersInNode24(
      { ...options, contextSize: LONG_CONTEXT },
      { canChat: false },
    );
    assert.deepEqual(wide.answers, narrow.answers);
    assert.ok(narrow.memory.limitBytes < 4 * GiB);
    assert.ok(wide.memory.limitBytes > 15 * GiB, `${wide.memory.limitBytes}`);
  });

  test('errors contain the numbers and the reason', async () => {
    const beyond = await refusalInNode24({ file: claimed(200) });
    assert.equal(beyond.code, 'NOMEM', beyond.message);
    const [needed, limit] = beyond.cause.numbers;
    assert.ok(needed > 20e9 && limit > 15 * GiB && limit <= 16 * GiB, beyond.message);
    assert.match(beyond.message, /needs \d+ bytes .* the host's limit is \d+/);
    const kept = await refusalInNode24({ file: claimed(50), memoryLimit: 3e9 });
    assert.deepEqual([kept.code, kept.cause.numbers[1]], ['NOMEM', 3e9]);
    const wasm = join(folder, 'own.wasm');
    for (const part of ['', '-extras']) {
      const from = join(dist, `wasm/wick-relaxed-single${part}.wasm`);
      copyFileSync(from, join(folder, `own${part}.wasm`));
    }
    const address = pathToFileURL(wasm).href;
    const own = await refusalInNode24({ file: claimed(50), wasm: address, threads: 1 });
    assert.match(own.message, /host's limit .*cannot be used: .*own-wide\.wasm/);
    assert.equal(own.code, 'NOMEM');
  });

  test('the file of the 64-bit module can be passed directly', async () => {
    const wasm = pathToFileURL(join(dist, 'wasm/wick-simd128-wide.wasm')).href;
    const model = { canChat: false };
    for (const memoryLimit of [undefined, 5 * GiB]) {
      const options = { file: modelPath, threads: 1, wasm, memoryLimit };
      const { memory } = await answersInNode24(options, model);
      if (memoryLimit) assert.equal(memory.limitBytes, memoryLimit);
      else assert.ok(memory.limitBytes > 15 * GiB, `${memory.limitBytes}`);
    }
  });

  test('a draft model that exceeds 32-bit addresses together with the model needs memoryLimit', async () => {
    const refused = await refusalInNode24({ file: modelPath, draft: { file: claimed(50) } });
    assert.equal(refused.code, 'NOMEM');
    assert.match(
      refused.message,
      /already in a memory with 32-bit addresses. Set memoryLimit above 4 GiB/,
    );
    const [needed, limit] = refused.cause.numbers;
    assert.ok(needed > 5e9 && limit < 4 * GiB, refused.message);
  });

  test('a stream needs memoryLimit, because it can be read only once', async () => {
    const script = (/** @type {object} */ options) => `(async () => {
      const { createEngine } = await import(${JSON.stringify(entry)});
      const { openAsBlob } = await import('node:fs');
      const stream = (await openAsBlob(${JSON.stringify(long)})).stream();
      const options = ${JSON.stringify({ contextSize: LONG_CONTEXT, threads: 1, ...options })};
      const engine = await createEngine({ ...options, stream }).catch(({ code, message }) => ({ code, message }));
      const limitBytes = (await engine.info?.())?.memory.limitBytes;
      await engine.close?.();
      return limitBytes ?? engine;
    })()`;
    const refused = await inNode24(script({}));
    assert.equal(refused.code, 'NOMEM');
    assert.match(refused.message, /a stream can be read only once. Set memoryLimit above 4 GiB/);
    assert.equal(await inNode24(script({ memoryLimit: 10 * GiB })), 10 * GiB);
  });
});

test('a host without memory64 is reported', {
  skip: !WebAssembly.validate(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 5, 3, 1, 4, 1))
    ? false
    : 'this Node has memory64',
}, async () => {
  await assert.rejects(
    createEngine({ file: claimed(50), threads: 1 }),
    (/** @type {any} */ error) => {
      assert.equal(error.code, 'NOMEM');
      const [needed, limit] = error.cause.numbers;
      assert.ok(needed > 5e9 && limit < 4 * GiB);
      assert.match(error.message, /cannot be used: this host does not support .*\(memory64\)$/);
      return true;
    },
  );
});

for (const [name, launch] of /** @type {const} */ ([
  ['chromium', launchChromium],
  ['firefox', launchFirefox],
])) {
  test(`64-bit memory is also available on a page in ${name} without isolation`, {
    skip: locate(name).skip,
  }, async (t) => {
    const folders = {
      '/': join(root, 'tests/support/empty_page'),
      '/wick-llm/': dist,
      '/models/': folder,
    };
    const server = await serve({ root: folders, isolated: false });
    t.after(() => server.close());
    const browser = await launch();
    t.after(() => browser.close());
    const page = /** @type {any} */ (await browser.newPage()); // only members that exist in both drivers are used
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(server.url);
    const options = { url: '/models/long.gguf', cache: false };
    const given = [{}, { contextSize: LONG_CONTEXT }].map((more) =>
      JSON.stringify(['/wick-llm/index.js', { ...options, ...more }, { canChat: true }]),
    );
    const script = `(async () => {
      const found = [];
      for (const one of [${given}]) found.push(await (${answersOf})(...one));
      return found;
    })()`;
    const [narrow, wide] = await page.evaluate(script);
    assert.deepEqual(wide.answers, narrow.answers);
    assert.equal(wide.answers.threads, 1);
    assert.ok(wide.memory.limitBytes > 15 * GiB, `${wide.memory.limitBytes}`);
  });
}

describe('in Chromium', { skip: locate('chromium').skip }, () => {
  const page = openPackagePage(folder);

  test('a heap above 4 GiB gives bit-identical results (1 and 2 threads)', async () => {
    const support = join(root, 'tests/support/high/memory.js');
    copyFileSync(support, join(folder, 'memory.js'));
    const imports = "import '/models/memory.js';\nimport '/wick-llm/worker.js';\n";
    writeFileSync(join(folder, 'worker.js'), imports);
    for (const threads of [1, 2]) {
      const options = { url: '/models/long.gguf', cache: false, threads };
      const more = { memoryLimit: 12 * GiB, worker: '/models/worker.js' };
      const [low, high] = await page.evaluate(
        async ([source, own, ...both]) => {
          const run = new Function(`return ${source}`)();
          const found = [];
          for (const one of both) found.push(await run('/wick-llm/index.js', one, own));
          return found;
        },
        [`${answersOf}`, { canChat: true }, options, { ...options, ...more }],
      );
      assert.deepEqual(high.answers, low.answers);
      assert.ok(low.memory.linearBytes < GiB && high.memory.linearBytes > 4 * GiB);
    }
  });

  test('a model is cached during loading, and opened again without a server', async () => {
    const options = { url: '/models/long.gguf', contextSize: LONG_CONTEXT, threads: 1 };
    const visits = [{ cache: false }, { cache: true }, { cache: 'only' }];
    const [plain, ...kept] = await page.evaluate(
      async ([source, given, all]) => {
        const run = new Function(`return ${source}`)();
        const found = [];
        for (const more of all) {
          found.push(await run('/wick-llm/index.js', { ...given, ...more }, { canChat: true }));
        }
        return found;
      },
      /** @type {const} */ ([`${answersOf}`, options, visits]),
    );
    for (const { answers, memory } of kept) {
      assert.deepEqual(answers, plain.answers);
      assert.ok(memory.limitBytes > 15 * GiB, `${memory.limitBytes}`);
    }
  });

  test('results are bit-identical to those with 32-bit addresses, and a plan over 4 GiB is loaded', async () => {
    const answers = (/** @type {object} */ options) =>
      page.evaluate(
        ([source, ...given]) => new Function(`return ${source}`)()(...given),
        [
          `${answersOf}`,
          '/wick-llm/index.js',
          { url: '/models/long.gguf', cache: false, ...options },
          { canChat: true },
        ],
      );
    for (const threads of [1, 2]) {
      const narrow = await answers({ threads });
      const wide = await answers({ threads, contextSize: LONG_CONTEXT });
      assert.deepEqual(wide.answers, narrow.answers);
      assert.ok(narrow.memory.limitBytes < 4 * GiB);
      assert.ok(wide.memory.limitBytes > 15 * GiB, `${wide.memory.limitBytes}`);
    }
  });
});
