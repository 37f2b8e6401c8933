// The engine's worker with a fake engine and a clock set by the test: the messages it posts, when it runs
// steps, and its calls to the engine.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

// replaced before the clock is read for the first time, because js/base/clock.js keeps the function
let clockMs = 1000;
const { hrtime } = process;
process.hrtime = /** @type {any} */ (
  () => [Math.floor(clockMs / 1000), Math.round((clockMs % 1000) * 1e6)]
);
const { WickError } = await import('../../js/base/errors.js');
const layout = await import('../../js/wasm/layout.js');
const { NativeEngine } = await import('../../js/wasm/native_engine.js');
const { EngineWorker } = await import('../../js/worker/engine_worker.js');
const { Embedder } = await import('../../js/worker/embedder.js');
const { ChatTemplate } = await import('../../js/worker/chat_template.js');
const { answerCall } = await import('../../js/worker/served_engine.js');
const { becomeHelper } = await import('../../js/worker/helper.js');
process.hrtime = hrtime;

const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);
const turn = () => new Promise((settle) => setImmediate(settle));
const turns = async (count = 8) => {
  for (let i = 0; i < count; i++) await turn();
};
const { STEP_IDLE, STEP_PROGRESS, STEP_WAIT_BYTES } = layout;

/** Returns an engine that records its calls; functions in `acts` replace the engine's methods. */
function engineOf() {
  /** @type {any[]} */
  const log = [];
  /** @type {any[]} */
  const events = [];
  /** @type {Record<string, (...values: any[]) => any>} */
  const acts = {
    nextRange: () => ({ file: 0, offset: 0, length: 0 }),
    loadState: () => ({ bytesPlaced: 5, bytesWanted: 9, isDirectoryReady: true }),
    info: () => ({ architecture: 'fox', plan: { context_tokens: 64 } }),
    counters: () => ({ bytesNow: 70, threads: 1 }),
    step: () => STEP_IDLE,
    takeEvents: () => events.splice(0),
    passes: () => 0,
    submit: () => 1,
    tokenBytes: (token) => Uint8Array.of(token),
    tokenizeChat: () => Int32Array.of(1, 2, 3),
  };
  const quiet = /^(nextRange|loadState|takeEvents|passes|tokenBytes|counters|info)$/;
  const native = any(
    new Proxy(
      {},
      {
        get: (_, name) => {
          if (name === 'then') return undefined;
          if (name === 'parts') return { extras: { module: 'extras' } };
          if (name === 'withExtras') return (/** @type {() => any} */ run) => run();
          return (/** @type {any[]} */ ...values) => {
            if (!quiet.test(String(name))) log.push([name, ...values]);
            return acts[String(name)]?.(...values);
          };
        },
      },
    ),
  );
  return {
    ...{ native, log, acts },
    /** @param {any[]} more */
    happens: (...more) => void events.push(...more),
    /** @param {string} name */
    calls: (name) => log.filter(([one]) => one === name).map(([, ...values]) => values),
  };
}

const token = (/** @type {number} */ request, /** @type {string} */ text) => ({
  ...{ request, kind: layout.EVENT_TOKEN, text, token: 65, logprob: -1, top: [] },
});
const ended = (/** @type {number} */ request, finish = 1, text = '') => ({
  ...{ request, kind: layout.EVENT_DONE, finish, text, tokensPrompt: 1, tokensCached: 2 },
  ...{ tokensOut: 3, queueMs: 4, prefillMs: 5, decodeMs: 6, ttftMs: 7, status: 0, subject: 0 },
});

/**
 * @param {import('node:test').TestContext} t
 * @param {any} [init] members of the first message
 * @param {ReturnType<typeof engineOf>} [engine]
 */
function startWorker(t, init = {}, engine = engineOf()) {
  /** @type {any[]} */
  const posted = [];
  /** @type {any[]} */
  const created = [];
  t.mock.method(NativeEngine, 'create', async (/** @type {any[]} */ ...values) => {
    created.push(values);
    values[2].onMemory('memory');
    return init.create ? init.create() : engine.native;
  });
  const worker = new EngineWorker(
    (message) => void posted.push(message),
    (text) => void posted.push(text),
  );
  t.after(() => worker.receive({ type: 'close' })); // otherwise it would continue to step
  const { create: _, ...more } = init;
  worker.receive(
    any({
      ...{ type: 'init', module: 'module', helpers: [], config: { threads: 1, swap: 0 } },
      ...{ source: { kind: 'blob', blobs: [new Blob(['GGUF0123'])] }, draft: undefined },
      ...{ chatTemplate: undefined, isEager: false, sent: undefined, ...more },
    }),
  );
  const of = (/** @type {string} */ type) => posted.filter((message) => message.type === type);
  return { worker, posted, created, of, ...engine };
}

/** @param {import('node:test').TestContext} t @param {any} [init] @param {ReturnType<typeof engineOf>} [engine] */
async function ready(t, init, engine) {
  const made = startWorker(t, init, engine);
  await turns();
  assert.equal(made.of('ready').length, 1, JSON.stringify(made.posted));
  made.posted.length = 0;
  made.log.length = 0;
  return made;
}

const settings = () => any({ priority: 0, logprob: false });
const generate = (/** @type {number} */ id, /** @type {any} */ more = {}) =>
  any({
    ...{ type: 'generate', id, completions: 1, input: { prompt: 'a' }, settings: settings() },
    ...{ wantsTokens: false, ...more },
  });

describe('the start', () => {
  test('loads bytes, reports progress and readiness, then runs the engine’s first step once', async (t) => {
    const engine = engineOf();
    const left = [4, 8];
    engine.acts.nextRange = () => ({ file: 0, offset: 8 - 4 * left.length, length: left.length });
    engine.acts.feed = () => void left.shift();
    engine.acts.loadState = () => ({
      ...{ bytesPlaced: 8 - 4 * left.length, bytesWanted: 8, isDirectoryReady: left.length < 2 },
    });
    const helper = any({
      sent: [],
      postMessage: (/** @type {any} */ one) => helper.sent.push(one),
    });
    const config = { threads: 2, swap: 0, queueLimit: 3 };
    const { posted, created, log } = startWorker(t, { config, helpers: [helper] }, engine);
    clockMs += 1000;
    await turns();
    const progress = (
      /** @type {number} */ loaded,
      /** @type {any} */ total,
      /** @type {string} */ phase,
    ) => ({
      ...{ loaded, total, bytesPerSecond: undefined, secondsLeft: undefined, phase },
    });
    assert.deepEqual(posted, [
      { type: 'progress', progress: progress(4, 8, 'loading') },
      { type: 'progress', progress: progress(8, 8, 'ready') },
      {
        type: 'ready',
        info: { architecture: 'fox', plan: { context_tokens: 64 }, bytesNow: 70, threads: 1 },
      },
    ]);
    assert.deepEqual(
      log.map(([name]) => name),
      ['endFile', 'feed', 'endFile', 'feed', 'step'],
    );
    const [[module, given, options]] = created;
    assert.deepEqual([module, given], ['module', { ...config, swap: 0, tables: 'inside' }]);
    assert.deepEqual(Object.keys(options), ['host', 'grammar', 'extras', 'onLog', 'onMemory']);
    options.onLog('word');
    assert.equal(posted.pop(), 'word');
    assert.deepEqual(helper.sent, []);
    helper.onmessage();
    await turns();
    assert.deepEqual(helper.sent, [{ module: 'module', memory: 'memory', extras: 'extras' }]);
  });

  test('a failure is reported with its code, or as a crash', async (t) => {
    for (const [error, message] of /** @type {[any, any][]} */ ([
      [
        new WickError('NOMEM', 'none'),
        { type: 'failed', error: { code: 'NOMEM', message: 'none', cause: undefined } },
      ],
      [new RangeError('odd'), { type: 'crashed', message: 'RangeError: odd' }],
    ])) {
      const create = () => Promise.reject(error);
      const { posted } = startWorker(t, { create });
      await turns();
      assert.deepEqual(posted, [message]);
    }
  });

  test('a worker that is closed during the start does no further work', async (t) => {
    const { worker, posted, log } = startWorker(t);
    worker.receive({ type: 'close' });
    worker.receive({ type: 'close' });
    await turns();
    assert.deepEqual([posted, log], [[{ type: 'closed' }], []]);
    const late = await ready(t);
    late.worker.receive({ type: 'close' });
    late.worker.receive(generate(1));
    await turns();
    assert.deepEqual([late.posted, late.log], [[{ type: 'closed' }], [['destroy']]]);
  });

  test('eager: ready once the directory is read, and requests run between bytes', async (t) => {
    const engine = engineOf();
    let left = 6;
    engine.acts.nextRange = () => ({ file: 0, offset: 0, length: left });
    engine.acts.feed = () => void left--;
    engine.acts.loadState = () => ({
      ...{ bytesPlaced: 6 - left, bytesWanted: 6, isDirectoryReady: left < 5 },
    });
    const { of, posted } = startWorker(t, { isEager: true }, engine);
    await turns(12);
    const phases = posted.map((message) => message.progress?.phase ?? message.type);
    assert.deepEqual(phases.slice(0, 3), ['loading', 'loading', 'ready']); // the second reports the size
    assert.equal(of('ready').length, 1);
    assert.equal(posted.indexOf(of('ready')[0]), 2);
    assert.equal(phases.at(-1), 'ready');
  });

  test('a draft model gets the model’s context size and the remaining memory', async (t) => {
    for (const [memoryLimit, own] of [
      [0, 0],
      [100, 30],
      [50, 1],
    ]) {
      const engine = engineOf();
      const drafting = engineOf();
      engine.acts.createSibling = () => drafting.native;
      const draft = { kind: 'blob', blobs: [new Blob(['x'])] };
      const config = { threads: 3, chooseThreads: true, metrics: true, memoryLimit, swap: 0 };
      const { log, of } = startWorker(t, { draft, config }, engine);
      await turns();
      assert.equal(of('ready').length, 1);
      assert.deepEqual(log.slice(0, 2), [
        [
          'createSibling',
          {
            ...{ threads: 1, chooseThreads: false, metrics: false, swap: 0 },
            ...{ noPrefixCache: true, noPredictor: true, tables: 'inside' },
            ...{ memoryLimit: own, contextSize: 0, kvTokens: 64 },
          },
        ],
        ['useDraft', drafting.native],
      ]);
    }
  });
});

describe('requests', () => {
  test('reports the first piece after one step, then every 15 ms, then the end', async (t) => {
    const { worker, posted, acts, calls, happens } = await ready(t, { sent: new Int32Array(1) });
    /** @type {string[]} */
    const texts = ['a', 'b', 'c', 'd', 'e', 'f'];
    acts.step = () => {
      clockMs += 4;
      const text = texts.shift();
      if (text) happens(token(1, text));
      else happens(ended(1));
      return text ? STEP_PROGRESS : STEP_IDLE;
    };
    worker.receive(generate(9));
    await turns(12);
    const reports = posted.map(({ outputs: [output] }) => [
      output.id,
      output.texts.join(''),
      output.done?.finish,
    ]);
    assert.deepEqual(reports, [
      [9, 'a', undefined],
      [9, 'bcde', undefined],
      [9, 'f', 'stop'],
    ]);
    assert.deepEqual(calls('step').flat(), [250, 1000, 1000, 1000, 1000, 1000, 1000]);
  });

  test('without messages, steps run for 15 ms; if a message waits, the worker yields after each step', async (t) => {
    for (const [count, perTurn] of /** @type {[number | undefined, number][]} */ ([
      [2, 4], // all messages have arrived: 16 ms
      [3, 1],
      [undefined, 1],
    ])) {
      const sent = count === undefined ? undefined : Int32Array.of(count);
      const { worker, acts, calls } = await ready(t, { sent });
      acts.step = () => {
        clockMs += 4;
        return STEP_PROGRESS;
      };
      worker.receive(generate(1));
      await turn();
      assert.equal(calls('step').length, perTurn);
      await turn();
      assert.equal(calls('step').length, 2 * perTurn);
      worker.receive({ type: 'close' });
      await turns();
      assert.equal(calls('step').length, 2 * perTurn);
    }
  });

  test('a step that needs bytes stops stepping until some arrive', async (t) => {
    const { worker, acts, calls } = await ready(t);
    acts.step = () => STEP_WAIT_BYTES;
    worker.receive(generate(1));
    await turns();
    assert.equal(calls('step').length, 1);
    worker.receive({ type: 'ack', id: 1, count: 0 });
    await turns();
    assert.equal(calls('step').length, 2);
    worker.receive({ type: 'cancel', id: 1 });
    await turns();
    assert.deepEqual([calls('step').length, calls('cancel')], [3, [[1]]]);
    worker.receive({ type: 'cancel', id: 77 });
    worker.receive({ type: 'ack', id: 77, count: 5 });
  });

  test('requests are submitted, and an error is reported for each completion', async (t) => {
    const { worker, posted, acts, calls } = await ready(t);
    worker.receive(
      generate(4, { completions: 2, settings: { ...settings(), session: undefined } }),
    );
    assert.deepEqual(calls('submit'), [
      [
        {
          ...{ priority: 0, logprob: false, session: undefined, prompt: 'a', tokenizeFlags: 3 },
          ...{ completions: 2, passesWaited: 0 },
        },
      ],
    ]);
    acts.submit = () => {
      throw new WickError('MISMATCH', 'the roles differ', { subject: 'template' });
    };
    const input = { messages: [], variables: {} };
    worker.receive(generate(6, { completions: 3, input }));
    await turns();
    const refused = posted.flatMap(({ outputs }) => outputs ?? []);
    assert.deepEqual(
      refused.map(({ id, error }) => [id, error.code, error.message]),
      [6, 7, 8].map((id) => [id, 'TEMPLATE', 'The roles differ']),
    );
    acts.passes = () => {
      throw new Error('trap');
    };
    worker.receive(generate(9));
    assert.deepEqual(posted.at(-1), { type: 'crashed', message: 'Error: trap' });
    const limited = await ready(t, { config: { threads: 1, swap: 0, queueLimit: 1 } });
    limited.worker.receive(generate(1));
    limited.worker.receive(generate(2));
    assert.equal(limited.of('error')[0].error.code, 'QUEUE_FULL');
  });

  test('conversations reach the engine unchanged', async (t) => {
    const { worker, calls } = await ready(t, { chatTemplate: 'chatml' });
    const ask = (/** @type {any} */ input) => {
      const messages = [{ role: 'user' }];
      worker.receive(generate(1, { input: { messages, variables: { b: 1 }, ...input } }));
      const { prompt, conversation, tokenizeFlags } = any(calls('submit').at(-1))[0];
      assert.deepEqual([prompt, tokenizeFlags], ['', 3]);
      const { json, nowS, ...more } = conversation;
      const local = Date.now() / 1000 - new Date().getTimezoneOffset() * 60;
      assert.ok(Number.isInteger(nowS) && Math.abs(nowS - local) < 100);
      return [JSON.parse(json), more];
    };
    const plain = { parseSpecial: false, prefix: undefined, toolChoice: undefined, oneCall: false };
    assert.deepEqual(ask({}), [{ b: 1, messages: [{ role: 'user' }] }, plain]);
    assert.deepEqual(calls('setChatTemplate'), [['chatml']]);
    const tools = [{ a: 1 }];
    assert.deepEqual(ask({ tools, parseSpecial: true, prefix: 'So' }), [
      { b: 1, tools, messages: [{ role: 'user' }] },
      { ...plain, parseSpecial: true, prefix: 'So', toolChoice: '"auto"' },
    ]);
    const toolChoice = { tool_choice: 'required', parallel_tool_calls: false };
    const [, { toolChoice: choice, oneCall }] = ask({ tools, toolChoice });
    assert.deepEqual([choice, oneCall], ['"required"', true]);
    assert.equal(calls('setChatTemplate').length, 1); // set only once
  });

  test('a session’s pending work is finished before it is used again', async (t) => {
    const { worker, acts, calls, happens, of } = await ready(t);
    acts.step = () => STEP_WAIT_BYTES;
    worker.receive(generate(1, { settings: { ...settings(), session: 3 } }));
    await turns();
    worker.receive({ type: 'cancel', id: 1 });
    const before = calls('step').length;
    worker.receive(any({ type: 'call', id: 20, method: 'sessionTokens', args: [4] }));
    worker.receive(any({ type: 'call', id: 21, method: 'info', args: [3] }));
    assert.equal(calls('step').length, before);
    worker.receive(any({ type: 'call', id: 22, method: 'sessionTokens', args: [3] }));
    assert.equal(calls('step').length, before + 1); // the step waits for bytes, so no other step follows
    let steps = 0;
    acts.step = () => {
      if (++steps === 3) happens(ended(1, 3));
      return STEP_PROGRESS;
    };
    worker.receive(any({ type: 'call', id: 23, method: 'closeSession', args: [3] }));
    assert.equal(steps, 3);
    assert.equal(of('step').at(-1).outputs[0].done.finish, 'abort');
    assert.deepEqual(
      of('result').map(({ id }) => id),
      [20, 21, 22, 23],
    );
  });
});

describe('calls', () => {
  test('are answered immediately or later, or rejected', async (t) => {
    const { worker, posted, acts } = await ready(t);
    const call = (/** @type {string} */ method, /** @type {any[]} */ ...args) =>
      worker.receive({ type: 'call', id: 8, method, args });
    acts.detokenize = () => 'text';
    call('detokenize', [1], false);
    assert.deepEqual(posted.pop(), { type: 'result', id: 8, value: 'text' });
    acts.embedStep = () => STEP_IDLE;
    acts.embedded = (index) => index;
    call('embed', { texts: ['a', 'b'] });
    assert.deepEqual(posted, []);
    await turns();
    assert.deepEqual(posted.pop(), { type: 'result', id: 8, value: [0, 1] });
    acts.embedBegin = () => {
      throw new WickError('FULL', 'too long');
    };
    call('embed', { texts: ['a'] });
    await turns();
    assert.equal(any(posted.pop()).error.code, 'PROMPT_TOO_LONG');
    acts.embedBegin = () => {
      throw new Error('trap');
    };
    call('embed', { texts: ['a'] });
    await turns();
    assert.deepEqual(posted.pop(), { type: 'crashed', message: 'Error: trap' });
    for (const [error, code] of /** @type {[Error, string][]} */ ([
      [new WickError('RANGE', 'x'), 'RANGE'],
      [new TypeError('x'), 'ARG'],
    ])) {
      acts.detokenize = () => {
        throw error;
      };
      call('detokenize', [1], false);
      const reports = any(posted.pop());
      assert.deepEqual([reports.type, reports.id, reports.error.code], ['error', 8, code]);
    }
    acts.detokenize = () => {
      throw new WebAssembly.RuntimeError('unreachable');
    };
    call('detokenize', [1], false);
    assert.deepEqual(posted.pop(), { type: 'crashed', message: 'RuntimeError: unreachable' });
    call('nothing');
    assert.equal(any(posted.pop()).error.message, 'Unknown call nothing');
  });

  test('each call uses the right engine function', async () => {
    const { native, log, acts } = engineOf();
    const parts = any({
      native,
      requests: { addTo: (/** @type {any} */ stats) => ({ ...stats, added: 1 }) },
      chat: () => ({
        render: (/** @type {any[]} */ ...args) => ['rendered', ...args],
        prompt: (/** @type {any} */ input) => Int32Array.from(input),
      }),
      embedder: { embed: (/** @type {any} */ request) => ['embedded', request] },
    });
    acts.tokenize = () => Int32Array.of(4, 5);
    acts.stats = () => ({ a: 1 });
    acts.kvStats = () => 'kv';
    acts.findPages = () => [9, 4];
    acts.call = (row, args) => [row.native, ...args];
    for (const name of ['metrics', 'metricsText', 'saveState', 'restoreState'])
      acts[name] = () => name;
    /** @type {[string, any[], any, any[]][]} name, arguments, result, calls to the engine */
    const cases = [
      ['tokenize', ['a', 3], [4, 5], [['tokenize', 'a', 3]]],
      ['detokenize', [[1], true], undefined, [['detokenize', [1], { whole: true, special: true }]]],
      ['applyTemplate', ['m', 'v'], ['rendered', 'm', 'v'], []],
      ['countChat', [[1, 2, 3]], 3, []],
      ['findPages', [[1, 2, 3]], [9, 4], [['findPages', [1, 2, 3]]]],
      [
        'info',
        [],
        { architecture: 'fox', plan: { context_tokens: 64 }, bytesNow: 70, threads: 1 },
        [],
      ],
      ['embed', ['r'], ['embedded', 'r'], []],
      ['stats', [], { a: 1, added: 1, kv: 'kv' }, [['stats'], ['kvStats']]],
      ['saveState', [6, 'p'], 'saveState', [['saveState', 6, 'p']]],
      ['loadState', ['b'], 'restoreState', [['restoreState', 'b']]],
      ['metrics', ['json', false], 'metrics', [['metrics']]],
      ['metrics', ['prometheus', false], 'metricsText', [['metricsText']]],
      ['metrics', ['json', true], 'metrics', [['metrics'], ['resetMetrics']]],
    ];
    for (const [name, args, answer, asked] of cases) {
      log.length = 0;
      assert.deepEqual(answerCall(name, args, parts), answer);
      assert.deepEqual(log, asked);
    }
    assert.deepEqual(answerCall('forkSession', [7], parts), ['session_fork', 7]);
    const wrong = { code: 'ARG', message: 'format must be json or prometheus, not xml' };
    assert.throws(() => answerCall('metrics', ['xml'], parts), wrong);
    acts.metrics = () => undefined;
    log.length = 0;
    const off = {
      code: 'NODATA',
      message: 'metrics: not enabled. Pass metrics: true to createEngine',
    };
    assert.throws(() => answerCall('metrics', ['json', true], parts), off);
    assert.deepEqual(log, [['metrics']]);
    await assert.rejects(any(answerCall('keepFile', ['a', new Uint8Array(1)], parts)), {
      code: 'NO_STORAGE',
    });
  });

  test('adapter bytes that need the extras are fed again once the extras are loaded', () => {
    /** @type {any[]} */
    const log = [];
    let needsExtras = true;
    const note =
      (/** @type {string} */ name) =>
      (/** @type {any[]} */ ...args) => {
        log.push([name, ...args]);
        return name;
      };
    const feed = (/** @type {any[]} */ ...args) => {
      note('feed')(...args);
      return needsExtras;
    };
    const withExtras = (/** @type {() => unknown} */ action) => {
      log.push('extras');
      return action();
    };
    const adapters = {
      ...{ add: note('add'), feed, end: note('end'), remove: note('remove'), list: note('list') },
    };
    const parts = any({ native: { adapters, withExtras } });
    const cases = /** @type {[string, any[], any][]} */ ([
      ['addAdapter', ['a'], ['add', 'a']],
      ['endAdapter', ['a', 9], ['end', 'a', 9]],
      ['removeAdapter', ['a'], ['remove', 'a']],
      ['listAdapters', [], ['list']],
    ]);
    for (const [name, args, asked] of cases) {
      assert.equal(answerCall(name, args, parts), asked[0]);
      assert.deepEqual(log.splice(0), [asked]);
    }
    const fed = ['feed', 'a', 5, 'bytes'];
    assert.equal(answerCall('feedAdapter', ['a', 5, 'bytes'], parts), true);
    assert.deepEqual(log.splice(0), [fed, 'extras', fed]);
    needsExtras = false;
    assert.equal(answerCall('feedAdapter', ['a', 5, 'bytes'], parts), undefined);
    assert.deepEqual(log, [fed]);
  });
});

describe('embeddings', () => {
  test('calls run one by one between steps, and their results are reported', async () => {
    const { native, log, acts } = engineOf();
    let isClosed = false;
    const takeTurn = async () => void log.push(['turn']);
    const step = () => native.embedStep();
    const embedder = new Embedder(native, { step, takeTurn, isClosed: () => isClosed });
    const results = [STEP_PROGRESS, STEP_PROGRESS, STEP_IDLE];
    acts.embedStep = () => results.shift() ?? STEP_IDLE;
    acts.embedded = (index) => `v${index}`;
    const request = any({ texts: ['a', 'b'] });
    const other = any({ texts: ['c'] });
    const answers = [embedder.embed(request), embedder.embed(other)];
    assert.deepEqual(await Promise.all(answers), [['v0', 'v1'], ['v0']]);
    const work = log.filter(([name]) => name !== 'turn');
    assert.deepEqual(work, [
      ...[['embedBegin', request], ['embedStep'], ['embedStep'], ['embedStep']],
      ...[['embedded', 0], ['embedded', 1], ['embedEnd']],
      ...[['embedBegin', other], ['embedStep'], ['embedded', 0], ['embedEnd']],
    ]);
    assert.ok(log.length - work.length >= 2, 'the worker must yield between steps');
    log.length = 0;
    acts.embedBegin = () => {
      throw new WickError('RANGE', 'no such token');
    };
    const failed = assert.rejects(embedder.embed(request), { code: 'RANGE' });
    await failed;
    assert.deepEqual(log, [['embedBegin', request]]);
    acts.embedBegin = () => {};
    acts.embedStep = () => {
      isClosed = true;
      return STEP_PROGRESS;
    };
    log.length = 0;
    await assert.rejects(embedder.embed(request), {
      code: 'CLOSED',
      message: 'engine: closed',
    });
    assert.equal(any(log.at(-1))[0], 'turn'); // no calls to a destroyed engine
    await assert.rejects(embedder.embed(request), { code: 'CLOSED' });
    assert.equal(any(log.at(-1))[0], 'turn');
  });

  test('the worker checks for awaited bytes every 5 ms', async (t) => {
    const { native, log, acts } = engineOf();
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const results = [STEP_WAIT_BYTES, STEP_WAIT_BYTES, STEP_IDLE];
    acts.embedStep = () => results.shift();
    acts.embedded = () => 'v';
    const embedder = new Embedder(native, {
      step: () => native.embedStep(),
      takeTurn: async () => assert.fail('a turn'),
      isClosed: () => false,
    });
    const answer = embedder.embed(any({ texts: ['a'] }));
    for (const [ms, steps] of [
      [4, 1],
      [1, 2],
      [5, 3],
    ]) {
      await turns();
      t.mock.timers.tick(ms);
      await turns();
      assert.equal(log.filter(([name]) => name === 'embedStep').length, steps);
    }
    assert.deepEqual(await answer, ['v']);
  });
});

describe('chat templates', () => {
  test('only errors in the template are reported as template errors', () => {
    const { native, acts } = engineOf();
    const none =
      'chat template: the model has none, so it was not made for conversations. Use generate(), or pass ' +
      "chatTemplate (Jinja text or 'chatml') to createEngine";
    /** @type {[string, string, string, string][]} */
    const cases = [
      ['UNSUPPORTED', 'the value is missing', 'TEMPLATE', 'The value is missing'],
      ['FORMAT', 'no chat template', 'TEMPLATE', 'no chat template'],
      ['ARG', 'in the line', 'TEMPLATE', 'in the line'],
      ['NOMEM', 'the heap', 'NOMEM', 'the heap'],
      ['NODATA', 'no chat template', 'NO_TEMPLATE', none],
    ];
    acts.renderChat = () => {
      throw new WickError('NODATA', 'in whatever words');
    };
    const missing = new ChatTemplate(native);
    assert.throws(() => missing.render([]), { code: 'NODATA', message: 'in whatever words' });
    for (const [from, words, code, message] of cases) {
      acts.renderChat = () => {
        throw new WickError(from, words, { subject: 'template' });
      };
      acts.setChatTemplate = acts.renderChat;
      assert.throws(() => new ChatTemplate(native).render([]), { code, message });
      assert.throws(() => new ChatTemplate(native, 'x'), { code, message });
    }
    acts.renderChat = () => {
      throw new TypeError('the odd');
    };
    assert.throws(() => new ChatTemplate(native).render([]), { message: 'the odd' });
    acts.renderChat = ({ json, nowS }) => [JSON.parse(json), Number.isInteger(nowS)];
    const rendered = new ChatTemplate(native).render(any(['m']), { a: 1 });
    assert.deepEqual(rendered, [{ a: 1, messages: ['m'] }, true]);
  });
});

test('a helper requests the memory, repeats the request if it was lost, and rethrows errors', async (t) => {
  /** @type {any[]} */
  const asked = [];
  const port = any({ postMessage: (/** @type {any} */ word) => asked.push(word) });
  becomeHelper(any({ module: 'none', index: 1, port }));
  assert.deepEqual(asked, ['memory?']);
  port.onmessageerror();
  assert.deepEqual(asked, ['memory?', 'memory?']);
  /** @type {any[]} */
  const raised = [];
  const { setTimeout } = globalThis;
  t.after(() => {
    globalThis.setTimeout = setTimeout;
  });
  globalThis.setTimeout = any((/** @type {() => void} */ action) => {
    try {
      action();
    } catch (error) {
      raised.push(error);
    }
  });
  const warn = t.mock.method(console, 'warn', () => {});
  let isClosed = false;
  port.close = () => {
    isClosed = true;
  };
  for (const data of [null, { memory: null }]) port.onmessage({ data });
  for (let lost = 0; lost < 20 && !isClosed; lost++) port.onmessageerror();
  assert.deepEqual([asked.length, isClosed, warn.mock.callCount()], [10, true, 1]);
  port.onmessage({ data: 'no memory' });
  await turns();
  assert.equal(raised.length, 1);
  assert.ok(raised[0] instanceof TypeError);
});
