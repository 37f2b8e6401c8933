// eager: an engine that generates while its weights are still arriving returns the same text and bit-identical logprobs,
// and reports a failed download.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { StreamSource } from '../../js/bytes/model_sources.js';
import { loadModel } from '../../js/worker/load_model.js';
import { createEngine, hasCode, modelPath, openEngine } from '../support/package.mjs';

const model = readFileSync(modelPath);
const PIECE_BYTES = 65_536;
const prompt = 'Once upon a time there was a small lamp that did not want to go out.';

/**
 * Starts a server that sends the model in pieces, each when the test requests it, then ends or drops the connection.
 * @param {import('node:test').TestContext} t
 */
async function serveByPieces(t) {
  /** @type {import('node:http').ServerResponse | undefined} */
  let response;
  let sent = 0;
  const server = createServer((_, opened) => {
    response = opened;
    opened.writeHead(200, { 'Content-Length': model.byteLength });
    opened.flushHeaders();
  });
  await new Promise((settle) => server.listen(0, '127.0.0.1', () => settle(undefined)));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}/model.gguf`,
    /** @param {number} bytes */
    async send(bytes) {
      while (!response) await new Promise((settle) => setTimeout(settle, 5));
      const piece = model.subarray(sent, sent + bytes);
      sent += piece.byteLength;
      await new Promise((settle) => response?.write(piece, () => settle(undefined)));
    },
    isSent: () => sent >= model.byteLength,
    cut: () => response?.destroy(),
  };
}

/**
 * @param {import('../../js/index.js').Engine} engine
 * @param {(progress: {done: number, total: number}) => void} [onPrefill]
 */
function speak(engine, onPrefill) {
  /** @type {number[]} */
  const logprobs = [];
  const generation = engine.generate(prompt, {
    temperature: 0,
    maxTokens: 24,
    ignoreEnd: true,
    logprobs: 3,
    ...(onPrefill && { onPrefill }),
    onToken: ({ top }) => logprobs.push(...top.map(({ logprob }) => logprob)),
  });
  return generation.text().then((text) => ({ text, logprobs }));
}

test('a generation that starts during the download gives the same text as one after it', async (t) => {
  const wanted = await speak(await openEngine(t));
  for (const threads of [1, 2]) {
    const server = await serveByPieces(t);
    const opening = openEngine(t, { url: server.url, eager: true, threads });
    await server.send(model.byteLength / 2);
    const engine = await opening; // half of the model has not arrived yet
    assert.equal((await engine.info()).fingerprint, null);
    const found = speak(engine);
    while (!server.isSent()) await server.send(PIECE_BYTES);
    assert.deepEqual(await found, wanted);
    assert.match((await engine.info()).fingerprint ?? '', /^[0-9a-f]+$/);
  }
});

test('messages and steps run between bytes that arrive without a pause', async () => {
  const source = new StreamSource(
    (async function* ready() {
      for (let i = 0; i < 4; i++) yield new Uint8Array(1);
    })(),
  );
  let fed = 0;
  /** @type {number[]} */
  const fedAfterTurns = [];
  const native = /** @type {any} */ ({
    nextRange: () => ({ file: 0, offset: fed, length: 4 - fed }),
    feed: () => void fed++,
  });
  const onBytes = () =>
    new Promise((settle) =>
      setTimeout(() => {
        fedAfterTurns.push(fed);
        settle(undefined);
      }),
    );
  await loadModel(native, source, { onBytes });
  assert.deepEqual(fedAfterTurns, [1, 2, 3, 4]);
});

test('without eager, no call is answered before the model is loaded', async (t) => {
  const server = await serveByPieces(t);
  let isOpen = false;
  const opening = openEngine(t, { url: server.url });
  opening.then(() => {
    isOpen = true;
  });
  await server.send(model.byteLength - 1);
  await new Promise((settle) => setTimeout(settle, 100));
  assert.equal(isOpen, false);
  await server.send(1);
  await opening;
});

test('the tokenizer and the template are available from the beginning', async (t) => {
  const server = await serveByPieces(t);
  const opening = openEngine(t, { url: server.url, eager: true });
  await server.send(model.byteLength / 2);
  const engine = await opening;
  assert.ok((await engine.tokenize('a lamp')).length > 0);
  assert.match(await engine.applyTemplate([{ role: 'user', content: 'Hi' }]), /Hi/);
});

test('a failed download rejects waiting calls and all later ones', async (t) => {
  const server = await serveByPieces(t);
  const opening = openEngine(t, { url: server.url, eager: true, retries: 0 });
  await server.send(model.byteLength / 2);
  const engine = await opening;
  const waiting = speak(engine);
  const failed = assert.rejects(waiting, hasCode('NETWORK'));
  server.cut();
  await failed;
  await assert.rejects(engine.info(), hasCode('NETWORK'));
  await engine.close();
});

test('an engine can be closed while its model is still arriving', async (t) => {
  const server = await serveByPieces(t);
  const opening = createEngine({ url: server.url, eager: true, threads: 1 });
  await server.send(model.byteLength / 2);
  const engine = await opening;
  const waiting = assert.rejects(speak(engine), hasCode('CLOSED'));
  await engine.close();
  await waiting;
});
