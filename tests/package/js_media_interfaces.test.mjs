// Images and recordings in interfaces of other libraries, in Node: the Prompt API (expectedInputs), the backend for its
// polyfill, and transformers.js pipelines. Results are compared with chat completions of the same parts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { cutSamples } from '../../js/pipeline/media.js';
import { locate } from '../support/locate.mjs';
import { dist, hasCode, openEngine } from '../support/package.mjs';

/** @type {typeof import('../../js/prompt-api.js')} */
const prompts = await import(pathToFileURL(join(dist, 'prompt-api.js')).href);
const { defineLanguageModel, definePolyfillBackend } = prompts;
const { LanguageModelToolSuccess } = prompts;
/** @type {typeof import('../../js/pipeline.js')} */
const { pipeline, TextStreamer } = await import(pathToFileURL(join(dist, 'pipeline.js')).href);

const shared = locate('shared');
const folder = join(shared.path, 'vectors', 'vision');
/** @type {any[]} */
const types = shared.skip
  ? []
  : JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')).types;
const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);
const named = (/** @type {string} */ name) => ({ name });

/** A model for images and audio. */
const both = types.find(({ id }) => id === 'gemma4');
const chatTemplate = '{% for m in messages %}{{ m.content }}{% endfor %}';
const options = () => ({
  ...{ file: join(folder, both.text_model), mmproj: join(folder, both.mmproj) },
  ...{ chatTemplate, contextSize: 512, threads: 1 },
});

/** Returns the bytes of the first case of a kind. @param {'image' | 'audio'} kind */
function partOf(kind) {
  const parts = both.cases.flatMap((/** @type {any} */ one) => one.parts);
  const found = parts.find((/** @type {any} */ part) => part[kind]);
  return { ...found, bytes: new Uint8Array(readFileSync(join(folder, found[kind]))) };
}

/** @returns {Blob} */
function ppm() {
  const { width, height, bytes } = partOf('image');
  return new Blob([`P6\n${width} ${height}\n255\n`, bytes], { type: 'image/x-portable-pixmap' });
}

/** @returns {{samples: Float32Array<ArrayBuffer>, sampleRate: number}} */
const sound = () => ({
  samples: new Float32Array(partOf('audio').bytes.buffer),
  sampleRate: 16000,
});

/** @returns {Blob} a WAV file with the samples as 32-bit floats */
function wav() {
  const { samples } = sound();
  const head = new DataView(new ArrayBuffer(44));
  for (const [at, word] of /** @type {[number, string][]} */ ([
    ...[
      [0, 'RIFF'],
      [8, 'WAVE'],
      [12, 'fmt '],
      [36, 'data'],
    ],
  ])) {
    for (let i = 0; i < 4; i++) head.setUint8(at + i, word.charCodeAt(i));
  }
  head.setUint32(4, 36 + samples.byteLength, true);
  head.setUint32(16, 16, true);
  head.setUint16(20, 3, true);
  head.setUint16(22, 1, true);
  head.setUint32(24, 16000, true);
  head.setUint32(28, 64000, true);
  head.setUint16(32, 4, true);
  head.setUint16(34, 32, true);
  head.setUint32(40, samples.byteLength, true);
  return new Blob([head, samples], { type: 'audio/wav' });
}

/** @param {any} engine @param {any} content @param {object} [more] */
async function answerOf(engine, content, more) {
  const messages = [{ role: 'user', content }];
  const body = { messages, temperature: 0, max_tokens: 12, ...more };
  return (await engine.chat.completions.create(body)).choices[0].message.content;
}

test('a part is decoded once, for several requests', { skip: shared.skip }, async (t) => {
  const { width, height, bytes } = partOf('image');
  const found = { width, height, data: Uint8Array.from(bytes, (_, at) => bytes[at] ^ 1) };
  let decoded = 0;
  const decodeImage = async () => {
    decoded++;
    return found;
  };
  const engine = await openEngine(t, any({ ...options(), decodeImage }));
  const part = await engine.decodeMedia({ type: 'image', image: new Blob(['png']) });
  assert.deepEqual(part, { type: 'image', image: found });
  const tokens = await engine.countTokens([{ role: 'user', content: [part] }]);
  assert.ok(tokens > 1 && decoded === 1);
  const sample = sound();
  const audio = await engine.decodeMedia({ type: 'audio', audio: wav() });
  assert.deepEqual(audio, { type: 'audio', audio: sample });
  const counted = (/** @type {any} */ content) => engine.countTokens([{ role: 'user', content }]);
  for (const one of [part, audio]) {
    const cost = await engine.mediaCost(any(one));
    assert.equal(cost.tokens, (await counted([one])) - (await counted('')));
    assert.ok(cost.rows > 0 && cost.rows <= cost.tokens && cost.tiles > 0);
    assert.ok(cost.macs > 1e4 && cost.encodeBytes > 1e3);
    assert.equal(cost.seconds, cost.macs / 4e10, 'nothing has been measured');
  }
  const text = { type: 'text', text: 'Hello' };
  await assert.rejects(engine.mediaCost(any(text)), hasCode('ARG'));
  assert.deepEqual(await engine.decodeMedia(any(text)), text);
  await assert.rejects(engine.decodeMedia(any({ type: 'smell' })), hasCode('UNSUPPORTED'));
});

test('the seconds of an image are estimated at the rate of earlier ones', {
  skip: shared.skip,
}, async (t) => {
  const engine = await openEngine(t, any(options()));
  const image = (/** @type {number} */ level) => ({
    type: 'image',
    image: { width: 300, height: 300, data: new Uint8Array(270_000).fill(level) },
  });
  const start = performance.now();
  await answerOf(engine, [image(1)]);
  const seconds = (performance.now() - start) / 1000;
  const cost = await engine.mediaCost(any(image(2)));
  assert.ok(cost.seconds > 0 && cost.seconds < seconds, `${cost.seconds} of ${seconds}`);
  assert.notEqual(cost.seconds, cost.macs / 4e10);
});

describe('the Prompt API', { skip: shared.skip }, () => {
  const expectedInputs = [{ type: any('image') }, { type: any('audio') }];
  const exact = { samplingMode: any('most-predictable'), expectedInputs };
  const short = { responseConstraint: /[a-z ]{1,12}/ };
  const said = (/** @type {string} */ type, /** @type {unknown} */ value) =>
    any([
      {
        role: 'user',
        content: [
          { type, value },
          { type: 'text', value: 'What is it?' },
        ],
      },
    ]);

  test('availability depends on the model’s inputs, before and after it is loaded', async (t) => {
    const with1 = defineLanguageModel(any(options()));
    assert.equal(await with1.availability({ expectedInputs }), 'available');
    const { mmproj, ...without } = options();
    const text = defineLanguageModel(any(without));
    assert.equal(await text.availability(), 'available');
    assert.equal(await text.availability({ expectedInputs }), 'unavailable');
    await assert.rejects(text.create({ expectedInputs }), named('NotSupportedError'));
    const images = types.find(({ id }) => id === 'idefics3');
    const engine = await openEngine(t, {
      ...{ file: join(folder, images.text_model), mmproj: join(folder, images.mmproj) },
      ...{ chatTemplate, contextSize: 256 },
    });
    for (const source of [engine, async () => engine]) {
      const LanguageModel = defineLanguageModel(source);
      const [image, audio] = expectedInputs;
      (await LanguageModel.create({ expectedInputs: [image] })).destroy();
      assert.equal(await LanguageModel.availability({ expectedInputs: [image] }), 'available');
      assert.equal(await LanguageModel.availability({ expectedInputs }), 'unavailable');
      assert.equal(await LanguageModel.availability({ expectedInputs: [audio] }), 'unavailable');
      const refused = LanguageModel.create({ expectedInputs: [audio] });
      await assert.rejects(refused, named('NotSupportedError'));
    }
    const late = defineLanguageModel(async () => engine);
    const refused = late.create({ expectedInputs });
    await assert.rejects(refused, named('NotSupportedError')); // known only once the model is loaded
  });

  test('images and recordings give the same answers as in chat completions, also in later prompts', async (t) => {
    const engine = await openEngine(t, any(options()));
    const LanguageModel = defineLanguageModel(engine);
    const { width, height, bytes } = partOf('image');
    const text = { type: 'text', text: 'What is it?' };
    /** @type {[string, () => unknown, any][]} */
    const values = [
      ['image', ppm, { type: 'image', image: ppm() }],
      ['image', () => ({ width, height, data: bytes.slice() }), { type: 'image', image: ppm() }],
      ['audio', wav, { type: 'audio', audio: sound() }],
    ];
    for (const [type, make, part] of values) {
      const session = await LanguageModel.create(exact);
      const answer = await session.prompt(said(type, make()), short);
      const wanted = { temperature: 0, top_k: 40, regex: /[a-z ]{1,12}/ };
      assert.equal(answer, await answerOf(engine, [part, text], wanted));
      assert.ok(answer.length > 0);
      const used = session.contextUsage;
      const measured = await session.measureContextUsage(said(type, make()));
      const alone = await engine.countTokens(any([{ role: 'user', content: [part] }]));
      assert.ok(
        measured >= alone && used > alone,
        `${measured} measured and ${used} used tokens, but ${alone} for the part only`,
      );
      const twin = await session.clone();
      const next = await session.prompt('And now?', short);
      assert.equal(await twin.prompt('And now?', short), next);
      for (const one of [session, twin]) one.destroy();
    }
  });

  test('bytes are copied when prompt() is called; initialPrompts and append accept bytes as well', async (t) => {
    const engine = await openEngine(t, any(options()));
    const LanguageModel = defineLanguageModel(engine);
    const buffer = await ppm().arrayBuffer();
    const initialPrompts = said('image', buffer);
    const session = await LanguageModel.create({ ...exact, initialPrompts });
    new Uint8Array(buffer).fill(0);
    const other = await LanguageModel.create(exact);
    await other.append(said('image', new DataView(await ppm().arrayBuffer())));
    assert.equal(session.contextUsage, other.contextUsage);
    assert.equal(await session.prompt('Say it.', short), await other.prompt('Say it.', short));
  });

  test('invalid inputs are rejected', async (t) => {
    const LanguageModel = defineLanguageModel(await openEngine(t, any(options())));
    const session = await LanguageModel.create(exact);
    const text = await LanguageModel.create();
    const assistant = any([{ role: 'assistant', content: [{ type: 'image', value: ppm() }] }]);
    const broken = new Blob(['P6\n9 9\n255\n']);
    /** @type {[typeof session, any, string][]} */
    const wrong = [
      [text, said('image', ppm()), 'NotSupportedError'],
      [text, said('audio', wav()), 'NotSupportedError'],
      [session, assistant, 'NotSupportedError'],
      [session, said('image', 'https://example.com/a.png'), 'TypeError'],
      [session, said('image', 5), 'TypeError'],
      [session, said('audio', sound()), 'TypeError'],
      [session, said('image', broken), 'InvalidStateError'],
      [session, said('audio', ppm()), 'DataError'],
    ];
    for (const [on, input, name] of wrong) {
      await assert.rejects(on.prompt(input), named(name));
      await assert.rejects(on.append(input), named(name));
      await assert.rejects(on.measureContextUsage(input), named(name));
      await assert.rejects(
        LanguageModel.create({ ...(on === session && exact), initialPrompts: input }),
        named(name),
      );
    }
    assert.equal(session.contextUsage, 0);
    const result = [{ type: any('image'), value: ppm() }];
    const value = new LanguageModelToolSuccess({ callID: '1', name: 'look', result });
    const tools = await LanguageModel.create({ expectedInputs: [{ type: 'tool-response' }] });
    await assert.rejects(tools.prompt(said('tool-response', value)), named('NotSupportedError'));
  });

  test('instructions about a response constraint follow the image', async (t) => {
    const engine = await openEngine(t, any(options()));
    const session = await defineLanguageModel(engine).create(exact);
    const responseConstraint = { type: 'string', maxLength: 4 };
    const content = [{ type: 'image', value: ppm() }];
    const answer = await session.prompt(any([{ role: 'user', content }]), { responseConstraint });
    assert.equal(typeof JSON.parse(answer), 'string');
  });

  test('the polyfill accepts inlineData', async (t) => {
    const engine = await openEngine(t, any(options()));
    const Backend = definePolyfillBackend(engine);
    assert.equal(Backend.availability({ expectedInputs }), 'available');
    assert.equal(
      definePolyfillBackend(any(options())).availability({ expectedInputs }),
      'available',
    );
    const { mmproj, ...without } = options();
    const { file, ...rest } = without;
    const text = definePolyfillBackend(any({ ...rest, url: 'https://example.com/m.gguf' }));
    assert.equal(text.availability({ expectedInputs }), 'unavailable');
    const backend = new Backend({});
    const data = Buffer.from(await ppm().arrayBuffer()).toString('base64');
    const inlineData = { mimeType: 'image/x-portable-pixmap', data };
    const contents = [{ role: any('user'), parts: [{ inlineData }, { text: 'What is it?' }] }];
    const parts = [
      { type: 'image', image: ppm() },
      { type: 'text', text: 'What is it?' },
    ];
    const wanted = await engine.countTokens(any([{ role: 'user', content: parts }]));
    assert.equal(await backend.countTokens(contents), wanted);
    const film = [{ role: any('user'), parts: [{ inlineData: { mimeType: 'video/mp4', data } }] }];
    await assert.rejects(backend.countTokens(film), named('NotSupportedError'));
  });
});

describe('pipelines', { skip: shared.skip }, () => {
  const settings = { max_new_tokens: 12 };
  const image = () => ({ type: 'image', image: ppm() });
  const text = { type: 'text', text: 'What is it?' };

  test('image-text-to-text: one chat, several chats, images with a string or a chat', async (t) => {
    const engine = await openEngine(t, any(options()));
    const describeImage = await pipeline('image-text-to-text', engine);
    const content = await answerOf(engine, [image(), text], { repeat_last_n: -1 });
    /** @type {(part: any) => import('../../js/index.js').ChatMessage[]} */
    const chat = (part) => [{ role: 'user', content: any([part, text]) }];
    const address = `data:image/x-portable-pixmap;base64,${Buffer.from(await ppm().arrayBuffer()).toString('base64')}`;
    for (const part of [image(), { type: 'image', url: address }]) {
      const [{ generated_text: all }] = await describeImage(chat(part), settings);
      assert.deepEqual(all.at(-1), { role: 'assistant', content });
      assert.equal(all.length, 2);
    }
    const several = await describeImage([chat(image()), chat(image())], settings);
    assert.deepEqual(
      several.map(([one]) => one.generated_text.at(-1)?.content),
      [content, content],
    );
    const short = await describeImage(ppm(), text.text, settings);
    assert.deepEqual(short, [{ input_text: text.text, generated_text: content }]);
    const [filled] = await describeImage([ppm()], chat({ type: 'image' }), settings);
    assert.equal(filled.generated_text.at(-1)?.content, content);
    let streamed = '';
    const callback_function = (/** @type {string} */ piece) => {
      streamed += piece;
    };
    const streamer = new TextStreamer(describeImage.tokenizer, { callback_function });
    await describeImage(chat(image()), { ...settings, streamer });
    assert.equal(streamed, content);
    const two = describeImage([ppm(), ppm()], chat({ type: 'image' }), settings);
    await assert.rejects(two, hasCode('ARG'));
    await assert.rejects(any(describeImage)(ppm()), hasCode('ARG'));
  });

  test('automatic-speech-recognition: files, samples, several inputs', async (t) => {
    const engine = await openEngine(t, any(options()));
    const transcribe = await pipeline('automatic-speech-recognition', engine);
    const asked = async (/** @type {any} */ audio, /** @type {string} */ words) => {
      const parts = [
        { type: 'audio', audio },
        { type: 'text', text: words },
      ];
      return (await answerOf(engine, parts, { repeat_last_n: -1 })).trim();
    };
    const plain = { text: await asked(sound(), 'Transcribe the speech.') };
    assert.deepEqual(await transcribe(wav(), settings), plain);
    assert.deepEqual(await transcribe(sound().samples, settings), plain);
    const doubles = Float64Array.from(sound().samples);
    assert.deepEqual(await transcribe([sound(), doubles], settings), [plain, plain]);
    const words = 'Transcribe the speech, which is in French.';
    const french = await transcribe(wav(), { ...settings, language: 'French' });
    assert.equal(french.text, await asked(sound(), words));
    const own = await transcribe(wav(), { ...settings, prompt: 'Write it down.' });
    assert.equal(own.text, await asked(sound(), 'Write it down.'));
    const english = await transcribe(wav(), { ...settings, task: 'translate' });
    assert.equal(english.text, await asked(sound(), 'Translate the speech into English.'));
    const { samples } = sound();
    const seconds = samples.length / 16000 / 2;
    const pieces = cutSamples(samples, seconds);
    const texts = [];
    for (const piece of pieces) {
      texts.push(await asked({ samples: piece, sampleRate: 16000 }, 'Transcribe the speech.'));
    }
    const cut = await transcribe(wav(), { ...settings, chunk_length_s: seconds });
    assert.equal(cut.text, texts.join(' '));
    const times = transcribe(wav(), any({ return_timestamps: true }));
    await assert.rejects(times, hasCode('UNSUPPORTED'));
    await assert.rejects(transcribe(wav(), any({ task: 'sing' })), hasCode('ARG'));
    await assert.rejects(transcribe(wav(), any({ num_beams: 4 })), hasCode('UNSUPPORTED'));
  });

  test('a model without the encoder is rejected with an error that names it', async (t) => {
    const engine = await openEngine(t);
    const describeImage = await pipeline('image-text-to-text', engine);
    await assert.rejects(describeImage(ppm(), 'What?'), hasCode('UNSUPPORTED'));
    const transcribe = await pipeline('automatic-speech-recognition', engine);
    await assert.rejects(transcribe(wav()), hasCode('UNSUPPORTED'));
  });
});

test('a recording is cut at quiet positions, and all samples are kept', () => {
  const samples = new Float32Array(16000 * 5).fill(0.5);
  samples.fill(0, 16000 * 2 - 5000, 16000 * 2 - 4000);
  const pieces = cutSamples(samples, 2);
  assert.ok(pieces[0].length > 16000 * 2 - 5000 && pieces[0].length < 16000 * 2 - 4000);
  assert.ok(pieces.every(({ length }) => length > 0 && length <= 16000 * 2));
  assert.equal(
    pieces.reduce((sum, { length }) => sum + length, 0),
    samples.length,
  );
  assert.deepEqual(cutSamples(samples, 0), [samples]);
  assert.deepEqual(cutSamples(samples, 5), [samples]);
});
