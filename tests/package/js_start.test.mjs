// Starting and terminating the engine's workers, with fake hosts: same-origin and cross-origin pages, pages with a content
// security policy, Node. Also tests the connection before, between and after its messages.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, test } from 'node:test';
import { EngineConnection, HELPERS_MS } from '../../js/connection/engine_connection.js';
import { countPosts, SpareThread, startThread } from '../../js/connection/start_worker.js';
import { logListeners, pretend } from '../support/pretend.mjs';

const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);
const turn = () => new Promise((settle) => setImmediate(settle));
const later = () => new Promise((settle) => setTimeout(settle, 2));
/** Settles when the helpers of an engine that is ready have started. */
const helped = () => new Promise((settle) => setTimeout(settle, HELPERS_MS + 10));
const ownWorker = new URL('../../js/connection/worker.js', import.meta.url).href;

/** A web worker. */
class PageWorker extends EventTarget {
  /** @type {PageWorker[]} */
  static made = [];
  /** @type {unknown} thrown by the next constructor */
  static refusal;
  /** @type {any[]} */
  posted = [];
  isEnded = false;

  /** @param {string | URL} url @param {any} options */
  constructor(url, options) {
    super();
    if (PageWorker.refusal) throw PageWorker.refusal;
    this.url = String(url);
    this.options = options;
    PageWorker.made.push(this);
  }

  /** @param {any[]} message */
  postMessage(...message) {
    this.posted.push(message);
  }

  terminate() {
    this.isEnded = true;
  }

  /** @param {string} type @param {any} fields */
  emit(type, fields) {
    const event = Object.assign(new Event(type, { cancelable: true }), fields);
    this.dispatchEvent(event);
    return event;
  }
}

/** @param {import('node:test').TestContext} t @param {string} [href] */
function inPage(t, href = 'http://page.example/a/') {
  PageWorker.made = [];
  PageWorker.refusal = undefined;
  const document = new EventTarget();
  let listening = 0;
  for (const [name, step] of /** @type {[string, number][]} */ ([
    ['addEventListener', 1],
    ['removeEventListener', -1],
  ])) {
    const plain = any(document)[name].bind(document);
    any(document)[name] = (/** @type {any[]} */ ...args) => {
      listening += step;
      plain(...args);
    };
  }
  const location = { href, origin: new URL(href).origin };
  pretend(t, { Worker: PageWorker, location, document });
  return { document, listening: () => listening };
}

/** @param {any} option */
function start(option) {
  /** @type {any[]} */
  const log = [];
  const thread = startThread(
    option,
    (message) => log.push(['message', message]),
    (reason, cause) => log.push(cause === undefined ? ['end', reason] : ['end', reason, cause]),
  );
  return { thread, log };
}

describe('in a page', () => {
  const module = { type: 'module' };

  test('the worker can be the package’s file, a same-origin file, a Worker, or a function that starts one', (t) => {
    inPage(t);
    for (const [option, url] of [
      [undefined, ownWorker],
      ['w.js', 'http://page.example/a/w.js'],
      [new URL('http://page.example/x.js'), 'http://page.example/x.js'],
      [() => 'y.js', 'http://page.example/a/y.js'],
      [() => undefined, ownWorker],
    ]) {
      start(option);
      const made = any(PageWorker.made.pop());
      assert.deepEqual([made.url, made.options], [url, module]);
    }
    const own = new PageWorker('own', {});
    for (const option of [own, () => own]) {
      start(option).thread.post('a');
      assert.deepEqual(own.posted.pop(), ['a', []]);
    }
    assert.equal(PageWorker.made.length, 1);
    const message = 'worker must be a URL, not http://';
    assert.throws(() => start('http://'), { code: 'ARG', message });
  });

  test('a cross-origin file is imported by a same-origin module, whose URL is revoked', async (t) => {
    inPage(t);
    /** @type {Blob[]} */
    const blobs = [];
    const revoked = t.mock.method(URL, 'revokeObjectURL', () => {});
    t.mock.method(URL, 'createObjectURL', (/** @type {Blob} */ blob) => {
      blobs.push(blob);
      return `blob:${blobs.length}`;
    });
    const { log } = start('https://cdn.example/"w.js');
    const [worker] = PageWorker.made;
    assert.deepEqual([worker.url, worker.options], ['blob:1', module]);
    assert.equal(await blobs[0].text(), 'import "https://cdn.example/%22w.js";');
    assert.equal(blobs[0].type, 'text/javascript');
    worker.emit('message', { data: 1 });
    worker.emit('message', { data: 2 });
    assert.deepEqual(
      revoked.mock.calls.map((call) => call.arguments),
      [['blob:1']],
    );
    worker.emit('error', { message: '' });
    await later();
    const lost =
      'its file could not be loaded, or worker-src of the Content Security Policy does not allow https://cdn.example';
    assert.deepEqual(log, [
      ['message', 1],
      ['message', 2],
      ['end', lost],
    ]);
    PageWorker.refusal = new Error('worker-src');
    assert.throws(() => start('https://cdn.example/w.js'), {
      code: 'CSP',
      message: /must allow blob: and https:\/\/cdn\.example$/,
    });
  });

  test('messages and errors are passed on', async (t) => {
    inPage(t);
    const { thread, log } = start(undefined);
    const [worker] = PageWorker.made;
    const { port1, port2 } = new MessageChannel();
    thread.post('a');
    thread.post('b', [port1]);
    assert.deepEqual(worker.posted, [
      ['a', []],
      ['b', [port1]],
    ]);
    port1.close();
    port2.close();
    thread.keepAlive(true);
    const error = new Error('x');
    const event = worker.emit('error', { message: 'broke', error });
    assert.equal(event.defaultPrevented, true);
    worker.emit('error', { message: 'again', error: null });
    worker.emit('messageerror', {});
    worker.emit('error', { message: '' });
    await later();
    assert.deepEqual(log, [
      ['end', 'broke', error],
      ['end', 'again'],
      ['end', 'it sent a message that could not be deserialized'],
      ['end', 'its file could not be loaded'],
    ]);
    assert.equal(worker.isEnded, false);
    await thread.terminate();
    assert.equal(worker.isEnded, true);
  });

  test('a spare worker is taken once, or dropped; failures are kept until then', async (t) => {
    inPage(t);
    /** @type {any[]} */
    const log = [];
    const spare = new SpareThread(undefined);
    const [worker] = PageWorker.made;
    worker.emit('message', { data: 'early' });
    worker.emit('error', { message: 'broke', error: null });
    const thread = spare.take(
      (message) => log.push(message),
      (...ended) => log.push(ended),
    );
    assert.deepEqual(log, []);
    await turn();
    assert.deepEqual(log, [['broke', undefined]]);
    worker.emit('message', { data: 'late' });
    worker.emit('error', { message: 'again', error: null });
    assert.deepEqual(log.slice(1), ['late', ['again', undefined]]);
    assert.equal(spare.take(assert.fail, assert.fail), undefined);
    spare.drop();
    assert.equal(worker.isEnded, false);
    await thread?.terminate();
    assert.equal(worker.isEnded, true);
    const unused = new SpareThread(undefined);
    unused.drop();
    assert.equal(PageWorker.made[1].isEnded, true);
    assert.equal(unused.take(assert.fail, assert.fail), undefined);
    await later(); // the policy's listeners are removed
  });

  const page = "The page's Content Security Policy";
  const refused = `${page} blocks the engine's worker: its worker-src directive must allow 'self'`;
  const trusted =
    `${page} has require-trusted-types-for 'script', which rejects a string as a worker URL. Pass ` +
    'worker: () => new Worker(policy.createScriptURL(url)) to createEngine, with a policy that ' +
    'the trusted-types directive allows';

  test('a policy that blocks the worker immediately', (t) => {
    const { listening } = inPage(t);
    for (const [words, message] of [
      ["Refused by 'Worker-Src'", refused],
      ['violates the Content Security Policy', refused],
      ['This document requires TrustedScriptURL', trusted],
    ]) {
      for (const option of [undefined, 'w.js']) {
        PageWorker.refusal = new TypeError(words);
        assert.throws(
          () => start(option),
          (error) => {
            const { code, message: said, cause } = any(error);
            assert.deepEqual([code, said, cause], ['CSP', message, PageWorker.refusal]);
            return true;
          },
        );
        assert.equal(listening(), 0);
      }
    }
    PageWorker.refusal = new Error('odd');
    assert.throws(() => start(undefined), { message: 'odd' });
    assert.equal(listening(), 0);
  });

  test('a policy may report a violation later; the listener is removed when the worker answers or fails', async (t) => {
    const { document, listening } = inPage(t);
    const violated = (/** @type {string} */ effectiveDirective) =>
      document.dispatchEvent(
        Object.assign(new Event('securitypolicyviolation'), { effectiveDirective }),
      );
    const { log } = start(undefined);
    assert.equal(listening(), 1);
    PageWorker.made[0].emit('error', { message: '' });
    violated('img-src');
    violated('worker-src');
    violated('require-trusted-types-for');
    await later();
    assert.equal(listening(), 0);
    assert.equal(log.length, 1);
    assert.equal(log[0][1], 'its file could not be loaded');
    assert.deepEqual([log[0][2].code, log[0][2].message], ['CSP', refused]);
    start(undefined);
    assert.equal(listening(), 1);
    PageWorker.made[1].emit('message', { data: 1 });
    assert.equal(listening(), 0);
  });
});

describe('in Node', () => {
  /** A node:worker_threads worker. */
  class NodeWorker extends EventEmitter {
    /** @type {NodeWorker[]} */
    static made = [];
    /** @type {any[]} */
    did = [];

    /** @param {any} file @param {any} options */
    constructor(file, options) {
      super();
      this.file = file;
      this.options = options;
      NodeWorker.made.push(this);
    }

    /** @param {any[]} message */
    postMessage(...message) {
      this.did.push(message);
    }

    ref() {
      this.did.push('ref');
    }

    unref() {
      this.did.push('unref');
    }

    async terminate() {
      this.emit('exit', 1);
      this.did.push('ended');
    }
  }

  /** @param {import('node:test').TestContext} t @param {any} [threads] */
  function withThreads(t, threads = { Worker: NodeWorker }) {
    const { getBuiltinModule } = any(process);
    t.mock.method(any(process), 'getBuiltinModule', (/** @type {string} */ name) =>
      name === 'node:worker_threads' ? threads : getBuiltinModule.call(process, name),
    );
  }

  test('the package’s file runs as a script with separate streams; a custom file runs without process flags', (t) => {
    withThreads(t);
    start(undefined);
    const { file, options } = any(NodeWorker.made.pop());
    assert.match(file, /runInThisContext\(fs\.readFileSync\(file, 'utf8'\), file\)/);
    assert.deepEqual(options, {
      ...{ eval: true, execArgv: [], stdin: true, stdout: true, stderr: true },
      workerData: { file: new URL(ownWorker).pathname },
      resourceLimits: { maxYoungGenerationSizeMb: 6 },
    });
    start('file:///w.mjs');
    const other = any(NodeWorker.made.pop());
    assert.deepEqual([String(other.file), other.options], ['file:///w.mjs', { execArgv: [] }]);
    assert.throws(() => start('w.mjs'), { code: 'ARG', message: /not w\.mjs$/ });
  });

  test('a host without workers is reported', (t) => {
    withThreads(t, null);
    const message =
      "workers: not available on this host. Import createEngine from 'wick-llm/edge', which runs the engine in the calling thread";
    const error = { code: 'UNSUPPORTED', message };
    assert.throws(() => start(undefined), error);
    assert.throws(() => start('file:///w.mjs'), error);
  });

  test('messages, errors and exits are passed on', async (t) => {
    withThreads(t);
    const { thread, log } = start(undefined);
    const worker = any(NodeWorker.made.pop());
    thread.post('a');
    thread.post('b', ['c']);
    thread.keepAlive(true);
    thread.keepAlive(false);
    assert.deepEqual(worker.did.splice(0), [['a', []], ['b', ['c']], 'ref', 'unref']);
    const error = new TypeError('x');
    worker.emit('message', 5);
    worker.emit('messageerror', error);
    worker.emit('error', error);
    worker.emit('exit', 7);
    assert.deepEqual(log.splice(0), [
      ['message', 5],
      ['end', 'it sent a message that could not be deserialized', error],
      ['end', 'TypeError: x', error],
      ['end', 'it ended with code 7'],
    ]);
    await thread.terminate();
    assert.deepEqual([worker.did, log], [['ended'], []]);
  });

  test('posted messages are counted if memory is shared; failed ones are not', (t) => {
    /** @type {any[]} */
    const posted = [];
    const post = (/** @type {any[]} */ ...message) => {
      if (message[0] === 'no') throw new Error('not copied');
      posted.push(message);
    };
    const counted = countPosts(any({ post }));
    counted.post('a', []);
    counted.post('b', any(['c']));
    assert.throws(() => counted.post('no'), { message: 'not copied' });
    assert.deepEqual(posted, [
      ['a', []],
      ['b', ['c']],
    ]);
    assert.ok(counted.sent?.buffer instanceof SharedArrayBuffer);
    assert.deepEqual([...any(counted.sent)], [2]);
    pretend(t, { SharedArrayBuffer: undefined });
    const plain = any({ post });
    assert.equal(countPosts(plain), plain);
    assert.deepEqual(Object.keys(plain), ['post']);
  });
});

describe('the connection', () => {
  /** @param {{threads?: number, swap?: number, refuse?: number, source?: any}} [options] `refuse`: number of workers that can be started */
  function connect({ threads = 1, swap = 0, refuse = 99, source } = {}) {
    /** @type {any[]} */
    const workers = [];
    /** @type {any[]} */
    const reports = [];
    const connection = new EngineConnection(
      (progress) => reports.push(progress),
      (error) => reports.push(error.code),
    );
    connection.startWorker(() => {
      if (workers.length >= refuse) throw new Error('no more');
      const worker = any(new EventEmitter());
      worker.did = [];
      worker.postMessage = (/** @type {any} */ message) => {
        if (message.args?.[0] === 'no' || message.input === 'no') throw new Error('not copied');
        worker.did.push(message.type);
        worker.last = message;
      };
      worker.ref = () => worker.did.push('ref');
      worker.unref = () => worker.did.push('unref');
      worker.terminate = () => worker.did.push('terminate');
      worker.say = (/** @type {any} */ message) => worker.emit('message', message);
      workers.push(worker);
      return worker;
    });
    const message = any({ type: 'init', module: 1, config: { threads, swap }, source: {} });
    const init = () => connection.init(message, source);
    return { connection, workers, worker: workers[0], reports, init };
  }

  /** @param {Parameters<typeof connect>[0]} [options] */
  async function ready(options) {
    const made = connect(options);
    const begun = made.init();
    const { helpers } = made.worker.last;
    made.worker.say({ type: 'ready', info: { a: 1 } });
    assert.deepEqual(await begun, { a: 1 });
    await helped();
    for (const port of helpers) port.close();
    made.worker.did.length = 0;
    return made;
  }

  test('progress is reported; helpers start at the second report, only once', async () => {
    const { worker, workers, reports, init, connection } = connect({ threads: 3 });
    const begun = assert.rejects(init(), { code: 'CLOSED' });
    const { helpers, type, module, sent } = worker.last;
    assert.deepEqual([type, module, sent.length, helpers.length], ['init', 1, 1, 2]);
    const news = (/** @type {string} */ phase) =>
      worker.say({ type: 'progress', progress: { phase } });
    news('loading');
    await later();
    assert.equal(workers.length, 1);
    news('retrying');
    await later();
    assert.equal(workers.length, 1);
    news('loading');
    await later();
    assert.equal(workers.length, 3);
    news('loading');
    await later();
    assert.equal(workers.length, 3);
    assert.deepEqual(
      workers.slice(1).map(({ did, last }) => [did, last.index, last.module]),
      [
        [['unref', 'helper'], 0, 1],
        [['unref', 'helper'], 1, 1],
      ],
    );
    const phases = ['loading', 'retrying', 'loading', 'loading'];
    assert.deepEqual(
      reports,
      phases.map((phase) => ({ phase })),
    );
    const closing = connection.close();
    worker.say({ type: 'closed' });
    await closing;
    await begun;
    for (const one of workers.slice(1)) one.last.port.close();
    for (const port of helpers) port.close();
  });

  test('no helper starts after the end; if a helper cannot start, the engine ends', async () => {
    const early = connect({ threads: 2 });
    const begun = early.init();
    early.worker.say({ type: 'ready', info: {} });
    await begun;
    await early.connection.close();
    await helped();
    assert.equal(early.workers.length, 1);
    const { worker, connection, init, reports } = connect({ threads: 2, refuse: 1 });
    void init();
    worker.say({ type: 'ready', info: {} });
    await helped();
    const message = "The engine's worker crashed: a helper could not be started: Error: no more";
    assert.throws(() => connection.check(), { code: 'WORKER_CRASHED', message });
    assert.deepEqual(reports, ['WORKER_CRASHED']);
    for (const one of [early, { worker }])
      for (const port of one.worker.last.helpers ?? []) port.close();
  });

  test('a closed connection does not start an engine', async () => {
    const { connection, worker, init } = connect();
    await connection.close();
    worker.did.length = 0;
    await assert.rejects(init(), { code: 'CLOSED' });
    assert.deepEqual(worker.did, []);
    const empty = new EngineConnection(() => {});
    assert.equal(empty.isEnded, false);
    empty.check();
  });

  test('log messages from the worker go to the console, others do not', async (t) => {
    const warn = t.mock.method(console, 'warn', () => {});
    const { worker, connection } = await ready();
    worker.say({ type: 'log', text: 'hello' });
    worker.say({ type: 'step', outputs: [] });
    worker.say({ type: 'result', id: 99 });
    await connection.close();
    worker.say({ type: 'log', text: 'late' });
    assert.deepEqual(
      warn.mock.calls.map((call) => call.arguments),
      [['hello'], ['late']],
    );
  });

  test('a call that is aborted before or during it leaves no listener', async () => {
    const { worker, connection } = await ready();
    await assert.rejects(connection.call('info', [], AbortSignal.abort(new Error('before'))), {
      message: 'before',
    });
    assert.deepEqual(worker.did, []);
    const abort = new AbortController();
    const { signal } = abort;
    const log = logListeners(signal);
    const call = connection.call('info', [], signal);
    worker.say({ type: 'result', id: worker.last.id, value: 5 });
    assert.equal(await call, 5);
    assert.deepEqual(log, ['addEventListener', 'removeEventListener']);
    const other = assert.rejects(connection.call('info', [], signal), { message: 'within' });
    abort.abort(new Error('within'));
    await other;
    worker.say({ type: 'result', id: worker.last.id, value: 6 }); // no call waits for this result
    assert.deepEqual(worker.did, [
      'ref',
      'call',
      'unref',
      'unref',
      'ref',
      'call',
      'unref',
      'cancel',
      'unref',
      'unref',
    ]);
    await connection.close();
  });

  test('messages that cannot be cloned are rejected, and no call waits for them', async () => {
    const { worker, connection } = await ready();
    const error = {
      code: 'ARG',
      message: 'argument: cannot be sent to the engine: Error: not copied',
    };
    await assert.rejects(connection.call('info', ['no']), error);
    assert.equal(worker.did.at(-1), 'unref');
    const waiter = { onOutput() {}, fail: () => assert.fail('the error was reported twice') };
    assert.throws(() => connection.generate(any({ input: 'no' }), [waiter, waiter]), error);
    assert.equal(worker.did.at(-1), 'unref');
    await connection.close();
  });

  test('a crash fails all waiting calls, and later messages to the worker are not sent', async () => {
    const { worker, workers, connection, reports } = await ready({ threads: 2 });
    /** @type {any[]} */
    const failed = [];
    const waiter = { onOutput() {}, fail: (/** @type {any} */ error) => failed.push(error.code) };
    const [running] = connection.generate(any({ input: 'a' }), [waiter]);
    const call = assert.rejects(connection.call('info', []), { code: 'WORKER_CRASHED' });
    worker.did.length = 0;
    worker.say({ type: 'crashed', message: 'x' });
    await call;
    running.acknowledge(3);
    running.cancel();
    running.forget();
    worker.say({ type: 'ready', info: {} });
    worker.say({ type: 'crashed', message: 'y' });
    await connection.close();
    assert.deepEqual(failed, ['WORKER_CRASHED']);
    assert.deepEqual(reports, ['WORKER_CRASHED']);
    assert.deepEqual(worker.did, ['terminate']); // terminated without a request to close
    assert.equal(workers[1].did.at(-1), 'terminate');
    workers[1].last.port.close();
  });

  test('a worker with helpers or a swap file is asked to close; a second close waits for the first', async () => {
    for (const [options, isAsked] of /** @type {[any, boolean][]} */ ([
      [{ threads: 1 }, false],
      [{ threads: 1, swap: 1 }, true],
      [{ threads: 2 }, true],
    ])) {
      const timers = () =>
        process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
      const { worker, workers, connection } = await ready(options);
      const before = timers();
      let ended = 0;
      const closings = [connection.close(), connection.close()].map((one) =>
        one.then(() => ended++),
      );
      await turn();
      assert.deepEqual(worker.did.slice(0, 2), isAsked ? ['ref', 'close'] : ['terminate']);
      if (isAsked) {
        assert.deepEqual([ended, worker.did.length, timers()], [0, 2, before + 1]);
        worker.say({ type: 'closed' });
      }
      await Promise.all(closings);
      assert.equal(timers(), before);
      assert.equal(worker.did.at(-1), 'terminate');
      for (const one of workers.slice(1)) one.last.port.close();
    }
  });

  test('a worker that does not respond is terminated after five seconds', async (t) => {
    const { worker, connection } = await ready({ swap: 1 });
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const closing = connection.close();
    await turn();
    t.mock.timers.tick(4999);
    await turn();
    assert.deepEqual(worker.did, ['ref', 'close']);
    t.mock.timers.tick(1);
    await closing;
    assert.deepEqual(worker.did, ['ref', 'close', 'terminate']);
  });

  test('a shared engine becomes ready, and ready again with a different worker', async () => {
    const connection = new EngineConnection(() => {});
    /** @type {any[]} */
    const again = [];
    /** @type {any} */
    let receive;
    const post = () => {};
    const shared = connection.share(
      (onMessage) => {
        receive = onMessage;
        return any({ post, keepAlive() {}, terminate: async () => {} });
      },
      (info) => again.push(info),
    );
    receive({ type: 'ready', info: 1 });
    assert.equal(await shared, 1);
    assert.deepEqual(again, []);
    receive({ type: 'ready', info: 2 });
    receive({ type: 'ready', info: 3 });
    assert.deepEqual(again, [2, 3]);
    await connection.close();
  });
});
