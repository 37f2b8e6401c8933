// Images and recordings in messages to wasi:http components: data URLs with PPM files and base64 WAV files get the same
// answers as from the JavaScript handler, while other requests continue. Errors name the input that cannot be decoded.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { startWasmtime } from '../support/component_servers.mjs';
import { ask, readEvents } from '../support/example_servers.mjs';
import { built, locate } from '../support/locate.mjs';
import {
  bodyAbout,
  lists,
  messagePartOf,
  partOf,
  refusedParts,
  skip,
  texts,
  typeOf,
  wavOf,
} from '../support/media_files.mjs';
import { createEngine, dist, temporaryFolder } from '../support/package.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);
const CHAT = '/v1/chat/completions';
const missing = skip || locate('wasmtimeCommand').skip;

/** @param {Record<string, string>} variables @returns {string[]} */
const envOf = (variables) =>
  Object.entries(variables).flatMap(([name, value]) => ['--env', `${name}=${value}`]);

/** @param {string} component p2 or p3 @param {string} id of a type @param {Record<string, string>} [more] variables */
function start(component, id, more = {}) {
  const { model, mmproj } = typeOf(id);
  const variables = {
    WICK_MMPROJ: `/models/${basename(mmproj)}`,
    WICK_CHAT_TEMPLATE: texts,
    ...more,
  };
  return startWasmtime(component, { model, args: envOf(variables) });
}

/** @param {string} id of a type @param {any} body @param {object} [more] options @returns {Promise<any>} the handler's response */
async function wanted(id, body, more) {
  const { model, mmproj } = typeOf(id);
  const options = { file: model, mmproj, threads: 1, chatTemplate: texts, ...more };
  const engine = await createEngine(/** @type {any} */ (options));
  const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
  const request = new Request(`http://wick.test${CHAT}`, { ...init, body: JSON.stringify(body) });
  const answer = await (await createHandler(engine)(request)).json();
  await engine.close();
  return answer;
}

/** @param {string} origin @param {any} body */
async function asked(origin, body) {
  const response = await ask(origin, CHAT, body);
  return { status: response.status, body: /** @type {any} */ (await response.json()) };
}

for (const component of ['p2', 'p3']) {
  describe(`wick-${component}`, { skip: missing || !built(`edge/wick-${component}.wasm`) }, () => {
    /** @type {import('../support/example_servers.mjs').Started} */
    let server;
    before(async () => {
      server = await start(component, 'gemma3');
    });
    after(() => server.close());

    test('a question about an image is answered, streamed and not', async () => {
      const body = bodyAbout(messagePartOf(partOf('gemma3', 'sq')));
      const theirs = await wanted('gemma3', body);
      const mine = await asked(server.origin, body);
      assert.equal(mine.status, 200, JSON.stringify(mine.body) + server.output());
      assert.deepEqual(mine.body.choices, theirs.choices);
      assert.equal(mine.body.usage.prompt_tokens, theirs.usage.prompt_tokens);
      const response = await ask(server.origin, CHAT, { ...body, stream: true });
      const { text, isWhole } = readEvents(await response.text());
      assert.deepEqual([text, isWhole], [theirs.choices[0].message.content, true]);
    });

    test('formats that this host cannot decode are rejected with their name', async () => {
      for (const [part, code, words] of refusedParts) {
        const { status, body } = await asked(server.origin, bodyAbout(part));
        assert.deepEqual([status, body.error.code], [400, code], body.error.message);
        assert.match(body.error.message, words);
      }
      const recording = messagePartOf(partOf('qwen3a', 'a2'));
      const { status, body } = await asked(server.origin, bodyAbout(recording));
      assert.deepEqual([status, body.error.code], [400, 'unsupported_value']);
      assert.match(body.error.message, /^messages\[0\]\.content\[0\]: recordings need an mmproj/);
    });
  });
}

describe('wick-p3 with different files and settings', { skip: missing }, () => {
  test('a recording is accepted; a different rate or format is rejected', async (t) => {
    const server = await start('p3', 'qwen3a');
    t.after(() => server.close());
    const part = partOf('qwen3a', 'a2');
    const body = bodyAbout(messagePartOf(part));
    const mine = await asked(server.origin, body);
    assert.equal(mine.status, 200, JSON.stringify(mine.body));
    assert.deepEqual(mine.body.choices, (await wanted('qwen3a', body)).choices);
    for (const [samples, words] of /** @type {[Float32Array, RegExp][]} */ ([
      [Float32Array.of(0, NaN), /content\[0\]: audio: sample 1 is not a number/],
      [new Float32Array(0), /content\[0\]: audio: 0 samples/],
    ])) {
      const data = wavOf(new Uint8Array(samples.buffer)).toString('base64');
      const input = { type: 'input_audio', input_audio: { data, format: 'wav' } };
      const { status, body: reported } = await asked(server.origin, bodyAbout(input));
      assert.deepEqual([status, reported.error.code], [400, 'invalid_value']);
      assert.match(reported.error.message, words);
    }
    for (const [bytes, words] of /** @type {[Buffer, RegExp][]} */ ([
      [wavOf(new Uint8Array(8000), 8000), /only WAV recordings at 16 kHz: its rate/],
      [Buffer.from('ID3 mp3'), /16 kHz: not a WAV file/],
    ])) {
      const data = bytes.toString('base64');
      const other = { type: 'input_audio', input_audio: { data, format: 'mp3' } };
      const { status, body: reported } = await asked(server.origin, bodyAbout(other));
      assert.deepEqual([status, reported.error.code], [400, 'unsupported_value']);
      assert.match(reported.error.message, words);
    }
  });

  test('errors about malicious bodies name the part, and the next request is answered', async (t) => {
    const server = await start('p3', 'idefics3', {
      ...{ WICK_CHAT_TEMPLATE: lists, WICK_CONTEXT_TOKENS: '256' },
    });
    t.after(() => server.close());
    const part = messagePartOf(partOf('idefics3', 'wide'));
    const body = bodyAbout(part);
    const limits = { contextSize: 256, chatTemplate: lists };
    const theirs = await wanted('idefics3', body, limits);
    const url = (/** @type {string} */ text) => ({ type: 'image_url', image_url: { url: text } });
    const ppm = (/** @type {string | Buffer} */ file) =>
      url(`data:image/ppm;base64,${Buffer.from(file).toString('base64')}`);
    for (const [one, code, words] of /** @type {[any, string, RegExp][]} */ ([
      [url('data:image/ppm,P6'), 'invalid_value', /data URL must be in base64/],
      [url('data:image/ppm;base64,UDY*'), 'invalid_value', /the data is not base64/],
      [url('data:image/ppm;base64,UDYgM'), 'invalid_value', /the data is not base64/],
      [url('data:image/ppm;base64,'), 'unsupported_value', /decodes only PPM images/],
      [ppm('P6 0 0 255\n'), 'invalid_value', /image/],
      [ppm('P6 999999999 999999999 255\n'), 'invalid_value', /PPM image has only 0 of/],
      [ppm('P6 1 1 65535\n......'), 'unsupported_value', /8 bits/],
      [null, 'invalid_value', /content\[0\] must be a part/],
      ['image', 'invalid_value', /content\[0\] must be a part/],
      [{ type: 7 }, 'invalid_value', /content\[0\] must be a part/],
      [{ type: 'text', text: 5 }, 'invalid_value', /content\[0\] must be a part/],
    ])) {
      const { status, body: reported } = await asked(server.origin, bodyAbout(one));
      assert.deepEqual(
        [status, reported.error?.code],
        [400, code],
        JSON.stringify([one, reported]),
      );
      assert.match(reported.error.message, words);
    }
    const dots = Array.from({ length: 400 }, (_, i) =>
      ppm(Buffer.from([...Buffer.from('P6 1 1 255\n'), i, i >> 8, 9])),
    );
    const many = { ...body, messages: [{ role: 'user', content: dots }] };
    const { status, body: reported } = await asked(server.origin, many);
    assert.deepEqual([status, reported.error.code], [400, 'context_length_exceeded']);
    assert.match(
      reported.error.message,
      /^prompt: images and recordings have \d+ tokens, limit is 256 \(context\)$/,
    );
    const leaving = new AbortController();
    const left = fetch(`${server.origin}${CHAT}`, {
      ...{
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        signal: leaving.signal,
      },
      body: JSON.stringify({ ...bodyAbout(dots[1]), stream: true }),
    }).then((response) => response.text());
    setTimeout(() => leaving.abort(), 20);
    await left.catch(() => undefined);
    const mine = await asked(server.origin, body);
    assert.deepEqual(mine.body.choices, theirs.choices);
    const system = { ...body, messages: [{ role: 'system', content: [part] }, ...body.messages] };
    assert.equal((await asked(server.origin, system)).status, 200);
  });

  test('encoders with NaN weights fail only the request', async (t) => {
    const folder = temporaryFolder();
    const bytes = readFileSync(typeOf('gemma3').mmproj);
    new Float32Array(bytes.buffer, bytes.byteOffset + bytes.length - 4096, 1024).fill(NaN);
    writeFileSync(join(folder, 'nan.gguf'), bytes);
    const variables = { WICK_MMPROJ: '/nan/nan.gguf', WICK_CHAT_TEMPLATE: texts };
    const args = ['--dir', `${folder}::/nan`, ...envOf(variables)];
    const server = await startWasmtime('p3', { model: typeOf('gemma3').model, args });
    t.after(() => server.close());
    const about = bodyAbout(messagePartOf(partOf('gemma3', 'sq')));
    const { status, body } = await asked(server.origin, about);
    assert.deepEqual([status, body.error.code], [500, 'nonfinite'], body.error.message);
    const text = await asked(server.origin, bodyAbout({ type: 'text', text: 'Once' }));
    assert.equal(text.status, 200);
  });

  test('limits, list templates and concurrent requests work with images', async (t) => {
    const server = await start('p3', 'idefics3', {
      ...{ WICK_CHAT_TEMPLATE: lists, WICK_MAX_TILES: '1', WICK_CONTEXT_TOKENS: '64' },
    });
    t.after(() => server.close());
    const body = bodyAbout(messagePartOf(partOf('idefics3', 'wide')));
    const limits = { maxTiles: 1, contextSize: 64, chatTemplate: lists };
    const theirs = await wanted('idefics3', body, limits);
    const text = { prompt: 'Once', temperature: 0, max_tokens: 20, stream: true };
    const answers = await Promise.all([
      asked(server.origin, body),
      ask(server.origin, '/v1/completions', text).then((response) => response.text()),
      asked(server.origin, body),
    ]);
    assert.deepEqual(answers[0].body.choices, theirs.choices);
    assert.deepEqual(answers[2].body.choices, theirs.choices);
    assert.equal(readEvents(answers[1]).isWhole, true);
    const [content] = body.messages;
    const three = { ...body, messages: [content, content, content] };
    const { status, body: reported } = await asked(server.origin, three);
    assert.deepEqual([status, reported.error.code], [400, 'context_length_exceeded']);
  });

  test('an mmproj file loads from a URL; a wrong one causes a 503', async (t) => {
    const { mmproj, model } = typeOf('gemma3');
    const files = createServer((request, response) => {
      const bytes = readFileSync(request.url === '/mmproj.gguf' ? mmproj : model);
      const [, first, last] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '') ?? [];
      const end = Math.min(Number(last) + 1, bytes.length);
      response.writeHead(206, { 'Content-Range': `bytes ${first}-${end - 1}/${bytes.length}` });
      response.end(bytes.subarray(Number(first), end));
    }).listen(0, '127.0.0.1');
    t.after(() => files.close());
    await new Promise((settle) => files.once('listening', settle));
    const { port } = /** @type {import('node:net').AddressInfo} */ (files.address());
    const body = bodyAbout(messagePartOf(partOf('gemma3', 'sq')));
    for (const [name, status] of /** @type {[string, number][]} */ ([
      ['mmproj', 200],
      ['model', 503],
    ])) {
      const server = await startWasmtime('p3', {
        model,
        args: envOf({
          ...{
            WICK_MMPROJ_URL: `http://127.0.0.1:${port}/${name}.gguf`,
            WICK_CHAT_TEMPLATE: texts,
          },
        }),
      });
      t.after(() => server.close());
      const answer = await asked(server.origin, body);
      assert.equal(answer.status, status, JSON.stringify(answer.body));
      if (status === 503) assert.match(answer.body.error.message, /^The mmproj file could not be/);
    }
  });
});
