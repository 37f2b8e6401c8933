// The npm package under Node: every way to a model, text and chat, stopping, queueing, failing, closing.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createReadStream, openAsBlob, readFileSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { defaultThreads } from '../js/features.js';
import { serve } from '../tools/serve.mjs';
import { locate, root } from './support/locate.mjs';
import {
  createEngine,
  dist,
  hasCode,
  isAbort,
  modelPath,
  openEngine,
  sleep,
  synthesize,
  temporaryFolder,
  waitUntil,
} from './support/package.mjs';

const shared = locate('shared');
const folder = temporaryFolder();
const question = /** @type {const} */ ([{ role: 'user', content: 'What is Wick?' }]);
const greedy = { temperature: 0 };

/** Big enough that an answer takes longer than anybody wants to wait. */
const slowModel = join(folder, 'slow.gguf');
await synthesize('100mb', 'q8_0', slowModel);

/** @param {AsyncIterable<string>} pieces */
async function join_(pieces) {
  let text = '';
  for await (const piece of pieces) text += piece;
  return text;
}

/** @param {AsyncIterable<string>} pieces @param {() => void} onPiece */
async function readAll(pieces, onPiece) {
  for await (const _ of pieces) onPiece();
}

/** @param {import('../js/index.js').Generation} generation */
function resultOf(generation) {
  const { result } = generation;
  if (!result) throw new Error('it has not ended');
  return result;
}

/** @param {import('../js/index.js').Engine} engine */
async function assertSpeaks(engine) {
  const text = await engine.generate('Hello', { ...greedy, maxTokens: 4, ignoreEnd: true }).text();
  assert.ok(text.length > 0);
}

describe('ways to a model', () => {
  /** @type {string} */
  let wanted;
  /** @param {import('../js/index.js').Engine} engine */
  const answer = (engine) =>
    engine.generate('Once upon a time', { ...greedy, maxTokens: 12 }).text();

  test('file: a path', async (t) => {
    wanted = await answer(await openEngine(t));
    assert.ok(wanted.length > 0);
  });

  test('file: a URL of the disk, as wick-llm/model gives it', async (t) => {
    const { modelUrl } = await import(pathToFileURL(join(dist, 'model.js')).href);
    const engine = await openEngine(t, { url: modelUrl });
    assert.equal(await answer(engine), wanted);
  });

  test('url', async (t) => {
    const server = await serve({ root: join(dist, 'models') });
    t.after(() => server.close());
    const engine = await openEngine(t, { url: `${server.url}wick-2.6m-q8_0.gguf` });
    assert.equal(await answer(engine), wanted);
  });

  test('blob and File', async (t) => {
    const blob = await openAsBlob(modelPath);
    assert.equal(await answer(await openEngine(t, { blob })), wanted);
    const { File } = await import('node:buffer');
    const file = /** @type {any} */ (new File([/** @type {any} */ (blob)], 'model.gguf'));
    assert.equal(await answer(await openEngine(t, { file })), wanted);
  });

  test('stream: of the web, and any async iterable of bytes', async (t) => {
    const handle = await open(modelPath);
    t.after(() => handle.close());
    const web = /** @type {any} */ (handle.readableWebStream({ type: 'bytes' }));
    assert.equal(await answer(await openEngine(t, { stream: web })), wanted);
    const stream = createReadStream(modelPath, { highWaterMark: 1000 });
    assert.equal(await answer(await openEngine(t, { stream })), wanted);
    const bytes = readFileSync(modelPath);
    const parts = async function* () {
      yield bytes.subarray(0, 1000);
      yield bytes.subarray(1000); // what it has given stays its own
    };
    assert.equal(await answer(await openEngine(t, { stream: parts() })), wanted);
    assert.equal(bytes.length, statSync(modelPath).size);
  });

  test('fetch: the page’s own, with headers', async (t) => {
    /** @type {string[]} */
    const seen = [];
    /** @type {typeof fetch} */
    const own = async (url, init) => {
      seen.push(`${url} ${new Headers(init?.headers).get('x-key')}`);
      return new Response(readFileSync(modelPath));
    };
    const options = { url: 'https://models.invalid/a.gguf', headers: { 'X-Key': 'abc' } };
    const engine = await openEngine(t, { ...options, fetch: own });
    assert.equal(await answer(engine), wanted);
    assert.deepEqual(seen, ['https://models.invalid/a.gguf abc']);
  });

  test('a split model by one name, by all names, as blobs in any order', {
    skip: shared.skip,
  }, async (t) => {
    const split = join(shared.path, 'vectors/reference/split');
    const { readdirSync } = await import('node:fs');
    const names = readdirSync(split)
      .filter((name) => name.endsWith('.gguf'))
      .sort();
    const paths = names.map((name) => join(split, name));
    const texts = [];
    for (const file of [paths[1], paths]) texts.push(await answer(await openEngine(t, { file })));
    const { File } = await import('node:buffer');
    const files = paths.map(
      (path, i) => /** @type {any} */ (new File([readFileSync(path)], names[i])),
    );
    texts.push(await answer(await openEngine(t, { file: files.reverse() })));
    const server = await serve({ root: split });
    t.after(() => server.close());
    texts.push(await answer(await openEngine(t, { url: server.url + names[0] })));
    const deaf = await serve({ root: split, ranges: false });
    t.after(() => deaf.close());
    texts.push(await answer(await openEngine(t, { url: deaf.url + names[0] })));
    assert.deepEqual(new Set(texts), new Set([texts[0]]));
    await assert.rejects(createEngine({ stream: createReadStream(paths[0]) }), hasCode('ARG'));
  });

  test('what is wrong with the options is said', async () => {
    const wrong = /** @type {any[]} */ ([
      undefined,
      {},
      { url: 'a', file: 'b' },
      { file: 7 },
      { file: modelPath, threads: 0 },
      { file: modelPath, threads: 1.5 },
      { file: modelPath, contextSize: -1 },
      { file: modelPath, kvType: 'f64' },
      { file: modelPath, kvTokens: -1 },
      { url: 'not an address' },
    ]);
    for (const options of wrong) await assert.rejects(createEngine(options), hasCode('ARG'));
    await assert.rejects(createEngine({ file: join(folder, 'none.gguf') }), hasCode('IO'));
    await assert.rejects(createEngine({ file: modelPath, contextSize: 1e6 }), hasCode('ARG'));
  });

  test('what is wrong with the file is said, with its place', async () => {
    const bytes = readFileSync(modelPath);
    const cut = new Blob([bytes.subarray(0, 1_000_000)]);
    await assert.rejects(createEngine({ blob: cut }), hasCode('TRUNCATED'));
    await assert.rejects(createEngine({ blob: new Blob([]) }), hasCode('TRUNCATED'));
    const page = new Blob(['<!DOCTYPE html><title>Sign in</title>']);
    await assert.rejects(createEngine({ blob: page }), hasCode('NOT_GGUF'));
    const other = new Blob([new Uint8Array(5000).fill(65)]);
    await assert.rejects(createEngine({ blob: other }), (error) => {
      assert.ok(hasCode('FORMAT')(error));
      assert.equal(/** @type {any} */ (error).cause.offset, 0);
      return true;
    });
  });

  test('a model over the memory limit is refused before its weights are read', async () => {
    let read = 0;
    /** @param {AsyncIterable<Uint8Array>} stream */
    async function* counted(stream) {
      for await (const bytes of stream) {
        read += bytes.byteLength;
        yield bytes;
      }
    }
    const stream = counted(createReadStream(slowModel));
    const refused = createEngine({ stream, memoryLimit: 50e6, threads: 1 });
    await assert.rejects(refused, (error) => {
      assert.match(/** @type {Error} */ (error).message, /needs \d+ bytes .* budget is 50000000/);
      return hasCode('NOMEM')(error);
    });
    assert.ok(read < 4e6, `${read} bytes were read`);
  });

  test('the directory alone: looks and tokenizes without the weights', async (t) => {
    const engine = await openEngine(t, { file: modelPath, directoryOnly: true });
    const { metadata, tensors } = await engine.inspect();
    assert.ok(metadata.some(({ key }) => key === 'general.architecture'));
    assert.equal(tensors.length, 38);
    assert.ok((await engine.countTokens('Hello there')) > 1);
    const info = await engine.info();
    assert.ok(info.memory.linearBytes < 2_500_000, `${info.memory.linearBytes}`);
    await assert.rejects(engine.generate('Hello').text(), hasCode('NODATA'));
  });

  test('progress is told from the first bytes to the last', async (t) => {
    /** @type {import('../js/index.js').Progress[]} */
    const told = [];
    await openEngine(t, { file: slowModel, onProgress: (progress) => told.push(progress) });
    const last = told[told.length - 1];
    assert.equal(last.phase, 'ready');
    assert.equal(last.loaded, last.total);
    assert.ok(told.every(({ loaded }, i) => i === 0 || loaded >= told[i - 1].loaded));
  });
});

describe('text', () => {
  test('stories260K tells the published text, alone and with a helper', {
    skip: shared.skip,
  }, async (t) => {
    const stories = join(shared.path, 'vectors/stories260K');
    const published = readFileSync(join(stories, 'greedy-256.txt'), 'utf8');
    for (const threads of [1, 2]) {
      const file = join(stories, 'stories260K-f32.gguf');
      const engine = await openEngine(t, { file, kvType: 'f32', threads });
      if (threads === 2) {
        await waitUntil(async () => (await engine.info()).threads === 2, 'the helper');
      }
      const text = await engine.generate('', { ...greedy, maxTokens: 256 }).text();
      assert.equal(`${text}\n`, published);
    }
  });

  test('how many threads are used is measured when nobody says it; the text stays', async (t) => {
    const options = { ...greedy, maxTokens: 60 };
    const one = await openEngine(t);
    const free = await openEngine(t, { file: modelPath, threads: undefined });
    const two = await openEngine(t, { file: modelPath, threads: 2 });
    const text = await one.generate('Once', options).text();
    for (const engine of [free, two]) {
      const most = engine === two ? 2 : defaultThreads();
      await waitUntil(async () => (await engine.info()).threads === most, 'the helpers');
      assert.equal(await engine.generate('Once', options).text(), text);
    }
    const { threads, threadsUsed } = await free.info();
    for (const used of [threadsUsed.decode, threadsUsed.prefill]) {
      assert.ok(used >= 1 && used <= threads, `${used} of ${threads}`);
    }
    assert.deepEqual((await two.info()).threadsUsed, { decode: 2, prefill: 2 });
  });

  test('an idle engine lets the processors rest', async (t) => {
    const engine = await openEngine(t, { file: modelPath, threads: 2 });
    await waitUntil(async () => (await engine.info()).threads === 2, 'the helper');
    await engine.generate('Once', { ...greedy, maxTokens: 20 }).text();
    // The host's compiler and collector may go on for a while; who spins does so all the time.
    await waitUntil(async () => {
      const before = process.cpuUsage();
      await sleep(600);
      const { user, system } = process.cpuUsage(before);
      return user + system < 200_000;
    }, '600 ms of which the process uses less than a third');
  });

  test('one thread and two give the same text, seeds repeat it', async (t) => {
    const one = await openEngine(t);
    const two = await openEngine(t, { file: modelPath, threads: 2 });
    await waitUntil(async () => (await two.info()).threads === 2, 'the helper');
    // hot and untruncated, so that two seeds cannot agree by chance
    const free = { temperature: 2, topK: 0, topP: 1, minP: 0, maxTokens: 40, ignoreEnd: true };
    const options = { ...free, seed: 7 };
    const text = await one.generate('Once', options).text();
    assert.equal(await two.generate('Once', options).text(), text);
    assert.equal(await one.generate('Once', { ...options, seed: 7n }).text(), text);
    assert.notEqual(await one.generate('Once', { ...options, seed: 8 }).text(), text);
    assert.notEqual(
      await one.generate('Once', free).text(),
      await one.generate('Once', free).text(),
    );
  });

  test('streams pieces and tells in the end how it went', async (t) => {
    const engine = await openEngine(t);
    /** @type {{done: number, total: number}[]} */
    const prefills = [];
    const generation = engine.generate('Tell me', {
      ...greedy,
      maxTokens: 10,
      ignoreEnd: true,
      onPrefill: (progress) => prefills.push(progress),
    });
    assert.equal(generation.result, undefined);
    const pieces = [];
    for await (const piece of generation) pieces.push(piece);
    assert.ok(pieces.length > 1);
    const { finishReason, usage, timings } = resultOf(generation);
    assert.equal(finishReason, 'length');
    assert.equal(usage.completionTokens, 10);
    assert.equal(usage.promptTokens, await engine.countTokens('Tell me'));
    assert.ok(timings.decodeTokensPerSecond > 0 && timings.ttftMs > 0);
    assert.deepEqual(prefills.at(-1), { done: usage.promptTokens, total: usage.promptTokens });
    await assert.rejects(join_(generation), TypeError);
  });

  test('a prompt may be ids; stop strings end the text before them', async (t) => {
    const engine = await openEngine(t);
    const prompt = 'Count: one, two, three';
    const ids = await engine.tokenize(prompt);
    const options = { ...greedy, maxTokens: 30, ignoreEnd: true };
    const text = await engine.generate(prompt, options).text();
    assert.equal(await engine.generate(ids, options).text(), text);
    const stop = text.slice(8, 11);
    const stopped = engine.generate(prompt, { ...options, stop });
    assert.equal(await stopped.text(), text.slice(0, text.indexOf(stop)));
    assert.equal(stopped.result?.finishReason, 'stop');
  });

  test('logit bias forbids a token', async (t) => {
    const engine = await openEngine(t);
    const options = { ...greedy, maxTokens: 1, ignoreEnd: true };
    const first = await engine.generate('Hello', options).text();
    const [token] = await engine.tokenize(first, { addSpecial: false });
    const logitBias = { [token]: -100 };
    assert.notEqual(await engine.generate('Hello', { ...options, logitBias }).text(), first);
  });

  test('tokens and back', async (t) => {
    const engine = await openEngine(t);
    for (const text of ['Hello there', 'Grüße, 世界 🙂', '']) {
      const tokens = await engine.tokenize(text);
      assert.equal(await engine.detokenize(tokens), text);
      assert.equal(await engine.countTokens(text), tokens.length);
    }
    const [special] = await engine.tokenize('<|im_end|>');
    assert.equal(await engine.detokenize([special]), '');
    assert.equal(await engine.detokenize([special], { special: true }), '<|im_end|>');
    assert.ok((await engine.countTokens('<|im_end|>', { parseSpecial: false })) > 1);
    await assert.rejects(engine.detokenize([99999]), hasCode('ARG'));
    const long = 'a long text '.repeat(20_000);
    assert.equal(await engine.detokenize(await engine.tokenize(long)), long);
  });

  test('settings out of range are refused by name', async (t) => {
    const engine = await openEngine(t);
    for (const [name, value] of Object.entries({
      temperature: -1,
      topP: 2,
      maxTokens: 0,
      seed: 0.5,
      stop: [1],
      topK: -1,
    })) {
      assert.throws(
        () => engine.generate('x', { [name]: value }),
        (error) => {
          assert.match(/** @type {Error} */ (error).message, new RegExp(name));
          return hasCode('ARG')(error);
        },
      );
    }
    assert.throws(() => engine.generate(/** @type {any} */ (7)), hasCode('ARG'));
    const biased = engine.generate('x', { logitBias: { 5000: 1 } });
    await assert.rejects(biased.text(), hasCode('ARG'));
  });

  test('a full context ends with length, a prompt over it is refused with both numbers', async (t) => {
    const engine = await openEngine(t, { file: modelPath, contextSize: 32 });
    const full = engine.generate('Hello', { ...greedy, ignoreEnd: true });
    await full.text();
    const { finishReason, usage } = resultOf(full);
    assert.equal(finishReason, 'length');
    // the last token needs no place any more
    assert.equal(usage.promptTokens + usage.completionTokens, 33);
    const over = engine.generate('word '.repeat(100));
    await assert.rejects(over.text(), (error) => {
      assert.match(/** @type {Error} */ (error).message, /\d{3}.*32|32.*\d{3}/);
      return hasCode('PROMPT_TOO_LONG')(error);
    });
    await assertSpeaks(engine);
  });
});

describe('settings of the wrong kind', () => {
  test('a folder, a callback and a signal that are none: typed errors', async () => {
    await assert.rejects(createEngine({ file: root }), hasCode('IO'));
    const onProgress = /** @type {any} */ (5);
    await assert.rejects(createEngine({ file: 'a', onProgress }), hasCode('ARG'));
    const wrong = [{ worker: 5 }, { chatTemplate: () => 'x' }, { chatTemplate: 5 }];
    for (const one of /** @type {any[]} */ (wrong)) {
      await assert.rejects(createEngine({ file: modelPath, ...one }), hasCode('ARG'));
    }
    const signal = /** @type {any} */ ('x');
    await assert.rejects(createEngine({ file: 'a', signal }), hasCode('ARG'));
  });

  test('a source of the wrong kind', async () => {
    const wrong = [{ stream: {} }, { stream: 5 }, { blob: 'a' }, { url: 'http://a', fetch: 5 }];
    for (const options of [...wrong, { url: 'http://a', headers: 5 }]) {
      await assert.rejects(createEngine(/** @type {any} */ (options)), hasCode('ARG'));
    }
  });

  test('a request with them is refused at once, and the engine works on', async (t) => {
    const engine = await openEngine(t);
    const wrong = [null, 5, { signal: {} }, { signal: 'x' }, { onToken: 5 }, { onPrefill: 'x' }];
    for (const options of [...wrong, { logitBias: 5 }]) {
      const given = /** @type {any} */ (options);
      assert.throws(() => engine.generate('Hello', given), hasCode('ARG'));
    }
    const { completions } = engine.chat;
    const messages = [{ role: 'user', content: 'Hello' }];
    for (const body of [null, 5, { messages, signal: {} }, { messages, onPrefill: 5 }]) {
      await assert.rejects(completions.create(/** @type {any} */ (body)), hasCode('ARG'));
    }
    const signal = /** @type {any} */ ({});
    await assert.rejects(engine.tokenize('Hello', { signal }), hasCode('ARG'));
    for (const tokens of [null, 5, 'x', ['a'], [1.5]]) {
      await assert.rejects(engine.detokenize(/** @type {any} */ (tokens)), hasCode('ARG'));
    }
    await assertSpeaks(engine);
  });
});

describe('more than there is', () => {
  test('threads for which there are no processors are not started', async (t) => {
    const found = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
    t.after(() => {
      if (found) Object.defineProperty(globalThis, 'navigator', found);
      else Reflect.deleteProperty(globalThis, 'navigator');
    });
    /** @param {number} hardwareConcurrency */
    const pretend = (hardwareConcurrency) =>
      Object.defineProperty(globalThis, 'navigator', {
        value: { hardwareConcurrency },
        configurable: true,
      });
    const warn = t.mock.method(console, 'warn', () => {});
    for (const [processors, asked, most] of [
      [2, 64, 8],
      [5, 64, 10],
      [5, 9, 9],
    ]) {
      pretend(processors);
      let workers = 0;
      const worker = () => {
        workers++;
        return new Worker(join(dist, 'worker.js'));
      };
      const engine = await openEngine(t, { file: modelPath, threads: asked, worker });
      await waitUntil(async () => (await engine.info()).threads === most, 'the helpers');
      assert.equal(workers, most);
      await engine.close();
    }
    const told = warn.mock.calls.map((call) => call.arguments[0]);
    assert.equal(told.length, 2);
    assert.match(told[0], /64 threads are too many for the processors here, 8 are used/);
  });

  test('what the engine refuses is said with the name of the option', async (t) => {
    const engine = await openEngine(t, { file: modelPath, contextSize: 256, kvTokens: 48 });
    const load = (/** @type {object} */ options) => () =>
      openEngine(t, { file: modelPath, ...options });
    const ask = (/** @type {object} */ options, prompt = 'Once') => {
      return () => engine.generate(prompt, { maxTokens: 2, ...options }).text();
    };
    const messages = [{ role: 'user', content: 'Hello' }];
    /** @type {[() => Promise<unknown>, RegExp][]} */
    const refused = [
      [load({ contextSize: 1e6 }), /trained on 4096 \(option contextSize\)$/],
      [load({ memoryLimit: 3e6 }), /budget is 3000000 \(options memoryLimit, contextSize\)$/],
      [load({ memoryLimit: 1e4 }), /budget 10000\) \(option memoryLimit\)$/],
      [ask({ maxTokens: 200, ignoreEnd: true }), /3 are available \(option kvTokens\)$/],
      [ask({}, 'Once '.repeat(300)), /the context holds 256 \(option contextSize\)$/],
      [ask({ topP: 0 }), /^top_p \(topP\) is 0, /],
      [ask({ repeatPenalty: 0 }), /^repeat_penalty \(repeatPenalty\) is 0, /],
      [ask({ penaltyLast: 1e8 }), /^penalty_last \(penaltyLast\) is 100000000, /],
      [ask({ logitBias: { 999999: 1 } }), / \(option logitBias\)$/],
      [ask({ stop: Array(99).fill('x') }), /at most 16 \(option stop\)$/],
      [ask({ stop: [''] }), / \(option stop\)$/],
      [() => engine.chat.completions.create({ messages, top_p: 0 }), /^top_p \(topP\) is 0, /],
    ];
    for (const [call, message] of refused) {
      await assert.rejects(call, (/** @type {any} */ error) => {
        assert.equal(error.name, 'WickError');
        assert.match(error.message, message);
        return true;
      });
    }
  });
});

describe('names that are no options', () => {
  /** @param {string} message */
  const says = (message) => (/** @type {any} */ error) => {
    assert.equal(error.message, message);
    return hasCode('ARG')(error);
  };

  test('are refused with the nearest that is one, by createEngine and every call', async (t) => {
    const engine = await openEngine(t);
    const session = await engine.createSession();
    const messages = [...question];
    /** @type {[(options: any) => unknown, string, string | undefined][]} */
    const calls = [
      [(options) => createEngine({ file: modelPath, ...options }), 'contextsize', 'contextSize'],
      [(options) => createEngine({ file: modelPath, draft: options }), 'ulr', undefined],
      [async (options) => engine.generate('x', options), 'maxtokens', 'maxTokens'],
      [async (options) => engine.generate('x', options), 'max_tokens', 'maxTokens'],
      [async (options) => engine.generate('x', options), 'temprature', 'temperature'],
      [async (options) => engine.generate('x', options), 'n', undefined],
      [async (options) => engine.generateMany('x', { n: 2, ...options }), 'topk', 'topK'],
      [async (options) => session.prompt('x', options), 'Seed', 'seed'],
      [(options) => session.append('x', options), 'onPrefil', 'onPrefill'],
      [(options) => engine.chat.completions.create({ messages, ...options }), 'topP', 'top_p'],
      [(options) => engine.chat.completions.create({ messages }, options), 'sginal', 'signal'],
      [(options) => engine.beamSearch('x', options), 'beamWidth', undefined],
      [(options) => engine.beamSearch('x', options), 'lengthPenality', 'lengthPenalty'],
      [(options) => engine.tokenize('x', options), 'addSpecials', 'addSpecial'],
      [(options) => engine.countTokens('x', options), 'parsespecial', 'parseSpecial'],
      [(options) => engine.detokenize([1], options), 'specials', 'special'],
      [(options) => engine.applyTemplate(messages, options), 'variable', 'variables'],
      [(options) => engine.createSession(options), 'foo', undefined],
      [(options) => engine.stats(options), 'fromat', 'format'],
      [(options) => engine.metrics(options), 'resett', 'reset'],
      [(options) => engine.kvStats(options), 'maps', 'map'],
    ];
    for (const [call, name, nearest] of calls) {
      const hint = nearest ? `; did you mean ${nearest}?` : '';
      await assert.rejects(async () => call({ [name]: 1 }), says(`${name} is no option${hint}`));
    }
    await assertSpeaks(engine);
  });

  test('one that is undefined is left out; options that are none are refused', async (t) => {
    const engine = await openEngine(t);
    const left = /** @type {any} */ ({ temprature: undefined });
    assert.deepEqual(await engine.tokenize('a', left), await engine.tokenize('a'));
    for (const options of /** @type {any[]} */ ([null, 5, 'special'])) {
      await assert.rejects(engine.detokenize([1], options), hasCode('ARG'));
      await assert.rejects(engine.beamSearch('a', options), hasCode('ARG'));
    }
  });

  test('a body for OpenAI’s service goes through as it is', async (t) => {
    const { chat } = await openEngine(t);
    /** @type {any} */
    const answer = await chat.completions.create(
      /** @type {any} */ ({
        ...{ messages: [...question], model: 'gpt-5', max_completion_tokens: 2, temperature: 0 },
        ...{ n: 1, stream: false, tools: null, tool_choice: undefined, response_format: null },
        ...{ user: 'u', store: true, metadata: { a: 'b' }, service_tier: 'auto' },
        ...{ parallel_tool_calls: true, reasoning_effort: 'low', verbosity: 'low' },
        ...{ safety_identifier: 's', prompt_cache_key: 'k', prompt_cache_retention: '24h' },
        ...{ prediction: null, modalities: null, audio: null, web_search_options: undefined },
      }),
      /** @type {any} */ ({ headers: {}, maxRetries: 2 }),
    );
    assert.equal(answer.usage.completion_tokens, 2);
  });
});

describe('chat', () => {
  test('an answer in OpenAI’s shape', async (t) => {
    const engine = await openEngine(t);
    const answer = await engine.chat.completions.create({
      messages: [...question],
      ...greedy,
      logprobs: true,
      top_logprobs: 3,
    });
    assert.equal(answer.object, 'chat.completion');
    assert.match(answer.id, /^chatcmpl-/);
    assert.equal(answer.model, 'Wick 2.6M');
    const [choice] = answer.choices;
    assert.equal(choice.finish_reason, 'stop');
    assert.equal(choice.message.role, 'assistant');
    assert.match(choice.message.content, /Wick/);
    const { prompt_tokens, completion_tokens, total_tokens } = answer.usage;
    assert.equal(prompt_tokens + completion_tokens, total_tokens);
    const text = await engine.applyTemplate([...question]);
    assert.equal(prompt_tokens, await engine.countTokens(text));
    const details = choice.logprobs?.content ?? [];
    assert.equal(details.length, completion_tokens);
    assert.equal(
      Buffer.concat(details.map(({ bytes }) => Buffer.from(bytes))).toString(),
      choice.message.content,
    );
    for (const { token, logprob, top_logprobs } of details) {
      assert.equal(top_logprobs.length, 3);
      assert.equal(top_logprobs[0].token, token); // greedy takes the likeliest
      assert.ok(logprob <= 0 && logprob >= top_logprobs[1].logprob);
    }
    assert.ok(answer.timings.ttftMs > 0);
  });

  test('logprobs without alternatives: the chosen tokens’ own, the same as with some', async (t) => {
    const engine = await openEngine(t);
    /** @param {object} body */
    const detailsOf = async (body) => {
      const request = {
        messages: [...question],
        ...greedy,
        max_tokens: 5,
        logprobs: true,
        ...body,
      };
      return (await engine.chat.completions.create(request)).choices[0].logprobs?.content ?? [];
    };
    const alone = await detailsOf({});
    const withSome = await detailsOf({ top_logprobs: 2 });
    assert.equal(alone.length, 5);
    assert.ok(alone.some(({ logprob }) => logprob < 0));
    assert.deepEqual(
      alone,
      withSome.map((detail) => ({ ...detail, top_logprobs: [] })),
    );
  });

  test('the same, streamed', async (t) => {
    const engine = await openEngine(t, { file: modelPath, prefixCache: false });
    const body = { messages: [...question], ...greedy };
    const whole = await engine.chat.completions.create(body);
    const stream = await engine.chat.completions.create({
      ...body,
      stream: true,
      stream_options: { include_usage: true },
    });
    /** @type {import('../js/index.js').ChatCompletionChunk[]} */
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    assert.ok(
      chunks.every(({ object, id }) => object === 'chat.completion.chunk' && id === chunks[0].id),
    );
    assert.deepEqual(chunks[0].choices[0].delta, { role: 'assistant', content: '' });
    const text = chunks.map(({ choices: [choice] }) => choice?.delta.content ?? '').join('');
    assert.equal(text, whole.choices[0].message.content);
    const [last, usage] = chunks.slice(-2);
    assert.equal(last.choices[0].finish_reason, 'stop');
    assert.ok((last.timings?.decodeTokensPerSecond ?? 0) > 0);
    assert.deepEqual(usage.choices, []);
    assert.deepEqual(usage.usage, whole.usage);
    assert.ok(chunks.slice(0, -2).every(({ choices }) => choices[0].finish_reason === null));
  });

  test('max_tokens, stop, text parts', async (t) => {
    const engine = await openEngine(t);
    const parts = [{ type: /** @type {const} */ ('text'), text: 'What is Wick?' }];
    const short = await engine.chat.completions.create({
      messages: [{ role: 'user', content: parts }],
      ...greedy,
      max_tokens: 3,
    });
    assert.equal(short.choices[0].finish_reason, 'length');
    assert.equal(short.usage.completion_tokens, 3);
    const whole = await engine.chat.completions.create({ messages: [...question], ...greedy });
    const text = whole.choices[0].message.content;
    const stop = text.slice(10, 14);
    const stopped = await engine.chat.completions.create({
      messages: [...question],
      ...greedy,
      stop: ['never', stop],
    });
    assert.equal(stopped.choices[0].finish_reason, 'stop');
    assert.equal(stopped.choices[0].message.content, text.slice(0, text.indexOf(stop)));
  });

  test('what is not there yet is refused, not ignored', async (t) => {
    const { chat } = await openEngine(t);
    const messages = [...question];
    for (const more of [
      { tools: [] },
      { response_format: { type: 'json_object' } },
      { messages: [{ role: 'user', content: [{ type: 'image_url' }] }] },
    ]) {
      const body = /** @type {any} */ ({ messages, ...more });
      await assert.rejects(chat.completions.create(body), hasCode('UNSUPPORTED'));
    }
    for (const body of /** @type {any[]} */ ([
      {},
      { messages: [] },
      { messages: [{}] },
      { messages, top_logprobs: 2 },
      { messages, n: 17 },
      { messages, priority: 1000 },
    ])) {
      await assert.rejects(chat.completions.create(body), hasCode('ARG'));
    }
  });

  test('templates: the model’s, another, one that refuses, one that is wrong', async (t) => {
    const engine = await openEngine(t);
    const conversation = [{ role: 'system', content: 'Be brief.' }, ...question];
    const text =
      '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is Wick?<|im_end|>\n';
    assert.equal(await engine.applyTemplate(conversation), `${text}<|im_start|>assistant\n`);
    assert.equal(await engine.applyTemplate(conversation, { addGenerationPrompt: false }), text);
    const own = await openEngine(t, {
      file: modelPath,
      chatTemplate:
        '{% if x %}{{ raise_exception("not so") }}{% endif %}{{ messages[0].content }}!',
    });
    assert.equal(await own.applyTemplate([...question]), 'What is Wick?!');
    await assert.rejects(own.applyTemplate([...question], { variables: { x: 1 } }), (error) => {
      assert.match(/** @type {Error} */ (error).message, /not so/);
      return hasCode('TEMPLATE')(error);
    });
    const broken = await openEngine(t, { file: modelPath, chatTemplate: '{% if' });
    await assert.rejects(broken.applyTemplate([...question]), hasCode('TEMPLATE'));
    await assertSpeaks(broken);
  });

  test('a model without a template says so', { skip: shared.skip }, async (t) => {
    const file = join(shared.path, 'vectors/stories260K/stories260K-q8_0.gguf');
    const engine = await openEngine(t, { file });
    const refused = engine.chat.completions.create({ messages: [...question] });
    await assert.rejects(refused, hasCode('NO_TEMPLATE'));
    const chatml = await openEngine(t, { file, chatTemplate: 'chatml' });
    const answer = await chatml.chat.completions.create({ messages: [...question], max_tokens: 4 });
    assert.equal(answer.usage.completion_tokens, 4);
  });
});

describe('stopping', () => {
  test('abort while loading: at once, and everything is gone', async () => {
    const controller = new AbortController();
    const [begun, again] = [new AbortController(), new AbortController()];
    let pulls = 0;
    let isLeft = false;
    async function* halting() {
      try {
        yield readFileSync(modelPath).subarray(0, 100_000);
        for (;;) {
          pulls++;
          begun.abort();
          if (!again.signal.aborted) await once(again.signal, 'abort');
          yield new Uint8Array(0);
        }
      } finally {
        isLeft = true;
      }
    }
    const loading = createEngine({ stream: halting(), signal: controller.signal, threads: 2 });
    if (!begun.signal.aborted) await once(begun.signal, 'abort');
    controller.abort();
    await assert.rejects(loading, isAbort); // though the stream gives nothing more
    again.abort();
    await waitUntil(() => isLeft, 'the stream to be left');
    assert.equal(pulls, 1, 'the stream was read on');
    const aborted = AbortSignal.abort();
    await assert.rejects(createEngine({ file: modelPath, signal: aborted }), isAbort);
  });

  test('abort while prefilling, decoding and queued; the engine works on', async (t) => {
    const engine = await openEngine(t, { file: slowModel, contextSize: 2048 });
    const long = await engine.tokenize('lorem ipsum '.repeat(800));
    for (const [during, ids] of /** @type {const} */ ([
      ['prefill', long.slice(0, 2000)],
      ['decode', long.slice(0, 4)],
    ])) {
      const before = await engine.stats();
      const controller = new AbortController();
      const { signal } = controller;
      const begun = new AbortController();
      const running = engine.generate(ids, { signal, ignoreEnd: true, onPrefill });
      /** @param {{done: number, total: number}} progress */
      function onPrefill({ done, total }) {
        if (during === 'prefill' && done > 0 && done < total) begun.abort();
      }
      let isTold = false;
      const ended = readAll(running, () => begun.abort()).catch((error) => {
        isTold = isAbort(error);
      });
      const queued = engine.generate(ids, { signal }).text();
      queued.catch(() => {});
      await once(begun.signal, 'abort');
      controller.abort();
      await new Promise((settle) => setImmediate(settle));
      assert.ok(isTold, `${during}: the caller waits for the engine`);
      await ended;
      await assert.rejects(queued, isAbort);
      // the engine itself must have let go, not only its caller, and long before the end
      await waitUntil(async () => {
        const { requests } = await engine.stats();
        return requests.aborted - before.requests.aborted === 2;
      }, 'the engine to let go');
      const { requests, rows } = await engine.stats();
      assert.equal(requests.running + requests.waiting, 0);
      assert.ok(rows - before.rows < 1900, `${during}: went on for ${rows - before.rows} tokens`);
    }
    await assertSpeaks(engine);
    await assert.rejects(engine.generate('x', { signal: AbortSignal.abort() }).text(), isAbort);
    const why = new Error('because');
    const reasoned = engine.generate('x', { signal: AbortSignal.abort(why) }).text();
    await assert.rejects(reasoned, (error) => error === why);
  });

  test('leaving the loop cancels the request', async (t) => {
    const engine = await openEngine(t, { file: slowModel, contextSize: 2048 });
    for await (const piece of engine.generate('Hello', { ignoreEnd: true })) {
      assert.equal(typeof piece, 'string');
      break;
    }
    await engine.generate('Hello', { maxTokens: 20, ignoreEnd: true }).text();
    const { requests } = await engine.stats();
    assert.equal(requests.aborted, 1);
    assert.equal(requests.running, 0, 'the cancelled request went on');
  });

  test('a chat stream ends by its controller and by a signal', async (t) => {
    const engine = await openEngine(t);
    const body = { ...greedy, messages: [...question], stream: /** @type {const} */ (true) };
    const stream = await engine.chat.completions.create(body);
    await assert.rejects(async () => {
      for await (const _ of stream) stream.controller.abort();
    }, isAbort);
    const controller = new AbortController();
    const other = await engine.chat.completions.create(body, { signal: controller.signal });
    await assert.rejects(async () => {
      for await (const _ of other) controller.abort();
    }, isAbort);
    await assertSpeaks(engine);
  });

  test('a reader that does not read stops the engine, not another request', async (t) => {
    const engine = await openEngine(t);
    const lazy = engine.generate('Hello', { ...greedy, ignoreEnd: true, maxTokens: 600 });
    const pieces = lazy[Symbol.asyncIterator]();
    await pieces.next();
    await waitUntil(async () => (await engine.stats()).requests.paused === 1, 'it to rest');
    const { value: held } = await pieces.next(); // still there, and not finished behind our back
    assert.equal(typeof held, 'string');
    assert.equal(lazy.result, undefined);
    await assertSpeaks(engine);
    let count = 2;
    for await (const _ of { [Symbol.asyncIterator]: () => pieces }) count++;
    assert.equal(resultOf(lazy).usage.completionTokens, 600);
    assert.ok(count > 100);
  });
});

describe('several calls', () => {
  test('queue first in, first out, more than the engine’s own queue holds', async (t) => {
    const engine = await openEngine(t);
    /** @type {number[]} */
    const order = [];
    const texts = Array.from({ length: 100 }, (_, index) => {
      const onPrefill = () => order.push(index);
      return engine.generate('Hello', { maxTokens: 2, ignoreEnd: true, onPrefill }).text();
    });
    assert.equal((await Promise.all(texts)).length, 100);
    assert.deepEqual(
      order,
      Array.from({ length: 100 }, (_, index) => index),
    );
  });

  test('calls are answered while a text is being written', async (t) => {
    const engine = await openEngine(t, { file: slowModel });
    const controller = new AbortController();
    const { signal } = controller;
    const writing = engine.generate('Hello', { signal, ignoreEnd: true });
    const begun = new AbortController();
    const text = readAll(writing, () => begun.abort());
    await once(begun.signal, 'abort');
    await engine.tokenize('Hello');
    assert.equal(writing.result, undefined);
    controller.abort();
    await assert.rejects(text, isAbort);
  });
});

describe('the end', () => {
  test('close: pending and later calls fail by type, twice is fine', async () => {
    const engine = await createEngine({ file: slowModel, threads: 2 });
    const pending = engine.generate('Hello', { ignoreEnd: true }).text();
    pending.catch(() => {});
    await sleep(50);
    await engine.close();
    await assert.rejects(pending, hasCode('CLOSED'));
    await engine.close();
    await assert.rejects(engine.generate('Hello').text(), hasCode('CLOSED'));
    await assert.rejects(engine.tokenize('Hello'), hasCode('CLOSED'));
    await assert.rejects(
      engine.chat.completions.create({ messages: [...question] }),
      hasCode('CLOSED'),
    );
    await assert.rejects(engine.info(), hasCode('CLOSED'));
    await engine[Symbol.asyncDispose]();
  });

  test('close gives the memory back', async () => {
    // what only a collection would give back is given back
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    const held = () => {
      collect();
      return process.memoryUsage().rss / 1e6;
    };
    const cycle = async (/** @type {number} */ threads) => {
      const engine = await createEngine({ file: slowModel, threads });
      const during = held();
      await engine.close();
      return during;
    };
    await cycle(1);
    for (const threads of [1, 2]) {
      const before = held();
      for (let i = 0; i < 4; i++) await cycle(threads);
      await waitUntil(() => held() < before + 120, `${held()} MB, before ${before} MB`);
    }
  });

  test('a worker that dies is a typed error on every pending and later call', async () => {
    /** @type {Worker[]} */
    const workers = [];
    const worker = () => {
      const made = new Worker(join(dist, 'worker.js'));
      workers.push(made);
      return made;
    };
    const engine = await createEngine({ file: slowModel, worker, threads: 2 });
    const pending = [
      engine.generate('Hello', { ignoreEnd: true }).text(),
      engine.generate('Hello').text(),
      engine.tokenize('Hello'.repeat(1000)),
    ];
    for (const call of pending) call.catch(() => {});
    await workers[0].terminate();
    for (const call of pending.slice(0, 2)) await assert.rejects(call, hasCode('WORKER_CRASHED'));
    await assert.rejects(engine.tokenize('x'), hasCode('WORKER_CRASHED'));
    await assert.rejects(engine.generate('x').text(), hasCode('WORKER_CRASHED'));
    await waitUntil(() => workers[1].threadId === -1, 'the helper to be ended, too');
    await engine.close();
  });

  test('a worker that dies while loading, and one that is not there', async () => {
    const worker = () => {
      const made = new Worker(join(dist, 'worker.js'));
      setTimeout(() => made.terminate(), 150);
      return made;
    };
    async function* endless() {
      for (;;) {
        await sleep(5);
        yield new Uint8Array(0);
      }
    }
    const loading = createEngine({ stream: endless(), worker, threads: 1 });
    await assert.rejects(loading, hasCode('WORKER_CRASHED'));
    const missing = pathToFileURL(join(folder, 'no_worker.js'));
    const lost = createEngine({ file: modelPath, worker: missing });
    await assert.rejects(lost, hasCode('WORKER_CRASHED'));
    const noModule = createEngine({
      file: modelPath,
      wasm: pathToFileURL(join(folder, 'no.wasm')),
    });
    await assert.rejects(noModule, hasCode('WASM'));
  });

  test('an engine that nobody waits for lets the process end', async () => {
    const { run } = await import('./support/process.mjs');
    const script = `
      const { createEngine } = await import(${JSON.stringify(pathToFileURL(join(dist, 'index.js')).href)});
      const engine = await createEngine({ file: ${JSON.stringify(modelPath)}, threads: 2 });
      const options = { temperature: 0, maxTokens: 8, ignoreEnd: true };
      console.log((await engine.generate('Hello', options).text()).length > 0);`;
    const args = ['--input-type=module', '-e', script];
    const { code, stdout, stderr } = await run(process.execPath, args);
    assert.equal(`${code} ${stdout}${stderr}`, '0 true\n');
  });
});

describe('builds', () => {
  test('wasm: bytes, a module, a response, a folder', async (t) => {
    const path = join(dist, 'wasm/wick-simd128-single.wasm');
    const bytes = readFileSync(path);
    const folder = pathToFileURL(join(dist, 'wasm/'));
    const module = await WebAssembly.compile(bytes);
    for (const wasm of [bytes, module, new Response(bytes), folder, pathToFileURL(path)]) {
      const engine = await openEngine(t, { file: modelPath, wasm, threads: 2 });
      const { threads } = await engine.info();
      if (wasm !== folder) assert.equal(threads, 1);
      await assertSpeaks(engine);
    }
  });
});
