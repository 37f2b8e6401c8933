// Images and recordings in the Prompt API in Chromium: every class that a browser has for them gives the same answer as its
// pixels or samples, and input that cannot be decoded is rejected as in the web platform tests.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { locate, root } from '../support/locate.mjs';
import { temporaryFolder } from '../support/package.mjs';
import { pngOf } from '../support/png.mjs';

const shared = locate('shared');
const chromium = locate('chromium');
const vision = join(shared.path, 'vectors', 'vision');

/** Runs in the page. */
const script = `
  const { defineLanguageModel } = await import('/wick-llm/prompt-api.js');
  const chatTemplate = '{% for m in messages %}{{ m.content }}{% endfor %}';
  const LanguageModel = defineLanguageModel({ url: '/model.gguf', mmproj: '/mmproj.gguf', chatTemplate, contextSize: 512, threads: 1 });
  const expectedInputs = [{ type: 'image' }, { type: 'audio' }];
  const session = await LanguageModel.create({ expectedInputs, samplingMode: 'most-predictable' });
  const fetched = async (name) => (await fetch(name)).blob();
  const png = await fetched('/image.png');
  const said = (type, value) => [{ role: 'user', content: [{ type, value }, { type: 'text', value: 'What is it?' }] }];
  const answer = async (type, value) => {
    const own = await session.clone();
    const text = await own.prompt(said(type, value), { responseConstraint: /[a-z ]{1,12}/ });
    own.destroy();
    return text;
  };
  const loaded = (image, name) => Object.assign(image, { src: name });
  const canvas = document.createElement('canvas');
  const drawn = (one) => {
    Object.assign(one, { width: 60, height: 40 });
    one.getContext('2d').drawImage(bitmap, 0, 0);
    return one;
  };
  const bitmap = await createImageBitmap(png);
  const pixels = drawn(canvas).getContext('2d').getImageData(0, 0, 60, 40);
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'image');
  for (const [name, value] of [['href', '/image.png'], ['width', 60], ['height', 40]]) svg.setAttribute(name, value);
  const holder = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  holder.append(svg);
  document.body.append(holder);
  await new Promise((settle) => svg.addEventListener('load', settle));
  const buffer = await png.arrayBuffer();
  const shifted = new Uint8Array(buffer.byteLength + 100);
  shifted.set(new Uint8Array(buffer), 100);
  const images = {
    Blob: png,
    ArrayBuffer: buffer,
    view: new DataView(shifted.buffer, 100),
    ImageBitmap: bitmap,
    ImageData: pixels,
    canvas,
    OffscreenCanvas: drawn(new OffscreenCanvas(60, 40)),
    'image that is still loading': loaded(new Image(), '/image.png?again'),
    VideoFrame: new VideoFrame(bitmap, { timestamp: 1 }),
    SVGImageElement: svg,
  };
  const answers = {};
  for (const [name, value] of Object.entries(images)) answers[name] = await answer('image', value);
  images.VideoFrame.close();

  const wav = await fetched('/sound.wav');
  const sound = await new OfflineAudioContext(1, 1, 16000).decodeAudioData(await wav.arrayBuffer());
  const sounds = { Blob: wav, ArrayBuffer: await wav.arrayBuffer(), AudioBuffer: sound };
  const heard = {};
  for (const [name, value] of Object.entries(sounds)) heard[name] = await answer('audio', value);

  const refusal = async (type, value) => {
    try {
      await session.prompt(said(type, value));
      return 'none';
    } catch (error) {
      return error.name;
    }
  };
  const closed = await createImageBitmap(png);
  closed.close();
  const refused = {
    'broken image': await refusal('image', png.slice(0, 60)),
    'bytes that begin too early': await refusal('image', new Uint8Array(shifted.buffer, 50)),
    'an empty canvas': await refusal('image', new OffscreenCanvas(0, 0)),
    'a closed bitmap': await refusal('image', closed),
    'an image as a recording': await refusal('audio', png),
    'a text': await refusal('image', '/image.png'),
    'an element of another class': await refusal('image', document.body),
    'a canvas as a recording': await refusal('audio', canvas),
  };

  const { createEngine } = await import('/wick-llm/index.js');
  const engine = await createEngine({ url: '/model.gguf', mmproj: '/mmproj.gguf', chatTemplate, contextSize: 512, threads: 1 });
  const chats = {};
  for (const [name, part] of Object.entries({
    Blob: { type: 'image', image: png },
    URL: { type: 'image', image: new URL('/image.png', location) },
    canvas: { type: 'image', image: canvas },
    ImageBitmap: { type: 'image', image: bitmap },
    image: { type: 'image', image: loaded(new Image(), '/image.png?chat') },
    AudioBuffer: { type: 'audio', audio: sound },
    recording: { type: 'audio', audio: wav },
  })) {
    const settings = { temperature: 0, max_tokens: 4, ignore_eos: true };
    const chat = await engine.createChat(settings);
    const first = await chat.send({ role: 'user', content: [part, { type: 'text', text: 'What is it?' }] }).text();
    const restored = await engine.loadChat(await chat.save(), settings);
    chats[name] = [first, await chat.send('And?').text(), await restored.send('And?').text()];
  }
  await engine.close();
  return { answers, heard, refused, chats };`;

/** @param {Float32Array} samples @returns {Buffer} a 16-bit WAV file, which every browser decodes */
function wavOf(samples) {
  const data = Buffer.from(Int16Array.from(samples, (one) => Math.round(one * 32767)).buffer);
  const head = Buffer.alloc(44);
  head.write('RIFF');
  head.writeUInt32LE(36 + data.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(16000, 24);
  head.writeUInt32LE(32000, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36);
  head.writeUInt32LE(data.length, 40);
  return Buffer.concat([head, data]);
}

test('every class of image and recording in browsers', {
  skip: shared.skip || chromium.skip,
}, async (t) => {
  const { types } = JSON.parse(readFileSync(join(vision, 'manifest.json'), 'utf8'));
  const type = types.find((/** @type {any} */ { id }) => id === 'gemma4');
  const parts = type.cases.flatMap((/** @type {any} */ one) => one.parts);
  const { audio } = parts.find((/** @type {any} */ part) => part.audio);
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'page'));
  const file = (/** @type {string} */ name) => join(folder, 'page', name);
  copyFileSync(join(vision, type.text_model), file('model.gguf'));
  copyFileSync(join(vision, type.mmproj), file('mmproj.gguf'));
  const data = Uint8Array.from({ length: 60 * 40 * 3 }, (_, at) => (at * 7) & 255);
  writeFileSync(file('image.png'), pngOf({ width: 60, height: 40, data }));
  const raw = new Uint8Array(readFileSync(join(vision, audio)));
  writeFileSync(file('sound.wav'), wavOf(new Float32Array(raw.buffer)));
  writeFileSync(file('index.html'), '<!doctype html><title>Values</title>');
  const server = await serve({
    root: { '/': join(folder, 'page'), '/wick-llm/': join(root, 'dist') },
  });
  t.after(() => server.close());
  const browser = await launchChromium();
  t.after(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(server.url);
  const { answers, heard, refused, chats } = /** @type {any} */ (
    await page.evaluate(`(async () => { ${script} })()`)
  );
  const { Blob: answer, ...others } = answers;
  assert.ok(answer.length > 0);
  for (const [name, one] of Object.entries(others)) assert.equal(one, answer, name);
  const { Blob: words, ...again } = heard;
  for (const [name, one] of Object.entries(again)) assert.equal(one, words, name);
  const { recording, AudioBuffer: buffered, Blob: first, ...drawn } = chats;
  assert.equal(first[1], first[2]);
  for (const [name, one] of Object.entries(drawn)) assert.deepEqual(one, first, name);
  assert.deepEqual(buffered, recording);
  assert.deepEqual(refused, {
    'broken image': 'InvalidStateError',
    'bytes that begin too early': 'InvalidStateError',
    'an empty canvas': 'InvalidStateError',
    'a closed bitmap': 'InvalidStateError',
    'an image as a recording': 'DataError',
    'a text': 'TypeError',
    'an element of another class': 'TypeError',
    'a canvas as a recording': 'TypeError',
  });
});
