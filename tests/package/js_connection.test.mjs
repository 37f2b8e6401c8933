// The connection to the engine's worker, with a worker that the test controls: bytes that only the page can read, workers
// that exit, messages that arrive late.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, test } from 'node:test';
import { EngineConnection, HELPERS_MS } from '../../js/connection/engine_connection.js';
import { pretend } from '../support/pretend.mjs';

/** A worker whose messages are sent by the test. */
class PretendedWorker extends EventEmitter {
  /** @type {any[]} */
  posted = [];
  /** @type {string[]} */
  did = [];

  /** @param {any} message */
  postMessage(message) {
    this.posted.push(message);
  }

  terminate() {
    this.did.push('terminate');
  }

  ref() {
    this.did.push('ref');
  }

  unref() {
    this.did.push('unref');
  }

  /** @param {any} message */
  say(message) {
    this.emit('message', message);
  }

  /** @param {string} type @returns {any[]} */
  got(type) {
    return this.posted.filter((message) => message.type === type);
  }
}

/** A web worker, whose listeners receive events. */
class PretendedWebWorker extends PretendedWorker {
  /** @param {string} name @param {(event: any) => void} listener */
  addEventListener(name, listener) {
    this.on(name, (data) => listener({ data, preventDefault() {}, ...data }));
  }
}

/** @param {{source?: any, isWeb?: boolean, threads?: number}} [options] */
function connect({ source, isWeb = true, threads = 1 } = {}) {
  /** @type {any[]} */
  const workers = [];
  /** @type {any[]} */
  const ends = [];
  const connection = new EngineConnection(
    () => {},
    (error) => ends.push(error),
  );
  connection.startWorker(() => {
    workers.push(isWeb ? new PretendedWebWorker() : new PretendedWorker());
    return workers.at(-1);
  });
  const message = {
    type: 'init',
    module: undefined,
    config: { threads },
    source: { kind: 'page' },
  };
  const ready = connection.init(/** @type {any} */ (message), source);
  return { connection, worker: workers[0], workers, ends, ready };
}

const turn = () => new Promise((settle) => setTimeout(settle, 1));
/** Settles when the helpers of an engine that is ready have started. */
const helped = () => new Promise((settle) => setTimeout(settle, HELPERS_MS + 10));

/** Returns a source that records its requests. */
function notingSource() {
  /** @type {any[]} */
  const notes = [];
  const source = {
    canSeek: true,
    open: async (/** @type {number} */ file, /** @type {number} */ offset) => {
      notes.push(['open', file, offset]);
      let left = 2;
      return {
        ...{ position: offset, size: 100 + file },
        read: async () => (left-- > 0 ? Buffer.from([file, offset, left]) : null),
        cancel: () => notes.push(['cancel', file]),
      };
    },
    close: () => notes.push(['close']),
  };
  return { source, notes };
}

test('helpers end when a page is closed, but not if it enters the back/forward cache', async (t) => {
  /** @type {Map<string, Set<(event: any) => void>>} */
  const listeners = new Map();
  const of = (/** @type {string} */ name) => listeners.get(name) ?? new Set();
  pretend(t, {
    addEventListener: (/** @type {string} */ name, /** @type {(event: any) => void} */ listener) =>
      listeners.set(name, of(name).add(listener)),
    removeEventListener: (
      /** @type {string} */ name,
      /** @type {(event: any) => void} */ listener,
    ) => of(name).delete(listener),
  });
  const leave = (/** @type {boolean} */ persisted) => {
    for (const listener of of('pagehide')) listener({ persisted });
  };
  for (const [threads, closes] of [
    [3, 1],
    [1, 0],
  ]) {
    const { connection, worker, workers, ready } = connect({ threads });
    worker.say({ type: 'ready', info: {} });
    await ready;
    await helped();
    assert.equal(workers.length, threads);
    leave(true);
    assert.deepEqual(worker.got('close'), []);
    leave(false);
    assert.equal(worker.got('close').length, closes);
    const closed = connection.close();
    worker.say({ type: 'closed' });
    await closed;
    assert.equal(of('pagehide').size, 0);
    for (const port of worker.got('init')[0].helpers) port.close();
  }
});

test('messages nested too deeply for a worker’s small stack are rejected', async () => {
  const { connection, worker, ready } = connect();
  worker.say({ type: 'ready', info: {} });
  await ready;
  const nested = (/** @type {number} */ levels) => {
    /** @type {unknown} */
    let value = 1;
    for (let i = 0; i < levels; i++) value = i % 2 ? { value } : [value];
    return value;
  };
  const words = /nested deeper than 200 levels/;
  await assert.rejects(connection.call('tokenize', [nested(250)]), { code: 'ARG', message: words });
  const late = connection.call('tokenize', [nested(190)]);
  assert.equal(worker.got('call').length, 1);
  await Promise.all([connection.close(), assert.rejects(late, { code: 'CLOSED' })]);
});

describe('bytes that only the page can read', () => {
  /** @param {any} worker @param {number} id @param {string} method @param {number[]} args */
  const ask = async (worker, id, method, ...args) => {
    worker.say({ type: 'ask', id, method, args });
    await turn();
    return worker.posted.at(-1);
  };

  test('streams of several files are read from their offsets and cancelled', async () => {
    const { source, notes } = notingSource();
    const { worker, connection, ready } = connect({ source });
    const first = await ask(worker, 7, 'open', 2, 30);
    const stream = { id: 1, position: 30, size: 102, canSeek: true };
    assert.deepEqual(first, { type: 'answer', id: 7, value: stream });
    const second = await ask(worker, 8, 'open', 1, 40);
    assert.deepEqual(second.value, { id: 2, position: 40, size: 101, canSeek: true });
    assert.deepEqual((await ask(worker, 9, 'read', 1)).value, Uint8Array.of(2, 30, 1));
    assert.deepEqual((await ask(worker, 10, 'read', 2)).value, Uint8Array.of(1, 40, 1));
    assert.deepEqual((await ask(worker, 11, 'read', 1)).value, Uint8Array.of(2, 30, 0));
    assert.equal((await ask(worker, 12, 'read', 1)).value, null);
    assert.deepEqual(await ask(worker, 13, 'cancel', 2), {
      type: 'answer',
      id: 13,
      value: undefined,
    });
    assert.equal((await ask(worker, 14, 'read', 2)).value, null);
    const opened = ['open', 2, 30];
    assert.deepEqual(notes, [opened, ['open', 1, 40], ['cancel', 1]]);
    await Promise.all([connection.close(), assert.rejects(ready, { code: 'CLOSED' })]);
    assert.deepEqual(notes.at(-1), ['close']);
  });

  test('messages are copied: the caller’s buffer is not detached', async () => {
    const bytes = Uint8Array.of(1, 2, 3);
    const open = async () => ({ position: 0, read: async () => bytes, cancel() {} });
    const { worker, connection, ready } = connect({ source: { open } });
    await ask(worker, 1, 'open', 0, 0);
    const { value } = await ask(worker, 2, 'read', 1);
    assert.deepEqual(value, bytes);
    assert.notEqual(value.buffer, bytes.buffer);
    await Promise.all([connection.close(), assert.rejects(ready)]);
  });

  test('a failure is reported to the worker', async () => {
    const open = async () => {
      throw new TypeError('no bytes');
    };
    const { worker, connection, ready } = connect({ source: { open } });
    const { type, id, error } = await ask(worker, 3, 'open', 0, 0);
    assert.deepEqual([type, id], ['answer-error', 3]);
    assert.match(error.message, /no bytes/);
    await Promise.all([connection.close(), assert.rejects(ready)]);
  });

  test('a response after the end is not sent', async () => {
    /** @type {(value: any) => void} */
    let settle = () => {};
    const open = () => new Promise((done) => (settle = done));
    const { worker, connection, ready } = connect({ source: { open } });
    worker.say({ type: 'ask', id: 1, method: 'open', args: [0, 0] });
    await Promise.all([connection.close(), assert.rejects(ready)]);
    settle({ position: 0 });
    await turn();
    assert.deepEqual(worker.got('answer'), []);
    assert.deepEqual(worker.got('answer-error'), []);
  });
});

describe('the end of a worker', () => {
  for (const isWeb of [true, false]) {
    const host = isWeb ? 'web' : 'Node';

    test(`a message that cannot be received ends the engine: ${host}`, async () => {
      const { worker, ready, ends, connection } = connect({ isWeb });
      worker.emit('messageerror', isWeb ? {} : new Error('not received'));
      await assert.rejects(ready, { code: 'WORKER_CRASHED', message: /could not be deserialized/ });
      assert.equal(ends.length, 1);
      assert.ok(connection.isEnded);
      assert.ok(worker.did.includes('terminate'));
      assert.throws(() => connection.check(), { code: 'WORKER_CRASHED' });
    });

    test(`an error of the worker ends pending calls: ${host}`, async () => {
      const { worker, ready, connection } = connect({ isWeb });
      worker.say({ type: 'ready', info: { a: 1 } });
      assert.deepEqual(await ready, { a: 1 });
      const call = connection.call('info', []);
      worker.emit('error', isWeb ? { message: 'broken' } : new Error('broken'));
      await assert.rejects(call, { code: 'WORKER_CRASHED', message: /broken/ });
      await assert.rejects(connection.call('info', []), { code: 'WORKER_CRASHED' });
    });
  }

  test('a Node worker that exits on its own fails the engine; a terminated one does not', async () => {
    const { worker, ready } = connect({ isWeb: false });
    worker.emit('exit', 3);
    await assert.rejects(ready, { message: /ended with code 3/ });
    const other = connect({ isWeb: false });
    other.worker.say({ type: 'ready', info: {} });
    await other.ready;
    await other.connection.close();
    other.worker.emit('exit', 1);
    assert.deepEqual(
      other.ends.map(({ code }) => code),
      ['CLOSED'],
    );
  });

  test('a crash that the worker reports ends the engine', async () => {
    const { worker, ready } = connect();
    worker.say({ type: 'crashed', message: 'unreachable' });
    await assert.rejects(ready, { code: 'WORKER_CRASHED', message: /unreachable/ });
  });

  test('loading errors are reported before and after the engine is ready', async () => {
    const error = { name: 'WickError', code: 'TRUNCATED', message: 'too short' };
    const { worker, ready, connection } = connect();
    worker.say({ type: 'failed', error });
    await assert.rejects(ready, { code: 'TRUNCATED' });
    assert.ok(!connection.isEnded);
    const eager = connect();
    eager.worker.say({ type: 'ready', info: {} });
    await eager.ready;
    eager.worker.say({ type: 'failed', error });
    assert.throws(() => eager.connection.check(), { code: 'TRUNCATED' });
  });
});

describe('helpers', () => {
  test('helpers start when the engine is ready, get a port each and do not keep the process alive', async () => {
    const { worker, workers, ready, connection } = connect({ threads: 3, isWeb: false });
    assert.equal(workers.length, 1);
    const [{ helpers }] = worker.got('init');
    assert.equal(helpers.length, 2);
    worker.say({ type: 'ready', info: {} });
    await ready;
    await turn();
    assert.equal(workers.length, 1, 'the first answer comes first');
    await helped();
    assert.equal(workers.length, 3);
    const messages = workers.slice(1).map(({ posted }) => posted[0]);
    assert.deepEqual(
      messages.map(({ type, index }) => [type, index]),
      [
        ['helper', 0],
        ['helper', 1],
      ],
    );
    assert.ok(messages.every(({ port }) => port instanceof MessagePort));
    assert.deepEqual(
      workers.slice(1).map(({ did }) => did),
      [['unref'], ['unref']],
    );
    const closed = connection.close();
    await turn();
    assert.equal(worker.got('close').length, 1);
    assert.ok(
      workers.every(({ did }) => !did.includes('terminate')),
      'the worker is initialized first',
    );
    worker.say({ type: 'closed' });
    await closed;
    assert.ok(workers.every(({ did }) => did.includes('terminate')));
    for (const port of [...messages.map((message) => message.port), ...helpers]) port.close();
  });
});

describe('calls and requests', () => {
  test('a response settles only its own call; the process stays alive while calls are pending', async () => {
    const { worker, ready, connection } = connect({ isWeb: false });
    worker.say({ type: 'ready', info: {} });
    await ready;
    assert.deepEqual(
      worker.did.splice(0),
      ['unref'],
      'an idle engine does not keep the process alive',
    );
    const [a, b] = [connection.call('info', [1]), connection.call('stats', [2])];
    const [{ id: first, args }, { id: second }] = worker.got('call');
    assert.deepEqual(args, [1]);
    assert.deepEqual(worker.did, ['ref', 'ref']);
    worker.say({ type: 'result', id: second, value: 'b' });
    assert.equal(await b, 'b');
    assert.deepEqual(worker.did, ['ref', 'ref'], 'a call is pending');
    const error = { name: 'WickError', code: 'ARG', message: 'no' };
    worker.say({ type: 'error', id: first, error });
    await assert.rejects(a, { code: 'ARG' });
    assert.equal(worker.did.at(2), 'unref');
    worker.say({ type: 'result', id: first, value: 'late' });
    await connection.close();
  });

  test('a call that is aborted is cancelled once', async () => {
    const { worker, ready, connection } = connect();
    worker.say({ type: 'ready', info: {} });
    await ready;
    const leaves = new AbortController();
    const calls = [1, 2].map(() => connection.call('embed', [{}], leaves.signal));
    const [{ id: first }, { id: second }] = worker.got('call');
    worker.say({ type: 'result', id: first, value: [] });
    leaves.abort();
    await calls[0];
    await assert.rejects(calls[1], { name: 'AbortError' });
    assert.deepEqual(worker.got('cancel'), [{ type: 'cancel', id: second }]);
    worker.say({ type: 'result', id: second, value: 'late' });
    await connection.close();
  });

  test('outputs reach their own completion; a cancelled one receives nothing', async () => {
    const { worker, ready, connection } = connect();
    worker.say({ type: 'ready', info: {} });
    await ready;
    /** @type {any[]} */
    const heard = [];
    const waiters = [0, 1].map((i) => ({
      onOutput: (/** @type {any} */ output) => void heard.push([i, output.texts[0]]),
      fail: () => assert.fail(),
    }));
    const [one, two] = connection.generate(/** @type {any} */ ({ input: {} }), waiters);
    const [{ id, completions }] = worker.got('generate');
    assert.equal(completions, 2);
    const say = (/** @type {number} */ at, /** @type {string} */ text) =>
      worker.say({ type: 'step', outputs: [{ id: id + at, texts: [text] }] });
    say(1, 'b');
    say(0, 'a');
    one.acknowledge(3);
    one.cancel();
    one.cancel();
    one.acknowledge(4);
    say(0, 'late');
    say(1, 'c');
    two.forget();
    two.cancel();
    assert.deepEqual(heard, [
      [1, 'b'],
      [0, 'a'],
      [1, 'c'],
    ]);
    assert.deepEqual(worker.got('ack'), [{ type: 'ack', id, count: 3 }]);
    assert.deepEqual(worker.got('cancel'), [{ type: 'cancel', id }]);
    await connection.close();
    const late = () => connection.generate(/** @type {any} */ ({ input: {} }), waiters);
    assert.throws(late, { code: 'CLOSED' });
  });
});
