// Images and recordings through the npm package in Node: the cases of vectors/vision, from pixels and samples to greedy
// tokens, in chats, sessions and prompts; accepted forms of input, and rejected inputs.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { MediaDesk } from '../../js/worker/media_desk.js';
import { answerCall } from '../../js/worker/served_engine.js';
import { startHub } from '../support/fake_hub.mjs';
import { locate } from '../support/locate.mjs';
import { createEngine, dist, hasCode, openEngine, temporaryFolder } from '../support/package.mjs';

process.env.XDG_CACHE_HOME = temporaryFolder();
const shared = locate('shared');
const folder = join(shared.path, 'vectors', 'vision');
/** @type {any} */
const manifest = shared.skip
  ? { types: [], refuse: [] }
  : JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

/** @param {any} part of a case @returns {any} a part of a prompt */
function partOf({ text, image, width, height, audio, repeat }) {
  if (text !== undefined) return { type: 'text', text };
  const bytes = new Uint8Array(readFileSync(join(folder, image ?? audio)));
  if (image) return { type: 'image', image: { width, height, data: bytes } };
  const one = new Float32Array(bytes.buffer);
  const samples = new Float32Array(one.length * repeat);
  for (let i = 0; i < repeat; i++) samples.set(one, i * one.length);
  return { type: 'audio', audio: { samples, sampleRate: 16000 } };
}

/** @param {any} type */
const filesOf = (type) => ({
  file: join(folder, type.text_model),
  mmproj: join(folder, type.mmproj),
});

/** @param {import('node:test').TestContext} t @param {any} type @param {object} [options] */
const open = (t, type, options) =>
  openEngine(
    t,
    any({
      ...{ ...filesOf(type), kvType: 'f32', contextSize: 512, mediaLike: 'llama.cpp', ...options },
    }),
  );

/** @param {any} one a case @returns {number} the number of tokens in its prompt */
const tokensOf = (one) =>
  one.chunks.reduce(
    (/** @type {number} */ sum, /** @type {any} */ { tokens, n_tokens: rows }) =>
      sum + (tokens?.length ?? rows),
    0,
  );

describe('greedy tokens match the reference', { skip: shared.skip }, () => {
  for (const type of manifest.types) {
    const cases = type.cases.filter((/** @type {any} */ one) => tokensOf(one) < 500);
    test(`${type.id}: ${cases.length} cases`, async (t) => {
      const engine = await open(t, type);
      for (const one of cases) {
        /** @type {number[]} */
        const greedy = [];
        const generation = engine.generate(one.parts.map(partOf), {
          ...{ temperature: 0, maxTokens: one.greedy.length, ignoreEnd: true },
          onToken: ({ token }) => greedy.push(token),
        });
        await generation.text();
        assert.deepEqual(greedy, one.greedy, one.id);
        assert.equal(generation.result?.usage.promptTokens, tokensOf(one));
      }
    });
  }
});

const [first] = manifest.types;
const [one, other] = first?.cases ?? [];
const image = () => partOf(one.parts.find((/** @type {any} */ part) => part.image));
const texts = '{% for m in messages %}{{ m.content }}{% endfor %}';
/** Like SmolVLM's template: content must be a list, of which only text is written. */
const lists =
  "{% for m in messages %}{% for p in m.content %}{% if p['type'] == 'text' %}{{ p['text'] }}{% endif %}{% endfor %}{% endfor %}";

/** @param {any} pixels @returns {Blob} */
const ppmOf = ({ width, height, data }) =>
  new Blob([`P6\n# made by a test\n${width} ${height}\n255\n`, data]);

describe('conversations', { skip: shared.skip }, () => {
  const greedy = { temperature: 0, max_tokens: 12 };
  const question = 'What is the word for it?';
  const content = () => [image(), { type: 'text', text: question }];

  /** @param {any} engine @param {any[]} messages @param {object} [more] */
  async function ask(engine, messages, more) {
    const { choices, usage } = await engine.chat.completions.create({
      ...{ messages, ...greedy, ...more },
    });
    return { text: choices[0].message.content, usage };
  }

  test('a question about an image, with templates for string and list content', async (t) => {
    const answers = [];
    for (const chatTemplate of [texts, lists]) {
      const engine = await open(t, first, { chatTemplate });
      assert.deepEqual((await engine.info()).media, ['image']);
      const messages = [{ role: 'user', content: content() }];
      const { text, usage } = await ask(engine, messages);
      assert.equal(await engine.countTokens(any(messages)), usage.prompt_tokens);
      const prompt = engine.generate(any(content()), { temperature: 0, maxTokens: 12 });
      assert.equal(await prompt.text(), text);
      answers.push(text);
    }
    assert.equal(answers[0], answers[1]);
    assert.ok(answers[0].length > 0);
  });

  test('a second question finds the image in the prefix cache, a chat in its session', async (t) => {
    const engine = await open(t, first, { chatTemplate: texts });
    const messages = [{ role: 'user', content: content() }];
    const before = await ask(engine, messages);
    const again = await ask(engine, messages);
    assert.equal(again.text, before.text);
    const { cached_tokens: cached } = again.usage.prompt_tokens_details;
    assert.ok(cached > before.usage.prompt_tokens - 32, `${cached}`);
    const chat = await engine.createChat();
    t.after(() => chat.close());
    const reply = await chat.send(any(messages), any(greedy)).message();
    assert.equal(reply.content, before.text);
    const next = await chat.send('And then?', any(greedy)).message();
    const whole = [...messages, { role: 'assistant', content: reply.content }];
    const alone = await ask(engine, [...whole, { role: 'user', content: 'And then?' }]);
    assert.equal(next.content, alone.text);
  });

  test('a handler accepts images as data URLs', async (t) => {
    const engine = await open(t, first, { chatTemplate: texts });
    const handle = createHandler(engine);
    const bytes = Buffer.from(await ppmOf(image().image).arrayBuffer()).toString('base64');
    /** @param {string} url */
    const answer = async (url) => {
      const content = [
        { type: 'image_url', image_url: { url } },
        { type: 'text', text: question },
      ];
      const body = { model: 'm', messages: [{ role: 'user', content }], ...greedy };
      const response = await handle(
        new Request('http://localhost/v1/chat/completions', {
          ...{ method: 'POST', body: JSON.stringify(body) },
          headers: { 'Content-Type': 'application/json' },
        }),
      );
      return { status: response.status, body: any(await response.json()) };
    };
    const { body } = await answer(`data:image/x-portable-pixmap;base64,${bytes}`);
    const { text } = await ask(engine, [{ role: 'user', content: content() }]);
    assert.equal(body.choices[0].message.content, text);
    const gif = await answer('data:image/gif;base64,R0lGODlh');
    assert.deepEqual([gif.status, gif.body.error.code], [400, 'unsupported_value']);
    assert.match(gif.body.error.message, /^messages\[0\]\.content\[0\]: /);
  });

  test('helper threads take part in encoding', async (t) => {
    const engine = await open(t, first, { chatTemplate: texts, threads: 2 });
    const alone = await open(t, first, { chatTemplate: texts });
    const messages = [{ role: 'user', content: content() }];
    const [one, two] = [await ask(engine, messages), await ask(alone, messages)];
    assert.equal(one.text, two.text);
  });

  test('a different image gives a different answer', async (t) => {
    const engine = await open(t, first, { chatTemplate: texts });
    const pixels = partOf(other.parts.find((/** @type {any} */ part) => part.image));
    const [before, after] = [
      await ask(engine, [{ role: 'user', content: content() }]),
      await ask(engine, [{ role: 'user', content: [pixels, content()[1]] }]),
    ];
    assert.notEqual(after.text, before.text);
  });

  test('an image in each form accepted in Node', async (t) => {
    const engine = await open(t, first, {
      chatTemplate: texts,
      decodeImage: async (/** @type {Blob} */ blob) => {
        assert.equal(await blob.text(), 'an image');
        const { width, height, data } = image().image;
        const rgba = new Uint8Array(width * height * 4).fill(255);
        for (let i = 0; i < width * height; i++) rgba.set(data.subarray(3 * i, 3 * i + 3), 4 * i);
        return { width, height, data: rgba };
      },
    });
    const pixels = image().image;
    const ppm = ppmOf(pixels);
    const url = `data:image/x-portable-pixmap;base64,${Buffer.from(await ppm.arrayBuffer()).toString('base64')}`;
    const { text } = await ask(engine, [{ role: 'user', content: content() }]);
    for (const part of [
      { type: 'image', image: ppm },
      { type: 'image', image: await ppm.arrayBuffer() },
      { type: 'image', image: new URL(url) },
      { type: 'image', image: new Blob(['an image']) },
      { type: 'image_url', image_url: { url } },
    ]) {
      const found = await ask(engine, [{ role: 'user', content: [part, content()[1]] }]);
      assert.equal(found.text, text);
    }
  });

  test('unreadable input is rejected with its position', async (t) => {
    const engine = await open(t, first, { chatTemplate: texts });
    /** @type {[any, string, RegExp][]} */
    const cases = [
      [{ type: 'video' }, 'UNSUPPORTED', /^messages\[0\]\.content\[1\]: unknown part type video/],
      [{ type: 'image' }, 'ARG', /^messages\[0\]\.content\[1\]: part of type image is empty/],
      [{ type: 'image', image: {} }, 'ARG', /content\[1\]: image: must be a Blob/],
      [{ type: 'image', image: { width: 2, height: 2, data: [1] } }, 'ARG', /data: has 1 bytes/],
      [{ type: 'image', image: new Blob(['GIF89a']) }, 'UNSUPPORTED', /only PPM images/],
      [{ type: 'image', image: new Blob(['P6 9 9 255\n...']) }, 'ARG', /3 of 243 bytes/],
      [{ type: 'image', image: new Blob(['P6 9 9 65535\n']) }, 'UNSUPPORTED', /8 bits/],
      [
        { type: 'image', image: { width: 2 ** 15, height: 2 ** 15, data: [1] } },
        'ARG',
        /limit is 2\^28/,
      ],
      [
        { type: 'audio', audio: { samples: new Float32Array(9), sampleRate: 16000 } },
        'NODATA',
        /the mmproj file has no encoder for audio/,
      ],
      [{ type: 'image_url', image_url: { url: 'data:;base64,%' } }, 'ARG', /cannot be read/],
    ];
    for (const [part, code, message] of cases) {
      const content = [{ type: 'text', text: 'What?' }, part];
      const asked = engine.chat.completions.create(any({ messages: [{ role: 'user', content }] }));
      await assert.rejects(asked, (/** @type {any} */ error) => {
        assert.equal(error.code, code, error.message);
        assert.match(error.message, message);
        return true;
      });
    }
    const plain = await openEngine(t, any({ file: filesOf(first).file, chatTemplate: texts }));
    const asked = ask(plain, [{ role: 'user', content: content() }]);
    await assert.rejects(asked, /pass mmproj to createEngine/);
  });

  test('an image uses at most as many tiles and tokens as the engine allows', async (t) => {
    /** @param {object} limits */
    async function tokensWith(limits) {
      const engine = await open(t, first, { chatTemplate: texts, ...limits });
      return engine.countTokens(any([{ role: 'user', content: [image()] }]));
    }
    const free = await tokensWith({});
    const [oneTile, few] = [
      await tokensWith({ maxTiles: 1 }),
      await tokensWith({ maxImageTokens: 30 }),
    ];
    assert.ok(oneTile < free && few < free, `${free} ${oneTile} ${few}`);
    for (const [option, value] of [
      ...[
        ['maxTiles', 0],
        ['maxImageTokens', 1.5],
        ['mediaLike', 'ollama'],
      ],
    ]) {
      const opening = createEngine(any({ ...filesOf(first), [option]: value }));
      await assert.rejects(opening, (/** @type {any} */ error) => error.message.startsWith(option));
    }
  });

  test('mediaLike selects preprocessing as published or as in llama.cpp', async (t) => {
    const type = manifest.types.find((/** @type {any} */ { id }) => id === 'gemma3');
    const wide = partOf(type.cases[0].parts.find((/** @type {any} */ part) => part.image));
    const texts = [];
    for (const mediaLike of ['published', 'llama.cpp']) {
      const engine = await open(t, type, { mediaLike });
      const asked = { temperature: 0, maxTokens: 1, logprobs: 3 };
      const tops = /** @type {any[]} */ ([]);
      const onToken = (/** @type {any} */ token) => void tops.push(token.top);
      await engine.generate([wide], any({ ...asked, onToken })).text();
      texts.push(JSON.stringify(tops));
    }
    assert.notEqual(texts[0], texts[1]); // the image is stretched in one and padded in the other
  });

  test('memory for the encoders is planned before they are loaded', async (t) => {
    const engine = await open(t, first, { chatTemplate: texts });
    const { mediaPlan: plan, memory } = await engine.info();
    assert.ok(plan && plan.weightsBytes > 300_000 && plan.weightsBytes < memory.usedBytes);
    assert.equal(
      plan.totalBytes,
      plan.weightsBytes + plan.cacheBytes + Math.max(plan.prepareBytes, plan.encodeBytes),
    );
    const planned = await open(t, first, { directoryOnly: true });
    const info = await planned.info();
    assert.deepEqual([info.mediaPlan, info.media], [plan, []]);
    assert.ok(info.memory.peakBytes < memory.peakBytes - plan.weightsBytes / 2);
    const { mmproj } = filesOf(first);
    const alone = await openEngine(t, any({ file: mmproj, mmproj, directoryOnly: true }));
    assert.equal((await alone.info()).mediaPlan?.weightsBytes, plan.weightsBytes);
    const plain = await openEngine(t, any({ file: filesOf(first).file }));
    assert.equal((await plain.info()).mediaPlan, null);
  });

  test('a file of 256 MiB is rejected before it is copied', async (t) => {
    const engine = await open(t, first, { chatTemplate: texts });
    const size = 2 ** 28;
    const large = (/** @type {string} */ head) =>
      Object.defineProperty(new Blob([head]), 'size', { value: size });
    for (const part of [
      { type: 'image', image: large('P6 9000 9000 255\n') },
      { type: 'audio', audio: large('RIFF....WAVE') },
    ]) {
      const asked = ask(engine, [{ role: 'user', content: [part] }]);
      await assert.rejects(asked, {
        code: 'ARG',
        message: `messages[0].content[0]: file: has ${size} bytes, limit is ${size - 1}`,
      });
    }
    const url = `data:image/x-portable-pixmap;base64,${'A'.repeat((size / 3) * 4 + 8)}`;
    const asked = ask(engine, [
      { role: 'user', content: [{ type: 'image_url', image_url: { url } }] },
    ]);
    await assert.rejects(asked, /file: has \d+ bytes, limit is 268435455/);
  });

  test('a large image is resized in strips, between steps of other requests', () => {
    /** @type {number[]} */
    const strips = [];
    const removed = [];
    const media = {
      isLoaded: true,
      beginImage: () => 1,
      feed: (/** @type {number} */ _, /** @type {Uint8Array} */ { length }) => strips.push(length),
      info: () => ({ isReady: false }),
      step: () => true,
      remove: (/** @type {number} */ number) => removed.push(number),
    };
    const desk = new MediaDesk(any({ media }));
    const image = { kind: 'image', width: 3000, height: 1001, data: new Uint8Array(9000 * 1001) };
    const numbers = desk.add([any(image)]);
    assert.deepEqual([numbers, strips], [[1], []]);
    for (let steps = 1; !desk.step(numbers); steps++) assert.equal(strips.length, steps);
    assert.ok(Math.max(...strips) < 2 ** 20 + 9000 && strips.length === 9);
    assert.equal(
      strips.reduce((a, b) => a + b),
      9000 * 1001,
    );
    desk.remove(desk.add([any(image)]));
    assert.equal(strips.length, 9, 'a removed image is not resized');
    // narrow rows may be resized to wide ones
    strips.length = 0;
    const narrow = { kind: 'image', width: 1, height: 65_536, data: new Uint8Array(3 * 65_536) };
    const column = desk.add([any(narrow)]);
    while (!desk.step(column));
    assert.equal(Math.max(...strips), 3 * 256);
    assert.equal(
      strips.reduce((a, b) => a + b),
      3 * 65_536,
    );
  });

  test('counting the tokens of a conversation does not resize its images', () => {
    let strips = 0;
    const media = {
      ...{ isLoaded: true, beginImage: () => 1, remove: () => {} },
      feed: () => strips++,
    };
    const native = any({ media });
    const chat = () => ({ prompt: () => Int32Array.of(1, 2, 3) });
    const parts = any({ native, chat, media: new MediaDesk(native) });
    const image = { kind: 'image', width: 10, height: 10, data: new Uint8Array(300) };
    const input = { messages: [], media: [image] };
    assert.deepEqual([answerCall('countChat', [input], parts), strips], [3, 0]);
    assert.deepEqual([answerCall('tokenizeChat', [input], parts), strips], [[1, 2, 3], 1]);
  });

  test('a request that is aborted while its image is encoded frees everything', async (t) => {
    const engine = await open(t, first, { chatTemplate: texts });
    const controller = new AbortController();
    const asked = ask(engine, [{ role: 'user', content: content() }], {
      signal: controller.signal,
    });
    controller.abort();
    await assert.rejects(asked, { name: 'AbortError' });
    const { text } = await ask(engine, [{ role: 'user', content: content() }]);
    assert.ok(text.length > 0);
  });
});

describe('recordings', { skip: shared.skip }, () => {
  /** @param {Float32Array} samples @param {number} rate @param {number} channels @returns {Buffer} a 16-bit WAV file */
  function wavOf(samples, rate, channels) {
    const file = Buffer.alloc(44 + samples.length * channels * 2);
    file.write('RIFF', 0);
    file.writeUInt32LE(file.length - 8, 4);
    file.write('WAVEfmt ', 8);
    file.writeUInt32LE(16, 16);
    file.writeUInt16LE(1, 20);
    file.writeUInt16LE(channels, 22);
    file.writeUInt32LE(rate, 24);
    file.writeUInt32LE(rate * channels * 2, 28);
    file.writeUInt16LE(channels * 2, 32);
    file.writeUInt16LE(16, 34);
    file.write('data', 36);
    file.writeUInt32LE(samples.length * channels * 2, 40);
    for (let i = 0; i < samples.length * channels; i++) {
      file.writeInt16LE(Math.round(samples[Math.floor(i / channels)] * 32767), 44 + 2 * i);
    }
    return file;
  }

  test('a WAV file with two channels and a different sample rate', async (t) => {
    const type = manifest.types.find((/** @type {any} */ { id }) => id === 'qwen3a');
    const engine = await open(t, type, { chatTemplate: texts });
    assert.deepEqual((await engine.info()).media, ['audio']);
    const samples = Float32Array.from({ length: 48000 }, (_, i) => Math.sin(i / 20) / 2);
    /** @param {any} part */
    const count = (part) => engine.countTokens(any([{ role: 'user', content: [part] }]));
    const data = wavOf(samples.subarray(0, 16000), 16000, 2).toString('base64');
    const second = await count({ type: 'input_audio', input_audio: { data, format: 'wav' } });
    assert.ok(second > 10);
    const fast = wavOf(samples, 48000, 1);
    assert.equal(await count({ type: 'audio', audio: new Blob([any(fast)]) }), second);
    const broken = { type: 'audio', audio: new Blob([any(fast.subarray(0, 40))]) };
    await assert.rejects(count(broken), /WAV recording: has no samples/);
    await assert.rejects(
      count({ type: 'audio', audio: new Blob(['ID3']) }),
      hasCode('UNSUPPORTED'),
    );
  });
});

describe('mmproj files', { skip: shared.skip }, () => {
  test('errors about broken files start with mmproj', async (t) => {
    let refused = 0;
    for (const { file, expect, why } of manifest.refuse) {
      const mmproj = new Uint8Array(readFileSync(join(folder, file)));
      const opening = openEngine(t, any({ ...filesOf(first), mmproj }));
      if (expect === 'accept') await opening;
      else {
        refused++;
        await assert.rejects(
          opening,
          (/** @type {any} */ error) => error.message.startsWith('mmproj: ') && error.code !== 'IO',
          why,
        );
      }
    }
    assert.equal(refused, 20);
  });

  test('both files are found by name on a hub, cached and deleted', async (t) => {
    const { file, mmproj } = filesOf(first);
    const hub = await startHub({
      'maker/Vision-GGUF': {
        'Vision-Q8_0.gguf': readFileSync(file),
        'mmproj-Vision-F32.gguf': readFileSync(mmproj),
      },
    });
    t.after(() => hub.close());
    const named = {
      ...{ model: 'hf:maker/Vision-GGUF', mmproj: true, hub: { endpoint: hub.url } },
      chatTemplate: texts,
    };
    /** @type {any[]} */
    const reports = [];
    const engine = await openEngine(
      t,
      any({ ...named, onProgress: (/** @type {any} */ report) => void reports.push(report) }),
    );
    assert.deepEqual((await engine.info()).media, ['image']);
    assert.equal(reports.at(-1).loaded, reports.at(-1).total);
    await engine.close();
    const { openModels } = await import(pathToFileURL(join(dist, 'models.js')).href);
    const store = await openModels();
    const names = async () =>
      (await store.list()).map((/** @type {any} */ { name }) => name).sort();
    assert.deepEqual(await names(), ['Vision-Q8_0.gguf', 'mmproj-Vision-F32.gguf']);
    await hub.close();
    const again = await openEngine(t, any({ ...named, cache: 'only' }));
    assert.deepEqual((await again.info()).media, ['image']);
    await again.close();
    await store.delete('hf:maker/Vision-GGUF');
    assert.deepEqual(await names(), []);
  });

  test('a value that is not a file is rejected', async (t) => {
    await assert.rejects(openEngine(t, any({ ...filesOf(first), mmproj: 7 })), hasCode('ARG'));
  });
});
