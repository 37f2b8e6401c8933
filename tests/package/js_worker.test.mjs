// The engine's worker, run in this thread: the messages it posts, and the order of its waiting requests.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { PASSES_WAITED_MAX } from '../../js/base/option_table.js';
import { configOf } from '../../js/page/engine_options.js';
import { settingsOf } from '../../js/page/request_options.js';
import { NativeEngine } from '../../js/wasm/native_engine.js';
import { EngineWorker } from '../../js/worker/engine_worker.js';
import { precedes, WaitingRequests } from '../../js/worker/waiting_requests.js';
import { claimModel } from '../support/claimed_model.mjs';
import { dist, modelPath, sleep, temporaryFolder, waitUntil } from '../support/package.mjs';

const wasm = readFileSync(join(dist, 'wasm/wick-simd128-single.wasm'));
const extras = readFileSync(join(dist, 'wasm/wick-simd128-single-extras.wasm'));

/** @param {{isEager?: boolean, sent?: Int32Array, file?: string, wide?: string}} [options] */
function startWorker({ isEager = false, sent, file = modelPath, wide } = {}) {
  /** @type {any[]} */
  const posted = [];
  const worker = new EngineWorker((message) => void posted.push(message), assert.fail);
  const module = new WebAssembly.Module(wasm);
  const config = configOf({ file }, 1);
  const source = /** @type {any} */ ({ kind: 'path', paths: [file] });
  const rest = { helpers: [], draft: undefined, chatTemplate: undefined, isEager, sent, wide };
  const parts = { module, extras: new WebAssembly.Module(extras) };
  worker.receive({ type: 'init', ...parts, config, source, ...rest });
  const of = (/** @type {string} */ type) => posted.filter((message) => message.type === type);
  const outputs = () => of('step').flatMap((message) => message.outputs);
  const ask = (/** @type {number} */ id, /** @type {object} */ options) =>
    worker.receive({
      ...{ type: 'generate', id, completions: 1, input: { prompt: 'Once upon a time' } },
      ...{ settings: settingsOf({ temperature: 0, ...options }), wantsTokens: false },
    });
  return { worker, posted, of, outputs, ask };
}

describe('messages from the worker', () => {
  for (const isEager of [false, true]) {
    test(`it is ready once, ${isEager ? 'before' : 'when'} the weights have arrived`, async () => {
      const { worker, of, posted } = startWorker({ isEager });
      await waitUntil(() => of('ready').length > 0, 'readiness');
      assert.equal(of('ready')[0].info.architecture, 'llama');
      await waitUntil(() => of('progress').at(-1)?.progress.phase === 'ready', 'all bytes');
      assert.equal(of('ready').length, 1);
      const whole = posted.findIndex((message) => message.progress?.phase === 'ready');
      assert.equal(posted.indexOf(of('ready')[0]) < whole, isEager);
      assert.deepEqual(of('failed'), []);
      worker.receive({ type: 'close' });
      await waitUntil(() => posted.at(-1)?.type === 'closed', 'the end');
    });
  }

  for (const mail of ['without shared memory', 'with mail', 'without mail']) {
    test(`outputs are never empty, and messages are received between steps (${mail})`, async () => {
      const sent = mail.startsWith('without s') ? undefined : new Int32Array(1);
      const started = startWorker({ sent });
      const { worker, of, outputs, ask } = started;
      if (mail === 'without mail' && sent) sent[0] = 3; // init and the two requests below
      await waitUntil(() => of('ready').length === 1, 'readiness');
      ask(1, { maxTokens: 200, ignoreEnd: true });
      ask(2, { maxTokens: 4, ignoreEnd: true });
      await waitUntil(
        () => outputs().some(({ id, done }) => id === 2 && done),
        'the short request',
      );
      worker.receive({ type: 'cancel', id: 1 });
      await waitUntil(
        () => outputs().some(({ id, done }) => id === 1 && done),
        'the other request',
      );
      for (const { outputs: each } of of('step')) {
        assert.ok(each.length > 0);
        const ids = each.map((/** @type {{id: number}} */ { id }) => id);
        assert.equal(new Set(ids).size, ids.length, 'at most one output per request');
      }
      const [short, long] = [2, 1].map((id) => outputs().find((one) => one.id === id && one.done));
      assert.equal(short.done.finish, 'length');
      assert.equal(short.done.completionTokens, 4);
      assert.equal(long.done.finish, 'abort');
      worker.receive({ type: 'close' });
    });
  }
});

test('an engine that is closed while it fetches the 64-bit module ends only once', async (t) => {
  /** @type {import('node:http').ServerResponse | undefined} */
  let asked;
  const server = createServer((_, response) => {
    asked = response;
  });
  t.after(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const destroy = t.mock.method(NativeEngine.prototype, 'destroy');
  const compile = t.mock.method(WebAssembly, 'compileStreaming');
  const file = join(temporaryFolder(), 'claimed.gguf');
  const { bytes, weightsBytes } = claimModel({ layers: 50 });
  writeFileSync(file, bytes);
  truncateSync(file, bytes.length + weightsBytes); // a hole
  const { worker, posted } = startWorker({ file, wide: `http://127.0.0.1:${port}/` });
  await waitUntil(() => asked !== undefined, 'the request for the module');
  worker.receive({ type: 'close' });
  await waitUntil(() => posted.at(-1)?.type === 'closed', 'the end');
  asked?.setHeader('Content-Type', 'application/wasm').end(wasm);
  await waitUntil(() => compile.mock.callCount() === 1, 'the module to be compiled');
  await compile.mock.calls[0].result;
  await sleep(1);
  assert.deepEqual(
    posted.map(({ type }) => type).filter((type) => type !== 'progress'),
    ['closed'],
  );
  assert.equal(destroy.mock.callCount(), 1);
});

describe('the order of waiting requests', () => {
  const MAX = PASSES_WAITED_MAX;
  const place = (/** @type {number} */ n) => ({
    priority: (n % 3) - 1,
    arrival: n,
    passesBefore: Math.floor(n / 4) * (MAX / 2 - 1),
  });
  const places = Array.from({ length: 24 }, (_, n) => place(n));
  /** Returns a sort key for the order documented in the scheduler. @param {ReturnType<typeof place>} one @param {number} passes */
  const keyOf = (one, passes) =>
    passes - one.passesBefore >= MAX ? [0, 0, one.arrival] : [1, -one.priority, one.arrival];
  /** @param {number[]} a @param {number[]} b */
  const isLess = (a, b) => {
    const at = a.findIndex((value, i) => value !== b[i]);
    return at >= 0 && a[at] < b[at];
  };

  test('requests are sorted by long waits, then priority, then arrival', () => {
    for (let passes = 0; passes < 8 * MAX; passes += MAX / 2 - 1) {
      for (const shift of [-1, 0, 1, 2]) {
        for (const a of places) {
          for (const b of places) {
            const now = passes + shift;
            assert.equal(precedes(a, b, now), isLess(keyOf(a, now), keyOf(b, now)));
          }
        }
      }
    }
  });

  test('the first request is correct after any additions and removals', () => {
    /** @type {WaitingRequests<any>} */
    const waiting = new WaitingRequests();
    /** @type {any[][]} */
    const plain = [];
    let state = 1;
    const draw = (/** @type {number} */ n) => {
      state = (state * 48271) % 0x7fffffff;
      return state % n;
    };
    for (let i = 0; i < 2000; i++) {
      const what = draw(3);
      const passes = i;
      if (what === 0 || plain.length === 0) {
        const [priority, count] = [draw(5) - 2, 1 + draw(3)];
        const entries = Array.from({ length: count }, (_, k) => ({
          ...{ id: 10 * i + k, arrival: i, passesBefore: passes, priority },
        }));
        waiting.add(entries);
        plain.push(entries);
      } else if (what === 1) {
        const first = waiting.first(passes);
        const sorted = plain.toSorted((a, b) =>
          isLess(keyOf(a[0], passes), keyOf(b[0], passes)) ? -1 : 1,
        );
        assert.equal(first, sorted[0]);
        waiting.take(/** @type {any[]} */ (first));
        plain.splice(plain.indexOf(sorted[0]), 1);
      } else {
        const entries = plain[draw(plain.length)];
        waiting.take(entries);
        if (draw(2) === 0) waiting.add(entries);
        else plain.splice(plain.indexOf(entries), 1);
      }
      assert.equal(waiting.count, plain.flat().length);
    }
    assert.equal(new WaitingRequests().first(0), undefined);
  });
});
