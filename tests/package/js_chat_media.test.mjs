// Chats about images and recordings: every form of content is copied, kept in forks and saved chats, and processed as in
// chat completions.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileOf, folder, partOf, skip, texts, typeOf } from '../support/media_files.mjs';
import { openEngine } from '../support/package.mjs';

const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);
const short = { temperature: 0, max_tokens: 4, ignore_eos: true };
const urlOf = (/** @type {Buffer} */ file) => `data:;base64,${file.toString('base64')}`;

/** @param {import('node:test').TestContext} t @param {string} id of a type */
function open(t, id) {
  const { model: file, mmproj } = typeOf(id);
  return openEngine(t, any({ file, mmproj, contextSize: 512, chatTemplate: texts }));
}

/** @returns {any[]} parts with the same image in all forms that Node supports */
function imageParts() {
  const part = partOf('gemma3', 'sq');
  const { width, height } = part;
  const data = new Uint8Array(readFileSync(join(folder, part.image)));
  const file = fileOf(part);
  const url = new URL(urlOf(file));
  const rgba = Uint8Array.from({ length: 4 * width * height }, (_, at) =>
    at % 4 === 3 ? 255 : data[3 * (at >> 2) + (at % 4)],
  );
  return [
    ...[url, url.href, new Blob([any(file)]), new Uint8Array(file), new Uint8Array(file).buffer],
    ...[
      { width, height, data },
      { width, height, data: rgba },
    ],
  ]
    .map((image) => ({ type: 'image', image }))
    .concat(any([{ type: 'image_url', image_url: { url } }]));
}

/** @returns {any[]} */
function audioParts() {
  const part = partOf('qwen3a', 'a2');
  const { buffer } = new Uint8Array(readFileSync(join(folder, part.audio)));
  const file = fileOf(part);
  const forms = [new URL(urlOf(file)), new Blob([any(file)])];
  const sound = { samples: new Float32Array(buffer), sampleRate: 16000 };
  const input = { data: file.toString('base64'), format: 'wav' };
  return [...forms, sound]
    .map((audio) => ({ type: 'audio', audio }))
    .concat(any([{ type: 'input_audio', input_audio: input }]));
}

/** Overwrites what the caller may change after it has sent a part. @param {any} part */
function spoil(part) {
  const content = part.image ?? part.audio;
  const bytes = content?.data ?? content?.samples ?? content;
  if (bytes instanceof ArrayBuffer) new Uint8Array(bytes).fill(0);
  else if (ArrayBuffer.isView(bytes)) any(bytes).fill(0);
}

describe('chats about media', { skip }, () => {
  for (const [id, parts] of /** @type {[string, () => any[]][]} */ ([
    ['gemma3', imageParts],
    ['qwen3a', audioParts],
  ])) {
    test(`${id}: each form is read, copied, forked, saved and loaded`, async (t) => {
      const engine = await open(t, id);
      const question = { type: 'text', text: 'What is it?' };
      const about = (/** @type {any} */ part) => any({ role: 'user', content: [part, question] });
      const body = { ...short, messages: [about(parts()[0])] };
      const wanted = any(await engine.chat.completions.create(any(body))).choices[0].message;
      let next = '';
      for (const part of parts()) {
        const chat = await engine.createChat(short);
        const reply = chat.send(about(part));
        spoil(part);
        assert.equal(await reply.text(), wanted.content);
        const fork = await chat.fork();
        const loaded = await engine.loadChat(await chat.save(), short);
        const count = await chat.countTokens('And?');
        assert.deepEqual(
          [await fork.countTokens('And?'), await loaded.countTokens('And?')],
          [count, count],
        );
        for (const one of [chat, fork, loaded]) {
          const answer = one.send('And?');
          const text = await answer.text();
          next ||= text;
          assert.equal(text, next);
          assert.ok(Number(answer.result?.usage.cachedTokens) > 16);
        }
        for (const one of [chat, fork, loaded]) await one.close();
      }
      const started = await engine.createChat({ ...short, messages: [about(parts()[0]), wanted] });
      assert.equal(await started.send('And?').text(), next);
    });
  }

  test('content that cannot be read is refused with its position, and the conversation is unchanged', async (t) => {
    const engine = await open(t, 'gemma3');
    const chat = await engine.createChat(short);
    const image = { draw() {} };
    const message = /** @type {any} */ ({ role: 'user', content: [{ type: 'image', image }] });
    await assert.rejects(chat.send(message).text(), {
      code: 'ARG',
      message: /^messages\[0\]\.content\[0\]: image: must be/,
    });
    assert.deepEqual(chat.history, []);
  });
});
