// The worker's request table, with a fake engine that is only a list: which requests are submitted, paused and cancelled,
// and the messages to the page.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { codeOfStatus, WickError } from '../../js/base/errors.js';
import { subjects } from '../../js/base/option_table.js';
import * as layout from '../../js/wasm/layout.js';
import { RequestTable } from '../../js/worker/request_table.js';

const { EVENT_DONE, EVENT_LOGITS, EVENT_TOKEN, FINISH_ERROR } = layout;

describe('a request that is not read', () => {
  test('is paused and does not take the slots of requests that are read', () => {
    /** @type {{request: number, kind: number, text: string}[]} */
    let events = [];
    let submitted = 0;
    let paused = 0;
    const native = {
      submit: () => ++submitted,
      lacks: () => false,
      passes: () => 0,
      pause: (/** @type {number} */ _id, /** @type {boolean} */ isPaused) => {
        paused += isPaused ? 1 : -1;
      },
      takeEvents: () => events.splice(0),
    };
    const table = new RequestTable(/** @type {any} */ (native));
    for (let id = 1; id <= 100; id++) table.add(id, /** @type {any} */ ({}), false);
    assert.equal(submitted, 64);
    const say = (/** @type {number} */ first, /** @type {number} */ last) => {
      for (let request = first; request <= last; request++) {
        for (let i = 0; i < 256; i++) events.push({ request, kind: EVENT_TOKEN, text: 'a' });
      }
      table.collect();
    };
    say(1, 64);
    assert.deepEqual([submitted, paused], [100, 64]);
    say(65, 100);
    assert.deepEqual([paused, table.canStep()], [100, false]);
    table.acknowledge(1, 32);
    assert.deepEqual([paused, table.canStep()], [99, true]);
    const done = { kind: EVENT_DONE, finish: 2, text: '' };
    events = Array.from({ length: 100 }, (_, i) => ({ request: i + 1, ...done }));
    assert.equal(table.collect().length, 100);
    // finished requests have freed their slots, and paused requests did not take any
    for (let id = 101; id <= 200; id++) table.add(id, /** @type {any} */ ({}), false);
    assert.equal(submitted, 164);
  });
});

test('the logits of a request are sent to its hook once, and returned once', () => {
  /** @type {any[]} */
  const events = [];
  /** @type {any[]} */
  const answered = [];
  const asked = Float32Array.of(1, 2);
  const native = {
    ...{
      submit: () => 9,
      lacks: () => false,
      passes: () => 0,
      takeEvents: () => events.splice(0),
    },
    requestLogits: (/** @type {number} */ number) => (number === 9 ? asked : undefined),
    answerLogits: (/** @type {any[]} */ ...args) => void answered.push(args),
  };
  const table = new RequestTable(/** @type {any} */ (native));
  table.add(1, /** @type {any} */ ({}), false);
  const logits = Float32Array.of(3, 4);
  table.answer(1, logits);
  assert.deepEqual(
    [answered, table.canStep()],
    [[], true],
    'an answer before the request is ignored',
  );
  events.push({ request: 9, kind: EVENT_LOGITS });
  const [output] = table.collect();
  assert.deepEqual([output.id, output.asked, table.canStep()], [1, asked, false]);
  table.answer(2, logits);
  assert.deepEqual(answered, [], 'an answer for a different request is ignored');
  for (let time = 0; time < 2; time++) table.answer(1, logits);
  assert.deepEqual([answered, table.canStep()], [[[9, logits]], true]);
});

test('a request that fails reports the engine’s message, with the option', () => {
  /** @type {object[]} */
  const events = [];
  const native = {
    submit: () => 1,
    lacks: () => false,
    passes: () => 0,
    takeEvents: () => events.splice(0),
  };
  const table = new RequestTable(/** @type {any} */ (native));
  const typical = subjects.findIndex(([name]) => name === 'typical_p');
  for (const [subject, words, option] of /** @type {[number, string, string | undefined][]} */ ([
    [0, 'no page', undefined],
    [typical, 'no page (option typicalP)', 'typicalP'],
  ])) {
    table.add(1, /** @type {any} */ ({}), false);
    const ended = { kind: EVENT_DONE, finish: FINISH_ERROR, status: 1, text: 'no page', subject };
    events.push({ request: 1, ...ended });
    const [{ error, done, texts }] = /** @type {any[]} */ (table.collect());
    assert.deepEqual(
      [error.code, error.message, error.cause.option],
      [codeOfStatus(1), words, option],
    );
    assert.deepEqual([done, texts], [undefined, []]);
    assert.equal(table.collect().length, 0);
  }
});

describe('a chat reply', () => {
  function tableOf() {
    /** @type {any[]} */
    const events = [];
    const native = {
      submit: () => 1,
      lacks: () => false,
      passes: () => 0,
      takeEvents: () => events.splice(0),
    };
    const table = new RequestTable(/** @type {any} */ (native));
    table.add(1, /** @type {any} */ ({ conversation: {} }), false);
    const hear = (/** @type {any[]} */ parts, /** @type {object} */ last) => {
      events.push(...parts.map((part) => ({ request: 1, text: '', stop: 0, id: '', ...part })));
      events.push({ request: 1, stop: 0, ...last });
      return table.collect()[0];
    };
    const say = (/** @type {string} */ text, /** @type {any[]} */ ...parts) =>
      hear(parts, { kind: EVENT_TOKEN, text });
    const end = (text = '', /** @type {any[]} */ ...parts) =>
      hear(parts, { kind: EVENT_DONE, finish: 1, text });
    return { say, end };
  }
  const content = (/** @type {string} */ text) => ({ kind: layout.EVENT_CONTENT, text });

  test('is sent with its parsed parts', () => {
    const { say, end } = tableOf();
    const output = say('a', content('a'));
    assert.deepEqual([output.texts, output.deltas], [['a'], [[{ content: 'a' }]]]);
    const reasoning = { kind: layout.EVENT_REASONING, text: 'c' };
    assert.deepEqual(say('bc', content('b'), reasoning).deltas, [
      [{ content: 'b' }, { reasoning_content: 'c' }],
    ]);
    assert.deepEqual(say('<').deltas, [[]]);
    const call = { kind: layout.EVENT_CALL, text: 'get', id: 'x', stop: 2 };
    const pieces = { kind: layout.EVENT_ARGUMENTS, text: '{}', stop: 2 };
    assert.deepEqual(say('{}', call, pieces, { kind: 9, stop: 2 }).deltas, [
      [
        {
          tool_calls: [
            { index: 2, id: 'x', type: 'function', function: { name: 'get', arguments: '' } },
          ],
        },
        { tool_calls: [{ index: 2, function: { arguments: '{}' } }] },
      ],
    ]);
    const last = end();
    assert.deepEqual([last.texts, last.deltas, last.done?.finish], [[], undefined, 'stop']);
  });

  test('returns the text of an invalid call as content', () => {
    const { say, end } = tableOf();
    const broken = { kind: layout.EVENT_CALL_BROKEN, stop: 1 };
    assert.deepEqual(say('?', content('b'), broken, content('é'), content('?')).deltas, [
      [{ content: 'b' }, { content: 'é', callsWhole: 1 }, { content: '?', callsWhole: 1 }],
    ]);
    const last = end('>', content('>'));
    assert.deepEqual([last.texts, last.deltas], [['>'], [[{ content: '>', callsWhole: 1 }]]]);
  });
});

describe('more requests than the engine accepts', () => {
  /** Creates a table with an engine that is only a list. */
  function tableOf() {
    /** @type {any[]} */
    const submitted = [];
    /** @type {{request: number, kind: number, finish: number, text: string}[]} */
    const events = [];
    const engine = { passes: 0, room: Number.POSITIVE_INFINITY, wrong: '' };
    const native = {
      submit(/** @type {any} */ request) {
        if (request.name === engine.wrong) throw new WickError('ARG', 'Unknown adapter');
        if (submitted.length >= engine.room) throw new WickError('NOMEM', 'no room');
        submitted.push(request);
        return submitted.length;
      },
      lacks: () => false,
      passes: () => engine.passes,
      takeEvents: () => events.splice(0),
    };
    const table = new RequestTable(/** @type {any} */ (native));
    let id = 0;
    const add = (/** @type {string} */ name, priority = 0) =>
      table.add(++id, /** @type {any} */ ({ name, priority }), false);
    const end = (/** @type {number} */ request) => {
      events.push({ request, kind: EVENT_DONE, finish: 2, text: '' });
      return table.collect();
    };
    const names = (from = 64) => submitted.slice(from).map(({ name }) => name);
    for (let i = 0; i < 64; i++) add(`${i}`);
    return { table, engine, submitted, add, end, names };
  }

  test('a request waits only if 64 requests precede it', () => {
    const { add, end, names } = tableOf();
    add('usual');
    add('low', -1);
    assert.deepEqual(names(), []);
    for (let i = 0; i < 66; i++) add(`high ${i}`, 1);
    assert.deepEqual([names().length, names().at(-1)], [64, 'high 63']);
    add('urgent', 100);
    assert.equal(names().at(-1), 'urgent');
    end(65); // 64 requests remain before the next one: 63 and the urgent one
    assert.equal(names().at(-1), 'urgent');
    end(66);
    assert.equal(names().at(-1), 'high 64');
    for (let request = 1; request <= 64; request++) end(request);
    assert.equal(names().at(-1), 'high 64');
    for (let request = 67; request <= 69; request++) end(request);
    assert.deepEqual(names().slice(-3), ['high 65', 'usual', 'low']);
  });

  test('a request that has waited for 512 passes runs before later ones', () => {
    const { add, engine, end, names, submitted } = tableOf();
    engine.passes = 10;
    add('low', -100);
    engine.passes = 11;
    for (let i = 0; i < 65; i++) add(`high ${i}`, 100);
    engine.passes = 521;
    end(1);
    assert.equal(names().at(-1), 'high 63');
    engine.passes = 522;
    end(2);
    assert.equal(names().at(-1), 'low');
    assert.equal(submitted.at(-1).passesWaited, 512);
  });

  test('without memory for more than 64, an urgent request waits for another one to end, and is not rejected', () => {
    const { table, add, engine, end, names } = tableOf();
    engine.room = 64;
    add('urgent', 100);
    assert.deepEqual([names(), table.collect()], [[], []]);
    engine.room = 65;
    assert.deepEqual(table.collect(), []);
    end(1);
    assert.deepEqual(names(), ['urgent']);
    // a request with a free slot is rejected
    end(2);
    add('usual');
    assert.equal(table.collect()[0].error?.code, 'NOMEM');
  });

  test('a request whose adapter was removed while it waited is rejected, and no other', () => {
    const { add, engine, end, names } = tableOf();
    add('left');
    add('other');
    engine.wrong = 'left';
    assert.deepEqual(
      end(1).map(({ id, error }) => [id, error?.code]),
      [
        [1, undefined],
        [65, 'ARG'],
      ],
    );
    assert.deepEqual(names(), ['other']);
  });
});

describe('cancelling', () => {
  /** Creates a table, and records which requests its engine has to cancel. */
  function tableThatCancels() {
    /** @type {number[]} */
    const cancelled = [];
    let submitted = 0;
    const native = {
      submit: (/** @type {{completions?: number}} */ { completions = 1 }) => {
        submitted += completions;
        return submitted - completions + 1;
      },
      cancel: (/** @type {number} */ request) => void cancelled.push(request),
      takeEvents: () => done.splice(0),
      lacks: () => false,
      passes: () => 0,
      pause() {},
    };
    /** @type {{request: number, kind: number, finish: number, text: string}[]} */
    const done = [];
    const end = (/** @type {number} */ request) => {
      done.push({ request, kind: EVENT_DONE, finish: 3, text: '' });
      table.collect();
    };
    const table = new RequestTable(/** @type {any} */ (native));
    const waiting = () => {
      const requests = { waiting: 0, waiting_max: 0, refused: 0 };
      return table.addTo({ requests }).requests.waiting;
    };
    return { table, cancelled, end, waiting };
  }

  test('a request that is cancelled twice is cancelled once, whether it waits or runs', () => {
    const { table, cancelled, end, waiting } = tableThatCancels();
    const request = () => /** @type {any} */ ({});
    for (let id = 1; id <= 64; id++) table.add(id, request(), false);
    for (let i = 0; i < 2; i++) table.cancel(1);
    assert.deepEqual(cancelled, [1]);
    assert.ok(table.canStep());
    // one of two waiting completions, which are submitted together
    table.add(65, /** @type {any} */ ({ completions: 2 }), false);
    table.add(67, request(), false);
    for (let i = 0; i < 2; i++) table.cancel(65);
    assert.deepEqual([cancelled, waiting()], [[1], 3]);
    for (let i = 0; i < 2; i++) table.cancel(67);
    assert.equal(waiting(), 2, 'a single waiting request is removed');
    end(1);
    end(2);
    assert.deepEqual([cancelled, waiting()], [[1, 65], 0]);
    table.cancel(65);
    end(65);
    for (const gone of [1, 65, 67, 999]) table.cancel(gone);
    assert.deepEqual(cancelled, [1, 65], 'ended requests are not cancelled');
  });
});

describe('messages to the page', () => {
  /** @param {{request: number, kind: number, text: string, finish?: number}[]} events */
  function tableOf(events) {
    let submitted = 0;
    const native = {
      ...{
        submit: () => ++submitted,
        lacks: () => false,
        pause() {},
        passes: () => 0,
      },
      takeEvents: () => events.splice(0),
    };
    return new RequestTable(/** @type {any} */ (native));
  }

  test('the first piece and the end are sent immediately, the pieces in between are batched', () => {
    /** @type {{request: number, kind: number, text: string, finish?: number}[]} */
    const events = [];
    const table = tableOf(events);
    table.add(1, /** @type {any} */ ({}), false);
    const say = (/** @type {string} */ text) => {
      events.push({ request: 1, kind: EVENT_TOKEN, text });
      return table.hear();
    };
    assert.deepEqual([table.awaitsFirst(), say('a'), table.awaitsFirst()], [true, true, false]);
    assert.deepEqual(table.collect()[0].texts, ['a']);
    assert.deepEqual([say('b'), say('c')], [false, false]);
    // the end of the text was held back because it could have become a stop string
    events.push({ request: 1, kind: EVENT_DONE, finish: 2, text: 'd' });
    assert.ok(table.hear());
    const [{ texts, done }] = table.collect();
    assert.deepEqual([texts, done?.finish], [['b', 'c', 'd'], 'length']);
    assert.deepEqual(table.collect(), []);
  });

  test('if details are requested, each piece has the details of its token', () => {
    /** @type {any[]} */
    const events = [];
    const native = {
      ...{
        submit: () => 1,
        lacks: () => false,
        pause() {},
        passes: () => 0,
        takeEvents: () => events.splice(0),
      },
      tokenBytes: (/** @type {number} */ token) => Uint8Array.of(96 + token),
    };
    for (const logprob of [0, 1]) {
      const table = new RequestTable(/** @type {any} */ (native));
      table.add(1, /** @type {any} */ ({ logprob }), true);
      const top = [
        { token: 2, logprob: -1 },
        { token: 1, logprob: -2 },
      ];
      events.push({ request: 1, kind: EVENT_TOKEN, text: '', token: 1, top, logprob: -2 });
      events.push({ request: 1, kind: EVENT_TOKEN, text: 'ab', token: 2, top: [], logprob: -3 });
      events.push({ request: 1, kind: EVENT_DONE, finish: 2, text: 'c' });
      const [{ texts, tokens }] = table.collect();
      assert.deepEqual(texts, ['', 'ab', 'c']);
      const a = { token: 1, text: 'a', bytes: [97] };
      const b = { token: 2, text: 'b', bytes: [98] };
      const held = { token: -1, text: '', bytes: [], top: [] };
      const details = [
        {
          ...a,
          ...(logprob && { logprob: -2 }),
          top: [
            { ...b, logprob: -1 },
            { ...a, logprob: -2 },
          ],
        },
        { ...b, ...(logprob && { logprob: -3 }), top: [] },
        held,
      ];
      assert.deepEqual(tokens, details);
    }
  });
});

test('a grammar is compiled in slices, and no later request on the session overtakes its request', async () => {
  /** @type {string[]} */
  const submitted = [];
  let slices = 3;
  /** @type {() => void} */
  let settle = () => {};
  const isDone = new Promise((settled) => {
    settle = () => settled(undefined);
  });
  const native = {
    submit: (/** @type {any} */ { name, grammar }) =>
      grammar && slices-- > 0 ? 0 : submitted.push(name),
    passes: () => 0,
    takeEvents: () => [],
    lacks: () => false,
    loadGrammarPart: async () => {},
  };
  const change = () => submitted.length === 3 && settle();
  const table = new RequestTable(/** @type {any} */ (native), undefined, change);
  const add = (/** @type {number} */ id, /** @type {any} */ request) =>
    table.add(id, request, false);
  add(1, { name: 'slow', grammar: {}, session: 7 });
  add(2, { name: 'next', session: 7 });
  add(3, { name: 'other', session: 8 });
  assert.deepEqual(submitted, ['other']);
  await isDone;
  assert.deepEqual(submitted, ['other', 'slow', 'next']);
});

describe('requests that need the grammar module', () => {
  /** Creates a table whose engine lacks the module until `settle` is called. */
  function tableOf() {
    let isThere = false;
    let changes = 0;
    /** @type {string[]} */
    const submitted = [];
    /** @type {{settle: (value: unknown) => void, fail: (error: unknown) => void}} */
    let loading = { settle() {}, fail() {} };
    const loaded = new Promise((settle, fail) => {
      loading = { settle, fail };
    });
    const native = {
      submit: (/** @type {any} */ { name }) => submitted.push(name),
      passes: () => 0,
      takeEvents: () => [],
      cancel() {},
      lacks: (/** @type {any} */ { grammar }) => grammar !== undefined && !isThere,
      loadGrammarPart: () => loaded,
    };
    const table = new RequestTable(/** @type {any} */ (native), 4, () => changes++);
    let id = 0;
    const add = (/** @type {string} */ name, session = 0, completions = 1) => {
      const grammar = name.startsWith('g') ? {} : undefined;
      table.add(++id, /** @type {any} */ ({ name, grammar, session, completions }), false);
      id += completions - 1;
    };
    const waiting = () => table.addTo({ requests: { waiting: 0, waiting_max: 0, refused: 0 } });
    const end = async (/** @type {unknown} */ error) => {
      isThere = error === undefined;
      if (error) loading.fail(error);
      else loading.settle(undefined);
      await new Promise((settle) => setImmediate(settle));
    };
    return { table, submitted, add, waiting, end, changes: () => changes };
  }

  test('wait for it without delaying others, count towards the limit and keep the order of a session', async () => {
    const { table, submitted, add, waiting, end, changes } = tableOf();
    add('g1', 7);
    add('plain');
    add('same session', 7);
    assert.deepEqual([submitted, table.canStep()], [['plain'], true]);
    assert.equal(waiting().requests.waiting, 2);
    assert.throws(() => add('too many', 0, 2), { code: 'QUEUE_FULL' });
    await end(undefined);
    assert.deepEqual([submitted.sort(), changes() > 0], [['g1', 'plain', 'same session'], true]);
    assert.equal(waiting().requests.waiting, 0);
    assert.equal(waiting().requests.waiting_max, 2);
  });

  test('are rejected if it cannot be loaded; cancelled ones are removed', async () => {
    const { table, submitted, add, waiting, end } = tableOf();
    add('g1', 0, 2);
    table.cancel(1);
    assert.equal(waiting().requests.waiting, 2);
    table.cancel(2);
    assert.equal(waiting().requests.waiting, 0);
    add('g2');
    await end(new WickError('WASM', 'no second module'));
    const outputs = table.collect();
    assert.deepEqual(
      outputs.map(({ id, error }) => [id, error?.code, error?.message]),
      [[3, 'WASM', 'no second module']],
    );
    assert.deepEqual(submitted, []);
  });

  test('are discarded when the engine ends', async () => {
    const { table, submitted, add, end } = tableOf();
    add('g1');
    table.close();
    await end(undefined);
    assert.deepEqual([submitted, table.collect()], [[], []]);
  });
});
