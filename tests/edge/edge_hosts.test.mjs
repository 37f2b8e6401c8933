// The servers in examples/ in workerd, Deno, Bun and Node: each gives the same answers as an engine in Node, to many
// clients at once, and is not affected by clients that disconnect or send invalid requests.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { claimModel } from '../support/claimed_model.mjs';
import {
  ask,
  exampleServers,
  readEvents,
  residentOf,
  startWorkerd,
  startWorkerOf,
} from '../support/example_servers.mjs';
import {
  bodyAbout,
  messagePartOf,
  skip as noVectors,
  partOf,
  refusedParts,
  texts,
  typeOf,
} from '../support/media_files.mjs';
import {
  createEngine,
  dist,
  modelPath,
  synthesize,
  temporaryFolder,
  waitUntil,
} from '../support/package.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

const root = resolve(fileURLToPath(new URL('../..', import.meta.url)));
const CHAT = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'Tell me a story about a fox.' }];
const folder = temporaryFolder();
/** KV cache size of 16 tokens of the demo model. */
const PAGE_KB = 32;

/** Returns the response of an engine in Node. @type {(path: string, body: object) => Promise<any>} */
let reference;
/** @type {import('../../js/index.js').Engine} */
let engine;
before(async () => {
  engine = await createEngine({ file: modelPath, threads: 1 });
  const handle = createHandler(engine);
  reference = async (path, body) => {
    const init = { method: 'POST', body: JSON.stringify(body) };
    const headers = { 'content-type': 'application/json' };
    return (await handle(new Request(`http://wick.test${path}`, { ...init, headers }))).json();
  };
});
after(() => engine.close());

/** @param {any} answer @returns {object} the members that do not depend on time and server */
const constant = ({ choices, usage: { completion_tokens } = /** @type {any} */ ({}) }) => ({
  choices,
  completion_tokens,
});

/** @param {string} origin */
const atRest = (origin) =>
  waitUntil(async () => {
    const page = await (await fetch(`${origin}/metrics`)).text();
    return /^wick_http_generations 0$/m.test(page) && /\{state="running"\} 0$/m.test(page);
  }, 'all requests to end');

for (const [name, { skip, queueLimit, hearsAtOnce, start }] of Object.entries(exampleServers)) {
  describe(name, { skip }, () => {
    /** @type {import('../support/example_servers.mjs').Started} */
    let server;
    before(async () => {
      server = await start();
    });
    after(() => server.close());
    /** @param {string} path @param {unknown} body @param {RequestInit} [init] */
    const post = (path, body, init) => ask(server.origin, path, body, init);

    test('a chat completion is the same as in Node, streamed and not', async () => {
      for (const body of [
        { messages, temperature: 0, max_tokens: 60 },
        { messages, seed: 5, max_tokens: 30, n: 2, logprobs: true, top_logprobs: 1 },
      ]) {
        const response = await post(CHAT, body);
        assert.equal(response.status, 200);
        const whole = await response.json();
        assert.deepEqual(constant(whole), constant(await reference(CHAT, body)));
      }
      const body = { messages, temperature: 0, max_tokens: 60 };
      const { text, isWhole } = readEvents(
        await (await post(CHAT, { ...body, stream: true })).text(),
      );
      assert.equal(isWhole, true);
      assert.equal(text, (await reference(CHAT, body)).choices[0].message.content);
    });

    test('completions and embeddings are the same as in Node', async () => {
      for (const [path, body] of /** @type {[string, object][]} */ ([
        ['/v1/completions', { prompt: ['Once', 'The'], seed: 2, max_tokens: 20 }],
        ['/v1/embeddings', { input: ['a fox', 'a hen'] }],
      ])) {
        const { data, choices } = await (await post(path, body)).json();
        const theirs = await reference(path, body);
        assert.deepEqual({ data, choices }, { data: theirs.data, choices: theirs.choices });
      }
    });

    test('concurrent clients each receive their own answer', async () => {
      const bodies = Array.from({ length: 12 }, (_, seed) => ({
        ...{ prompt: `Story ${seed}`, seed, max_tokens: 40, stream: seed % 2 === 0 },
      }));
      const texts = await Promise.all(
        bodies.map(async (body) => {
          const response = await post('/v1/completions', body);
          if (body.stream) return readEvents(await response.text()).text;
          return (await response.json()).choices[0].text;
        }),
      );
      for (const [index, body] of bodies.entries()) {
        const theirs = await reference('/v1/completions', { ...body, stream: false });
        assert.equal(texts[index], theirs.choices[0].text);
      }
      assert.equal(new Set(texts).size, 12);
    });

    test('a disconnected client frees its request', async () => {
      for (const stream of hearsAtOnce ? [true, false] : [true]) {
        const controller = new AbortController();
        const { signal } = controller;
        const body = { prompt: 'Once upon', max_tokens: 4000, logit_bias: { 0: -100, 2: -100 } };
        const asked = post('/v1/completions', { ...body, stream }, { signal });
        if (stream) await (await asked).body?.getReader().read();
        else {
          await waitUntil(async () => {
            const page = await (await fetch(`${server.origin}/metrics`)).text();
            return /^wick_http_generations 1$/m.test(page);
          }, 'the request to start');
        }
        controller.abort();
        await asked.catch(() => {});
        await atRest(server.origin);
      }
    });

    test('invalid requests are rejected, and a full queue results in 429', async () => {
      for (const [body, status] of /** @type {[unknown, number][]} */ ([
        ['{"messages":', 400],
        ['\xff', 400],
        ['[]', 400],
        [{ messages: 'none' }, 400],
        [{ messages, tempo: 1 }, 400],
        [{ messages, max_tokens: 0 }, 400],
      ])) {
        const response = await post(CHAT, body);
        assert.equal(response.status, status, JSON.stringify(body));
        assert.equal(typeof (await response.json()).error.message, 'string');
      }
      const controller = new AbortController();
      const endless = { prompt: 'Once upon', max_tokens: 4000, logit_bias: { 0: -100, 2: -100 } };
      const { signal } = controller;
      const streams = Array.from({ length: queueLimit }, () =>
        post('/v1/completions', { ...endless, stream: true }, { signal }),
      );
      await waitUntil(async () => {
        const page = await (await fetch(`${server.origin}/metrics`)).text();
        return new RegExp(`^wick_http_generations ${queueLimit}$`, 'm').test(page);
      }, 'a full queue');
      const refused = await post(CHAT, { messages, max_tokens: 4 });
      assert.equal(refused.status, 429);
      assert.equal(refused.headers.get('Retry-After'), '1');
      controller.abort();
      await Promise.allSettled(streams);
      // in workerd, requests of disconnected clients end only with the next request, because no code runs
      // between requests
      await waitUntil(
        async () => (await post(CHAT, { messages, max_tokens: 4 })).status === 200,
        'space in the queue',
      );
      await atRest(server.origin);
    });
  });
}

const workerd = exampleServers['examples/workers in workerd'];

describe('workerd', { skip: workerd.skip }, () => {
  test('a model that is too large for the isolate is rejected before its weights are read', async (t) => {
    const { bytes, weightsBytes } = claimModel({ layers: 8 });
    assert.ok(weightsBytes > 128e6);
    const model = join(folder, 'large.gguf');
    writeFileSync(model, bytes);
    truncateSync(model, bytes.length + weightsBytes);
    const server = await workerd.start(model);
    t.after(() => server.close());
    const response = await ask(server.origin, CHAT, { messages });
    assert.equal(response.status, 503);
    const { error } = await response.json();
    assert.equal(error.code, 'NOMEM');
    assert.match(
      error.message,
      /isolateBytes is 128000000, of which JavaScript and the module need/,
    );
    const reads = server.output().match(/^\d+ \d+$/gm);
    assert.deepEqual(reads, ['0 4194304']);
    assert.ok(residentOf(server.pid).peakKb < 140_000);
  });

  test('a model with the shape of SmolLM2-135M in Q4_0 needs at most 128 MB more than an empty worker', async (t) => {
    const bare = await startWorkerOf('bare', "export default { fetch: () => new Response('ok') };");
    t.after(() => bare.close());
    for (let i = 0; i < 20; i++) await (await fetch(bare.origin)).text();
    const model = join(folder, 'smollm2.gguf');
    await synthesize('smollm2-135m', 'q4_0', model);
    const server = await startWorkerd(model, { CONTEXT: '512', KV: 'q8' });
    t.after(() => server.close());
    const body = { prompt: 'Once upon a time there was a fox.', max_tokens: 16, stream: true };
    const responses = await Promise.all(
      [1, 2].map((seed) => ask(server.origin, '/v1/completions', { ...body, seed })),
    );
    for (const response of responses) {
      assert.equal(response.status, 200, server.output());
      assert.equal(readEvents(await response.text()).isWhole, true);
    }
    const [own, without] = [server, bare].map(({ pid }) => residentOf(pid));
    // exclude workerd's own pages, which its compilers first touch when an engine is loaded
    const used = (own.ownKb - without.ownKb) * 1024;
    const peak = (own.peakKb - without.peakKb) * 1024;
    t.diagnostic(`${(used / 1e6).toFixed(1)} MB, ${(peak / 1e6).toFixed(1)} with workerd's pages`);
    assert.ok(used > 90e6 && used <= 128e6, `${used}`);
  });

  test('a model bundled in the program can be opened in the global scope', async (t) => {
    const source = `import { createEngine } from 'wick-llm/edge';
      import { createHandler } from 'wick-llm/openai';
      import wasm from 'engine.wasm';
      import bytes from 'model.gguf';
      export default {
        fetch: createHandler(await createEngine({ wasm, bytes, isolateBytes: 128e6 })),
      };`;
    /** @param {string} name @param {string} kind @param {string} path from the repository's root */
    const file = (name, kind, path) => `, (name = "${name}", ${kind} = embed "../../../${path}")`;
    const modules = [
      file('wick-llm/edge', 'esModule', 'dist/edge.js'),
      file('wick-llm/openai', 'esModule', 'dist/openai.js'),
      file('engine.wasm', 'wasm', 'dist/wasm/wick-simd128-single.wasm'),
      file('model.gguf', 'data', 'examples/models/wick-2.6m-q8_0.gguf'),
    ];
    const server = await startWorkerOf('global_scope', source, modules.join(''));
    t.after(() => server.close());
    const body = { messages, temperature: 0, max_tokens: 40 };
    const wanted = (await reference(CHAT, body)).choices[0].message.content;
    const answers = [1, 2, 3].map(async (number) => {
      const response = await ask(server.origin, CHAT, { ...body, stream: number > 1 });
      if (number > 1) return readEvents(await response.text()).text;
      return /** @type {any} */ (await response.json()).choices[0].message.content;
    });
    assert.deepEqual(await Promise.all(answers), [wanted, wanted, wanted]);
  });

  test('an image in a data URL is processed with an mmproj file', {
    skip: noVectors,
  }, async (t) => {
    const source = `import { createEngine } from 'wick-llm/edge';
      import { createHandler } from 'wick-llm/openai';
      import wasm from 'engine.wasm';
      import extrasWasm from 'extras.wasm';
      import mediaWasm from 'media.wasm';
      import bytes from 'model.gguf';
      import mmproj from 'mmproj.gguf';
      const chatTemplate = ${JSON.stringify(texts)};
      const options = { wasm, extrasWasm, mediaWasm, bytes, mmproj, chatTemplate };
      export default { fetch: createHandler(await createEngine({ ...options, isolateBytes: 128e6 })) };`;
    const { model, mmproj } = typeOf('gemma3');
    const work = resolve(root, 'build/test/image_worker');
    mkdirSync(work, { recursive: true });
    copyFileSync(model, join(work, 'model.gguf'));
    copyFileSync(mmproj, join(work, 'mmproj.gguf'));
    /** @param {string} name @param {string} kind @param {string} path from the repository's root */
    const file = (name, kind, path) => `, (name = "${name}", ${kind} = embed "../../../${path}")`;
    const build = 'dist/wasm/wick-simd128-single';
    const modules = [
      file('wick-llm/edge', 'esModule', 'dist/edge.js'),
      file('wick-llm/openai', 'esModule', 'dist/openai.js'),
      file('engine.wasm', 'wasm', `${build}.wasm`),
      file('extras.wasm', 'wasm', `${build}-extras.wasm`),
      file('media.wasm', 'wasm', `${build}-media.wasm`),
      file('model.gguf', 'data', 'build/test/image_worker/model.gguf'),
      file('mmproj.gguf', 'data', 'build/test/image_worker/mmproj.gguf'),
    ];
    const server = await startWorkerOf('image_worker', source, modules.join(''));
    t.after(() => server.close());
    const own = await createEngine(
      /** @type {any} */ ({ file: model, mmproj, threads: 1, chatTemplate: texts }),
    );
    t.after(() => own.close());
    const body = bodyAbout(messagePartOf(partOf('gemma3', 'sq')));
    const request = new Request(`http://wick.test${CHAT}`, {
      ...{ method: 'POST', body: JSON.stringify(body) },
      headers: { 'content-type': 'application/json' },
    });
    const theirs = /** @type {any} */ (await (await createHandler(own)(request)).json());
    for (let round = 0; round < 2; round++) {
      const response = await ask(server.origin, CHAT, body);
      const mine = /** @type {any} */ (await response.json());
      assert.equal(response.status, 200, JSON.stringify(mine) + server.output());
      assert.deepEqual(mine.choices, theirs.choices);
    }
    const [part, code] = refusedParts[0];
    const response = await ask(server.origin, CHAT, bodyAbout(part));
    assert.equal(/** @type {any} */ (await response.json()).error.code, code);
  });

  test('importing wick-llm reports which module to import instead', async (t) => {
    const worker = `import { createEngine } from 'wick-llm';
      const reported = (error) => new Response(error.code + ': ' + error.message);
      export default {
        fetch: (request) => createEngine({ url: 'http://127.0.0.1/model.gguf' }).catch(reported),
      };`;
    const entry = '(name = "wick-llm", esModule = embed "../../../dist/index.js")';
    const server = await startWorkerOf('main_entry', worker, `, ${entry}`);
    t.after(() => server.close());
    const text = await (await fetch(server.origin)).text();
    assert.match(
      text,
      /^UNSUPPORTED: workers: not available on this host. Import .* 'wick-llm\/edge'/,
    );
  });

  test('soak: despite disconnects, invalid requests and full queues, every client gets its own text', async (t) => {
    const server = await workerd.start();
    t.after(() => server.close());
    const random = numbers(soakSeed);
    const count = soakCount(1000);
    const wanted = new Map();
    const reported = { whole: 0, cut: 0, refused: 0, full: 0 };
    /** @param {number} index */
    const one = async (index) => {
      const body = { prompt: `Tale ${index % 40}`, seed: index % 40, max_tokens: 24 };
      const stream = random() < 0.7;
      const draw = random();
      const after = Math.floor(random() * 8);
      if (draw < 0.1) {
        const response = await ask(server.origin, '/v1/completions', '{"prompt": "Tale');
        assert.ok([400, 429].includes(response.status));
        await response.text();
        reported.refused++;
        return;
      }
      const controller = new AbortController();
      const { signal } = controller;
      const leaves = draw < 0.4;
      const sent = { ...body, stream, max_tokens: leaves ? 400 : 24 };
      const response = await ask(server.origin, '/v1/completions', sent, { signal });
      if (response.status === 429) {
        await response.text();
        reported.full++;
        return;
      }
      assert.equal(response.status, 200);
      const { text, isWhole } = await readSome(response, { stream, pieces: leaves ? after : -1 });
      controller.abort();
      const { choices } = await wanted.get(index % 40);
      const [{ text: expected }] = choices;
      assert.ok(expected.startsWith(text), `${index}: ${text} is not a prefix of ${expected}`);
      assert.ok(leaves || isWhole, `${index}: the answer broke off`);
      reported[isWhole ? 'whole' : 'cut']++;
    };
    for (let tale = 0; tale < 40; tale++) {
      const body = { prompt: `Tale ${tale}`, seed: tale, max_tokens: 400 };
      wanted.set(tale, await reference('/v1/completions', body));
    }
    const sizes = [];
    for (const part of [0, 1]) {
      let next = part * (count / 2);
      // 20 requests in flight with a queue limit of 16
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          while (next < (part + 1) * (count / 2)) await one(next++);
        }),
      );
      await atRest(server.origin);
      sizes.push(residentOf(server.pid).nowKb - (await pagesKb(server.origin)));
    }
    t.diagnostic(
      `${JSON.stringify(reported)}, ${sizes.join(' and ')} KB without pages after each half`,
    );
    assert.equal(reported.whole + reported.cut + reported.refused + reported.full, count);
    assert.ok(sizes[1] - sizes[0] < 12_000, `${sizes[0]} KB have become ${sizes[1]}`);
    assert.doesNotMatch(server.output(), /error|exception|hung/i);
  });
});

/** @param {string} origin @returns {Promise<number>} KB of pages in use or free, which the prefix cache may still fill */
async function pagesKb(origin) {
  const page = await (await fetch(`${origin}/metrics`)).text();
  const pages = [...page.matchAll(/^wick_kv_pages\{state="(?:used|free)"\} (\d+)$/gm)];
  return pages.reduce((sum, [, count]) => sum + Number(count) * PAGE_KB, 0);
}

/** @param {number} seed @returns {() => number} from 0 to 1 (Mulberry32) */
function numbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * @param {Response} response
 * @param {{stream: boolean, pieces: number}} the number of pieces of a stream to read; -1: all
 */
async function readSome(response, { stream, pieces }) {
  if (!stream) {
    const { choices } = /** @type {any} */ (await response.json());
    return { text: choices[0].text, isWhole: true };
  }
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let events = '';
  for (let left = pieces; left !== 0; left--) {
    const { done, value } = await reader.read();
    if (done) break;
    events += decoder.decode(value, { stream: true });
  }
  return readEvents(events);
}
