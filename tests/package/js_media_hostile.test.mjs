// Hostile images and recordings: wrong kinds, rates and lengths, text that looks like media markers, many images, engines
// that are closed during a request. Each input is processed, or rejected with its position, and the engine answers the next
// question.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import {
  bodyAbout,
  lists,
  messagePartOf,
  partOf,
  skip,
  texts,
  typeOf,
} from '../support/media_files.mjs';
import { dist, openEngine } from '../support/package.mjs';

/** @typedef {import('node:test').TestContext} TestContext */
const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

/** @param {TestContext} t @param {string} id of a type @param {object} [options] */
function open(t, id, options) {
  const { model: file, mmproj } = typeOf(id);
  return openEngine(t, any({ file, mmproj, contextSize: 512, chatTemplate: texts, ...options }));
}

/** @param {any} engine @param {any[]} parts of a question @returns {Promise<string>} */
async function ask(engine, ...parts) {
  const content = parts.map((part) =>
    typeof part === 'string' ? { type: 'text', text: part } : part,
  );
  const body = { ...bodyAbout(undefined), messages: [{ role: 'user', content }] };
  const { choices } = await engine.chat.completions.create(body);
  return choices[0].message.content;
}

const known = (/** @type {string} */ id, /** @type {string} */ name) =>
  messagePartOf(partOf(id, name));

/** @param {number} index @returns {any} a unique image */
const dot = (index) => ({
  type: 'image',
  image: { width: 1, height: 1, data: Uint8Array.of(index, index >> 8, 7) },
});

/** @param {{format?: number, channels?: number, rate?: number, bits?: number, data?: Buffer, claimed?: number}} wav @returns {any} a part */
function wavPart({
  format = 1,
  channels = 1,
  rate = 16000,
  bits = 16,
  data = Buffer.alloc(64),
  claimed,
}) {
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + data.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(format, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(Math.min(2 ** 32 - 1, (rate * channels * bits) / 8), 28);
  head.writeUInt16LE((channels * bits) / 8, 32);
  head.writeUInt16LE(bits, 34);
  head.write('data', 36);
  head.writeUInt32LE(claimed ?? data.length, 40);
  return { type: 'audio', audio: new Blob([head, any(data)]) };
}

/** @param {number[]} values @returns {Buffer} */
const floats = (...values) => Buffer.from(Float32Array.from(values).buffer);

describe('images', { skip }, () => {
  test('content of the wrong kind is rejected with its position', async (t) => {
    const engine = await open(t, 'gemma3');
    const wanted = await ask(engine, known('gemma3', 'sq'), 'What?');
    const pixels = (/** @type {any} */ data) => ({
      type: 'image',
      image: { width: 2, height: 1, data },
    });
    const file = (/** @type {string} */ text) => ({ type: 'image', image: new Blob([text]) });
    /** @type {[any, string, RegExp][]} */
    const cases = [
      [pixels(new Uint16Array(6)), 'ARG', /data: must have 8-bit values/],
      [pixels(new Float32Array(8)), 'ARG', /data: must have 8-bit values/],
      [{ type: 'image', image: { width: 0, height: 9, data: [] } }, 'ARG', /image: must be/],
      [{ type: 'image', image: { width: NaN, height: 9, data: [] } }, 'ARG', /image: must be/],
      [file('P6 0 9 255\n'), 'ARG', /image: must be/],
      [file(`P6 ${'9'.repeat(400)} 9 255\nx`), 'ARG', /PPM image: has only 1 of Infinity bytes/],
      [file('P6 -1 9 255\n'), 'UNSUPPORTED', /PPM image: must have 8 bits/],
      [file(`P6 #${'x'.repeat(600)}\n1 1 255\nabc`), 'UNSUPPORTED', /PPM image/],
      [file('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'UNSUPPORTED', /only PPM images/],
      [file(''), 'UNSUPPORTED', /only PPM images/],
    ];
    for (const [part, code, words] of cases) {
      await assert.rejects(ask(engine, 'What?', part), (/** @type {any} */ error) => {
        assert.equal(error.code, code, error.message);
        assert.match(error.message, words);
        assert.match(error.message, /^messages\[0\]\.content\[1\]: /);
        return true;
      });
    }
    assert.equal(await ask(engine, known('gemma3', 'sq'), 'What?'), wanted);
  });

  test('a failing or incorrect host decoder is reported with the position of the part', async (t) => {
    /** @type {any} */
    let decoded;
    const decodeImage = async () => (decoded instanceof Error ? Promise.reject(decoded) : decoded);
    const engine = await open(t, 'gemma3', { decodeImage });
    const part = { type: 'image', image: new Blob(['JFIF']) };
    for (const [value, words] of /** @type {[any, RegExp][]} */ ([
      [new Error('truncated'), /messages\[0\]\.content\[0\]: Error: truncated$/],
      [undefined, /content\[0\]: image: must be/],
      [{ width: 1e9, height: 1e9, data: new Uint8Array(3) }, /limit is 2\^28/],
      [{ width: 2, height: 2, data: new Uint8Array(4) }, /4 bytes, but 2 x 2 pixels need 3 or 4/],
    ])) {
      decoded = value;
      await assert.rejects(ask(engine, part), words);
    }
    decoded = { width: 1, height: 1, data: [1, 2, 3] };
    assert.equal(await ask(engine, part), await ask(engine, { type: 'image', image: decoded }));
  });

  test('images with extreme aspect ratios are scaled', async (t) => {
    const engine = await open(t, 'gemma3');
    for (const [width, height] of [
      [1, 65_536],
      [65_536, 1],
    ]) {
      const image = { width, height, data: new Uint8Array(width * height * 3) };
      assert.equal(typeof (await ask(engine, { type: 'image', image }, 'What?')), 'string');
    }
    const long = { width: 1, height: 100_000, data: new Uint8Array(300_000) };
    await assert.rejects(ask(engine, { type: 'image', image: long }), {
      code: 'ARG',
      message:
        'messages[0].content[0]: image: 1 x 100000 exceeds 65536 per side or 268435456 pixels',
    });
  });

  test('an error of the encoder names the part', async (t) => {
    const { model: file, mmproj } = typeOf('gemma3');
    const bytes = new Uint8Array(readFileSync(mmproj));
    new Float32Array(bytes.buffer, bytes.length - 4096, 1024).fill(NaN);
    const options = { file, mmproj: bytes, contextSize: 512, chatTemplate: texts };
    const engine = await openEngine(t, any(options));
    await assert.rejects(ask(engine, 'What?', dot(1)), {
      code: 'NONFINITE',
      message: 'messages[0].content[1]: media: row 0 of an embedding is not finite',
    });
  });

  test('more images than fit in the context are rejected before they are encoded', async (t) => {
    const engine = await open(t, 'idefics3', { chatTemplate: lists });
    const { usedBytes: before } = (await engine.info()).memory;
    const many = Array.from({ length: 500 }, (_, index) => dot(index));
    const { tokens, encodeBytes } = await engine.mediaCost(many[0]);
    await assert.rejects(ask(engine, ...many), {
      code: 'PROMPT_TOO_LONG',
      message: `prompt: images and recordings have ${500 * tokens} tokens, limit is 512 (context)`,
    });
    const { usedBytes, peakBytes } = (await engine.info()).memory;
    assert.ok(usedBytes < before + 16384, 'only the list may grow');
    assert.ok(peakBytes < before + 8 * encodeBytes, `${peakBytes} ${before} ${encodeBytes}`);
    const url = `data:;base64,${btoa('P6 1 1 255\nabc')}`;
    const small = { type: 'image_url', image_url: { url } };
    const response = await createHandler(engine)(
      new Request('http://wick.test/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          messages: [{ role: 'user', content: Array(10).fill(small) }],
        }),
      }),
    );
    const { error } = /** @type {any} */ (await response.json());
    assert.deepEqual([response.status, error.code], [400, 'context_length_exceeded']);
    assert.equal(typeof (await ask(engine, known('idefics3', 'wide'))), 'string');
  });
});

describe('recordings', { skip }, () => {
  const about = (/** @type {any} */ engine, /** @type {any} */ part) => ask(engine, part, 'What?');

  test('wrong rates, lengths and values are rejected with their position', async (t) => {
    const engine = await open(t, 'qwen3a');
    const wanted = await about(engine, known('qwen3a', 'a2'));
    const samples = new Float32Array(8);
    const given = (/** @type {any} */ audio) => ({ type: 'audio', audio });
    /** @type {[any, string, RegExp][]} */
    const cases = [
      [wavPart({ rate: 0 }), 'ARG', /sample rate: 0 Hz, limits are 3000 and 768000/],
      [wavPart({ rate: 1 }), 'ARG', /sample rate: 1 Hz/],
      [wavPart({ rate: 2 ** 32 - 1 }), 'ARG', /sample rate: 4294967295 Hz/],
      [wavPart({ channels: 0 }), 'UNSUPPORTED', /format 1 with 16 bits and 0 channels/],
      [wavPart({ bits: 0 }), 'UNSUPPORTED', /format 1 with 0 bits and 1 channels/],
      [wavPart({ format: 85 }), 'UNSUPPORTED', /format 85/],
      [wavPart({ data: Buffer.alloc(0) }), 'ARG', /0 samples/],
      [wavPart({ data: Buffer.alloc(0), rate: 48000 }), 'ARG', /0 samples/],
      [wavPart({ format: 3, bits: 32, data: floats(0, NaN) }), 'ARG', /sample 1 is not a number/],
      [wavPart({ format: 3, bits: 32, data: floats(-Infinity), rate: 8000 }), 'ARG', /sample 0 is/],
      [given({ samples, sampleRate: 1e-300 }), 'ARG', /sample rate: 1e-300 Hz/],
      [given({ samples, sampleRate: Infinity }), 'ARG', /sample rate: Infinity Hz/],
      [given({ samples, sampleRate: NaN }), 'ARG', /recording: must be/],
      [
        given({ samples: new Float32Array(3000 * 14401), sampleRate: 3000 }),
        'ARG',
        /14401 seconds/,
      ],
      [given(new Blob(['ID3'])), 'UNSUPPORTED', /only WAV recordings/],
    ];
    for (const [part, code, words] of cases) {
      await assert.rejects(about(engine, part), (/** @type {any} */ error) => {
        assert.equal(error.code, code, error.message);
        assert.match(error.message, words);
        return true;
      });
    }
    assert.equal(await about(engine, known('qwen3a', 'a2')), wanted);
  });

  test('WAV files: all integer and float formats, channels, incorrect lengths in the header', async (t) => {
    const engine = await open(t, 'qwen3a');
    const samplesOf = async (/** @type {any} */ wav) => [
      ...any(await engine.decodeMedia(wavPart(wav))).audio.samples,
    ];
    const bytes = (/** @type {number[]} */ ...values) => Buffer.from(values);
    assert.deepEqual(await samplesOf({ bits: 8, data: bytes(0, 192) }), [-1, 0.5]);
    assert.deepEqual(await samplesOf({ bits: 24, data: bytes(0, 0, 0x80, 0, 0, 0x40) }), [-1, 0.5]);
    assert.deepEqual(await samplesOf({ bits: 32, data: bytes(0, 0, 0, 0xc0) }), [-0.5]);
    assert.deepEqual(await samplesOf({ format: 3, bits: 32, data: floats(0.25, 8) }), [0.25, 8]);
    const eight = { channels: 8, format: 3, bits: 32, data: floats(1, 0, 0, 0, 0, 0, 0, 1) };
    assert.deepEqual(await samplesOf(eight), [0.25]);
    assert.deepEqual(await samplesOf({ data: bytes(0, 64), claimed: 2 ** 32 - 1 }), [0.5]);
    assert.deepEqual(await samplesOf({ data: bytes(0, 64, 9) }), [0.5]);
  });

  test('a tone at any sample rate equals the tone at 16 kHz', async (t) => {
    const engine = await open(t, 'qwen3a');
    for (const rate of [3000, 8000, 11025, 22050, 44100, 48000, 96000, 191_999, 768_000]) {
      const length = Math.round(rate / 10);
      const tone = (/** @type {number} */ i, /** @type {number} */ hz) =>
        Math.sin((2 * Math.PI * 440 * i) / hz);
      const samples = Float32Array.from({ length }, (_, i) => tone(i, rate));
      const part = any({ type: 'audio', audio: { samples, sampleRate: rate } });
      const found = any(await engine.decodeMedia(part)).audio.samples;
      assert.equal(found.length, Math.round((length * 16000) / rate));
      const middle = Array.from({ length: 1200 }, (_, i) => found[200 + i] - tone(200 + i, 16000));
      const worst = Math.max(...middle.map(Math.abs));
      assert.ok(worst < 2e-3, `${rate}: ${worst}`);
    }
  });
});

describe('requests', { skip }, () => {
  test('text that resembles a marker stays text, and any message may contain images', async (t) => {
    const engine = await open(t, 'gemma3');
    const part = known('gemma3', 'sq');
    const words = '<__media__> <image> <start_of_image> <media-00000000> <|vision_start|>';
    const count = (/** @type {any[]} */ ...content) =>
      engine.countTokens(any([{ role: 'user', content }]));
    const text = { type: 'text', text: words };
    const [both, alone, twice] = [
      await count(text, part),
      await count(part),
      await count(part, part),
    ];
    const noText = await count({ type: 'text', text: words });
    assert.equal(
      both - noText,
      twice - alone,
      'the text takes as many tokens as without the image',
    );
    for (const role of ['system', 'user', 'assistant']) {
      const messages = [
        { role, content: [part] },
        { role: 'user', content: 'What?' },
      ];
      const body = { ...bodyAbout(part), messages };
      const { usage } = any(await engine.chat.completions.create(any(body)));
      assert.equal(usage?.prompt_tokens, await engine.countTokens(any(messages)));
      assert.ok(Number(usage?.prompt_tokens) > alone, role);
    }
  });

  test('closing an engine while it encodes rejects its request, and another engine answers', async (t) => {
    const [closed, kept] = [await open(t, 'gemma3'), await open(t, 'gemma3')];
    const part = known('gemma3', 'sq');
    const wanted = await ask(kept, part);
    const asked = assert.rejects(ask(closed, dot(1), part, 'What?'), { code: 'CLOSED' });
    const meanwhile = ask(kept, part);
    await closed.close();
    await asked;
    assert.equal(await meanwhile, wanted);
    assert.equal(await ask(kept, part), wanted);
  });

  test('a request can be aborted, or its engine closed, between strips of a large image', async (t) => {
    const engine = await open(t, 'gemma3');
    const part = known('gemma3', 'sq');
    const wanted = await ask(engine, part);
    const [width, height] = [5000, 3000];
    const large = (/** @type {number} */ level) => ({
      type: 'image',
      image: { width, height, data: new Uint8Array(width * height * 3).fill(level) },
    });
    const wantedLarge = await ask(engine, large(1));
    for (const delay of [0, 20, 60, 150]) {
      const controller = new AbortController();
      const messages = { ...bodyAbout(large(delay)), signal: controller.signal };
      const aborted = assert.rejects(engine.chat.completions.create(any(messages)), {
        name: 'AbortError',
      });
      const [other, small] = [ask(engine, large(1)), ask(engine, part)];
      await new Promise((resolve) => setTimeout(resolve, delay));
      controller.abort();
      await aborted;
      assert.deepEqual([await other, await small], [wantedLarge, wanted]);
    }
    const asked = assert.rejects(ask(engine, large(2), large(3)), { code: 'CLOSED' });
    await new Promise((resolve) => setTimeout(resolve, 60));
    await engine.close();
    await asked;
  });

  test('several answers about an image are those of one answer each', async (t) => {
    const engine = await open(t, 'gemma3');
    for (let index = 0; index < 8; index++) {
      const body = { ...bodyAbout(dot(index)), n: 3, logprobs: true };
      const { choices, usage } = any(await engine.chat.completions.create(any(body)));
      const wanted = await ask(engine, dot(index), 'What is the word for it?');
      for (const { message, logprobs } of choices) {
        assert.deepEqual([message.content, logprobs.content.length], [wanted, 12]);
      }
      assert.equal(usage.completion_tokens, 36);
    }
  });

  test('requests whose images are being encoded count in queueLimit', async (t) => {
    const engine = await open(t, 'gemma3', { queueLimit: 2 });
    const controller = new AbortController();
    const aborted = { ...bodyAbout(dot(0)), signal: controller.signal };
    const full = { code: 'QUEUE_FULL', message: '2 requests are running or waiting, limit is 2' };
    const [cancelled, answered] = [
      engine.chat.completions.create(any(aborted)),
      ask(engine, dot(1)),
    ];
    await assert.rejects(ask(engine, dot(2)), full);
    controller.abort();
    await assert.rejects(cancelled, { name: 'AbortError' });
    assert.equal(await answered, await ask(engine, dot(1)));
  });

  test('if one of many requests with images is aborted, the others are answered', async (t) => {
    const engine = await open(t, 'gemma3');
    const wanted = await ask(engine, known('gemma3', 'sq'));
    const controllers = Array.from({ length: 6 }, () => new AbortController());
    const asked = controllers.map(({ signal }, index) =>
      engine.chat.completions.create(any({ ...bodyAbout(dot(index)), signal })),
    );
    for (const index of [0, 2, 5]) controllers[index].abort();
    const ended = await Promise.allSettled(asked);
    assert.deepEqual(
      ended.map(({ status }) => status),
      ['rejected', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'rejected'],
    );
    assert.equal(await ask(engine, known('gemma3', 'sq')), wanted);
  });
});
