// One engine for several tabs (js/tabs), with locks and workers that the test controls. tests/package/tabs.test.mjs tests
// browsers.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { EngineConnection } from '../../js/connection/engine_connection.js';
import { join, TabThread } from '../../js/tabs/tab_thread.js';
import { TestLocks } from '../support/locks.mjs';
import { waitUntil } from '../support/package.mjs';

/** The engine's worker in the leading tab. */
class PretendedWorker extends EventEmitter {
  /** @type {any[]} */
  posted = [];
  isEnded = false;

  /** @param {string} name @param {(event: any) => void} listener */
  addEventListener(name, listener) {
    this.on(name, (data) => listener({ data }));
  }

  /** @param {any} message */
  postMessage(message) {
    this.posted.push(structuredClone(message));
  }

  terminate() {
    this.isEnded = true;
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

before(() => {
  Object.defineProperty(globalThis, 'navigator', {
    value: { locks: new TestLocks() },
    configurable: true,
  });
});
after(() => {
  Reflect.deleteProperty(globalThis, 'navigator');
});

let names = 0;

/** Opens the tabs of a test, which are closed at its end. @param {import('node:test').TestContext} t */
function openTabs(t) {
  const name = `tabs ${++names}`;
  const tabs = /** @type {{connection: EngineConnection}[]} */ ([]);
  t.after(() => Promise.all(tabs.map(({ connection }) => connection.close())));
  const open = (fingerprint = 'a') => {
    /** @type {PretendedWorker | undefined} */
    let worker;
    /** @type {any[]} */
    const again = [];
    const load = (/** @type {EngineConnection} */ own) => {
      worker = new PretendedWorker();
      own.startWorker(() => /** @type {any} */ (worker));
      const message = { type: 'init', config: { threads: 1 } };
      const ready = own.init(/** @type {any} */ (message), undefined);
      worker.say({ type: 'ready', info: { load: { fingerprint } } });
      return ready;
    };
    const connection = new EngineConnection(() => {});
    const ready = connection.share(
      (onMessage) => new TabThread(name, memberOf(name), load, onMessage, EngineConnection),
      (info) => again.push(info),
    );
    ready.catch(() => {});
    const tab = { connection, ready, again, worker: () => /** @type {any} */ (worker) };
    tabs.push(tab);
    return tab;
  };
  return { open, name };
}

/** @param {string} name of the engine @returns a tab whose lock is requested, as by join */
function memberOf(name) {
  const member = { id: crypto.randomUUID(), end: new AbortController() };
  const untilEnd = () =>
    new Promise((release) => member.end.signal.addEventListener('abort', release));
  navigator.locks.request(`${name} ${member.id}`, untilEnd);
  return member;
}

/** @param {() => any} found */
const waitFor = (found) => waitUntil(() => Boolean(found()), 'a message');

/** Settles once messages in flight between tabs have arrived. */
const turns = () => new Promise((settle) => setTimeout(settle, 30));

/** @param {any} tab @param {string} type @param {number} [at] @returns {Promise<any>} */
async function nth(tab, type, at = 0) {
  await waitFor(() => tab.worker()?.got(type).length > at);
  return tab.worker().got(type)[at];
}

/** Requests text. @param {any} tab @param {object} [settings] @param {number} [completions] */
function generate(tab, settings = {}, completions = 1) {
  /** @type {string[][]} */
  const texts = Array.from({ length: completions }, () => []);
  /** @type {any[]} */
  const failures = [];
  const waiters = texts.map((list) => ({
    onOutput: (/** @type {any} */ output) => void list.push(...output.texts),
    fail: (/** @type {any} */ error) => void failures.push(error),
  }));
  const message = { input: { prompt: 'a' }, settings, wantsTokens: false };
  const running = tab.connection.generate(/** @type {any} */ (message), waiters);
  return { texts, failures, running };
}

const piece = (/** @type {number} */ id, /** @type {string[]} */ texts, done = undefined) => ({
  ...{ type: 'step' },
  outputs: [
    { id, texts, tokens: texts.map(() => ({})), prefill: undefined, done, error: undefined },
  ],
});

describe('whether tabs can share', () => {
  const { process: node, BroadcastChannel: Channel } = globalThis;
  const locks = new TestLocks();

  /** @param {{process?: any, navigator?: any, BroadcastChannel?: any}} host */
  async function canJoinIn(host) {
    const { navigator } = globalThis;
    const all = { process: undefined, navigator: { locks }, BroadcastChannel: Channel, ...host };
    for (const [name, value] of Object.entries(all)) {
      Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
    }
    try {
      const member = await join('engine');
      member?.end.abort();
      return member !== undefined;
    } finally {
      const usual = { process: node, navigator, BroadcastChannel: Channel };
      for (const [name, value] of Object.entries(usual)) {
        Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
      }
    }
  }

  test('pages with usable locks and channels can; Node cannot', async () => {
    for (const page of [undefined, {}, { versions: {} }]) {
      assert.equal(await canJoinIn({ process: page }), true);
    }
    assert.equal(await canJoinIn({ process: node }), false);
    for (const navigator of [undefined, {}, { locks: {} }]) {
      assert.equal(await canJoinIn({ navigator }), false);
    }
    assert.equal(await canJoinIn({ BroadcastChannel: undefined }), false);
  });

  test('interfaces that throw count as missing', async () => {
    const refusing = () => {
      throw new DOMException('blocked', 'SecurityError');
    };
    const request = async () => refusing();
    assert.equal(await canJoinIn({ navigator: { locks: { request } } }), false);
    assert.equal(await canJoinIn({ BroadcastChannel: refusing }), false);
  });
});

describe('the leader', () => {
  test('the first tab loads the model, the others use its engine', async (t) => {
    const { open } = openTabs(t);
    const first = open();
    assert.equal(/** @type {any} */ (await first.ready).sharing, 'leader');
    const [second, third] = [open(), open()];
    for (const { ready, worker } of [second, third]) {
      assert.deepEqual(await ready, { load: { fingerprint: 'a' }, sharing: 'follower' });
      assert.equal(worker(), undefined);
    }
    const answer = second.connection.call('tokenize', ['text']);
    const asked = await nth(first, 'call');
    assert.deepEqual([asked.method, asked.args], ['tokenize', ['text']]);
    first.worker().say({ type: 'result', id: asked.id, value: [1, 2] });
    assert.deepEqual(await answer, [1, 2]);
    const info = third.connection.call('info', []);
    const { id } = await nth(first, 'call', 1);
    first.worker().say({ type: 'result', id, value: { a: 1 } });
    assert.deepEqual(await info, { a: 1, sharing: 'follower' });
    const refused = second.connection.call('stats', []);
    const other = await nth(first, 'call', 2);
    const error = { code: 'ARG', message: 'no', cause: undefined };
    first.worker().say({ type: 'error', id: other.id, error });
    await assert.rejects(refused, { code: 'ARG', message: 'no' });
  });

  test('a model that cannot be loaded fails in every tab', async (t) => {
    const { name } = openTabs(t);
    const load = async () => {
      throw new TypeError('no model');
    };
    const connections = [1, 2].map(() => new EngineConnection(() => {}));
    const ready = connections.map((connection) =>
      connection.share(
        (onMessage) => new TabThread(name, memberOf(name), load, onMessage, EngineConnection),
        assert.fail,
      ),
    );
    for (const one of ready) await assert.rejects(one, { message: /no model/ });
    await Promise.all(connections.map((connection) => connection.close()));
  });

  test('if locks are unavailable, starting fails', { timeout: 100_000 }, async (t) => {
    const { name } = openTabs(t);
    const { locks } = navigator;
    t.after(() => Object.defineProperty(navigator, 'locks', { value: locks, configurable: true }));
    const request = async () => {
      throw new DOMException('no origin', 'SecurityError');
    };
    Object.defineProperty(navigator, 'locks', { value: { request }, configurable: true });
    const connection = new EngineConnection(() => {});
    const member = { id: crypto.randomUUID(), end: new AbortController() };
    const ready = connection.share(
      (onMessage) => new TabThread(name, member, () => assert.fail(), onMessage, EngineConnection),
      assert.fail,
    );
    await assert.rejects(ready, { message: /no origin/ });
    await connection.close();
  });

  test('values that cannot be cloned are rejected immediately, before and after the model has loaded', async (t) => {
    const { open } = openTabs(t);
    const [leader, tab] = [open(), open()];
    const settings = { stop: [() => {}] };
    for (const when of ['before', 'after']) {
      const call = tab.connection.call('tokenize', [() => {}]);
      await assert.rejects(call, { code: 'ARG', message: /cannot be sent/ }, when);
      assert.throws(() => generate(tab, settings), { code: 'ARG' }, when);
      await Promise.all([leader.ready, tab.ready]);
    }
    const { failures } = generate(leader, settings);
    assert.equal(failures[0].code, 'ARG');
    assert.deepEqual(leader.worker().got('generate'), []);
  });
});

describe('requests from tabs', () => {
  test('each tab receives its own pieces; acknowledgements and cancellations reach the worker', async (t) => {
    const { open } = openTabs(t);
    const [leader, tab] = [open(), open()];
    await Promise.all([leader.ready, tab.ready]);
    const mine = generate(leader);
    const theirs = generate(tab, {}, 2);
    const [own, other] = [await nth(leader, 'generate'), await nth(leader, 'generate', 1)];
    assert.deepEqual([own.completions, other.completions], [1, 2]);
    leader.worker().say(piece(own.id, ['a']));
    leader.worker().say(piece(other.id, ['b']));
    leader.worker().say(piece(other.id + 1, ['c', 'd']));
    await waitFor(() => theirs.texts[1].length === 2);
    assert.deepEqual([mine.texts, theirs.texts], [[['a']], [['b'], ['c', 'd']]]);
    theirs.running[1].acknowledge(2);
    theirs.running[0].cancel();
    const [ack, cancel] = [await nth(leader, 'ack'), await nth(leader, 'cancel')];
    assert.deepEqual([ack.id, ack.count, cancel.id], [other.id + 1, 2, other.id]);
    leader.worker().say(piece(other.id + 1, ['e'], /** @type {any} */ ({ finish: 'stop' })));
    await waitFor(() => theirs.texts[1].length === 3);
    theirs.running[1].cancel();
    const more = tab.connection.call('stats', []);
    const { id } = await nth(leader, 'call');
    leader.worker().say({ type: 'result', id, value: 1 });
    await more;
    assert.equal(leader.worker().got('cancel').length, 1);
  });

  test('data in flight to a cancelled reader is dropped', async (t) => {
    const { open } = openTabs(t);
    const [leader, tab] = [open(), open()];
    await Promise.all([leader.ready, tab.ready]);
    const [left, kept] = [generate(tab), generate(tab)];
    const { id } = await nth(leader, 'generate');
    const other = await nth(leader, 'generate', 1);
    leader.worker().say(piece(id, ['a']));
    leader.worker().say(piece(other.id, ['b']));
    left.running[0].cancel();
    await waitFor(() => kept.texts[0].length === 1);
    assert.deepEqual([left.texts, left.failures, kept.texts], [[[]], [], [['b']]]);
    assert.equal((await nth(leader, 'cancel')).id, id);
  });

  test('closing a tab ends its requests, its sessions, and sessions being created', async (t) => {
    const { open } = openTabs(t);
    const [leader, tab] = [open(), open()];
    await Promise.all([leader.ready, tab.ready]);
    const made = tab.connection.call('createSession', []);
    leader.worker().say({ type: 'result', id: (await nth(leader, 'call')).id, value: 5 });
    await made;
    tab.connection.call('createSession', []).catch(() => {});
    const late = await nth(leader, 'call', 1);
    generate(tab);
    const { id } = await nth(leader, 'generate');
    await tab.connection.close();
    assert.equal((await nth(leader, 'cancel')).id, id);
    const closed = await nth(leader, 'call', 2);
    assert.deepEqual([closed.method, closed.args], ['closeSession', [5]]);
    leader.worker().say({ type: 'result', id: late.id, value: 6 });
    const closedLate = await nth(leader, 'call', 3);
    assert.deepEqual([closedLate.method, closedLate.args], ['closeSession', [6]]);
  });

  test('a call that is aborted, or whose tab closes, is cancelled in the worker', async (t) => {
    const { open } = openTabs(t);
    const [leader, tab] = [open(), open()];
    await Promise.all([leader.ready, tab.ready]);
    const leaves = new AbortController();
    const call = tab.connection.call('embed', [{}], leaves.signal);
    const { id } = await nth(leader, 'call');
    leaves.abort();
    await assert.rejects(call, { name: 'AbortError' });
    assert.equal((await nth(leader, 'cancel')).id, id);
    tab.connection.call('embed', [{}]).catch(() => {});
    const late = await nth(leader, 'call', 1);
    await tab.connection.close();
    assert.equal((await nth(leader, 'cancel', 1)).id, late.id);
  });

  test('a session belongs to its tab and has a separate number', async (t) => {
    const { open } = openTabs(t);
    const [leader, tab, other] = [open(), open(), open()];
    await Promise.all([leader.ready, tab.ready, other.ready]);
    const made = tab.connection.call('createSession', []);
    leader.worker().say({ type: 'result', id: (await nth(leader, 'call')).id, value: 5 });
    const session = await made;
    assert.notEqual(session, 5);
    generate(tab, { session });
    assert.equal((await nth(leader, 'generate')).settings.session, 5);
    const stolen = generate(other, { session });
    await waitFor(() => stolen.failures.length);
    assert.equal(stolen.failures[0].code, 'SEQ');
    const forked = tab.connection.call('forkSession', [session]);
    const fork = await nth(leader, 'call', 1);
    assert.deepEqual(fork.args, [5]);
    leader.worker().say({ type: 'result', id: fork.id, value: 7 });
    assert.equal((await forked) - session, 2);
    const closing = tab.connection.call('closeSession', [session]);
    leader.worker().say({ type: 'result', id: (await nth(leader, 'call', 2)).id, value: 0 });
    await closing;
    await assert.rejects(tab.connection.call('closeSession', [session]), { code: 'SEQ' });
    const far = session + 2 ** 20;
    await assert.rejects(tab.connection.call('closeSession', [far]), { code: 'LEADER_GONE' });
  });
});

describe('events of a request', () => {
  test('an error ends a request, so a reader that stops afterwards does not cancel it', async (t) => {
    const { open } = openTabs(t);
    const [leader, tab] = [open(), open()];
    await Promise.all([leader.ready, tab.ready]);
    const request = generate(tab, {}, 2);
    const { id } = await nth(leader, 'generate');
    const error = { code: 'NOMEM', message: 'full', cause: undefined };
    leader.worker().say({ type: 'error', id, error });
    const last = piece(id + 1, ['a']);
    /** @type {any} */ (last.outputs[0]).error = {
      code: 'IO',
      message: 'broken',
      cause: undefined,
    };
    leader.worker().say(last);
    await waitFor(() => request.failures.length > 0 && request.texts[1].length > 0);
    assert.deepEqual([request.failures[0].code, request.failures[0].message], ['NOMEM', 'full']);
    await tab.connection.close();
    await turns();
    assert.deepEqual(leader.worker().got('cancel'), []);
  });
});

describe('foreign messages', () => {
  test('on a tab’s channel are ignored unless the leader sent them', async (t) => {
    const { open, name } = openTabs(t);
    const heard = /** @type {string[]} */ ([]);
    const usual = BroadcastChannel;
    class Listening extends usual {
      /** @param {string} own */
      constructor(own) {
        super(own);
        if (own !== name && !heard.includes(own)) heard.push(own);
      }
    }
    globalThis.BroadcastChannel = Listening;
    t.after(() => {
      globalThis.BroadcastChannel = usual;
    });
    const leader = open();
    await leader.ready;
    const tab = open();
    await tab.ready;
    globalThis.BroadcastChannel = usual;
    assert.equal(heard.length, 2, 'each tab has a separate channel');
    const other = openTabs(t).open();
    await other.ready;
    const answer = tab.connection.call('tokenize', ['text']);
    const { id } = await nth(leader, 'call');
    const stranger = new BroadcastChannel(heard[1]);
    t.after(() => stranger.close());
    const result = { type: 'result', id: 1, value: 'forged' };
    const failed = { type: 'failed', error: { code: 'IO', message: 'forged' } };
    for (const data of [
      ...[undefined, null, 5, {}, result, { message: result }, { leader: '', message: failed }],
      ...[{ leader: 5, message: failed }, { message: failed }, { leader: 'x', message: result }],
      ...[{ leader: 'x' }, { leader: 'x', message: { type: 'failed' } }],
      ...[
        { leader: 'x', message: { type: 'unknown', id: 1 } },
        { leader: 'x', message: 5 },
      ],
    ]) {
      stranger.postMessage(data);
    }
    await turns();
    leader.worker().say({ type: 'result', id, value: 'right' });
    assert.equal(await answer, 'right');
    assert.equal(tab.connection.isEnded, false);
    assert.deepEqual(
      other.worker().got('call'),
      [],
      'an engine with a different name is not notified',
    );
  });
});

describe('when the leader is closed', () => {
  test('the next tab loads the model; open calls and requests continue without duplicate pieces', async (t) => {
    const { open } = openTabs(t);
    const [leader, tab] = [open(), open()];
    await Promise.all([leader.ready, tab.ready]);
    const asked = tab.connection.call('tokenize', ['text']);
    const request = generate(tab, {}, 2);
    const before = await nth(leader, 'generate');
    leader.worker().say(piece(before.id, ['a', 'b']));
    await waitFor(() => request.texts[0].length === 2);
    request.running[0].acknowledge(1);
    request.running[1].cancel();
    await nth(leader, 'cancel');
    await leader.connection.close();
    const again = await nth(tab, 'generate');
    assert.deepEqual([again.completions, again.input], [2, before.input]);
    assert.deepEqual(tab.again, [{ load: { fingerprint: 'a' }, sharing: 'leader' }]);
    const call = await nth(tab, 'call');
    assert.deepEqual(call.args, ['text']);
    const [ack, cancel] = [await nth(tab, 'ack'), await nth(tab, 'cancel')];
    assert.deepEqual([ack.id, ack.count, cancel.id], [again.id, 1, again.id + 1]);
    tab.worker().say({ type: 'result', id: call.id, value: 'tokens' });
    assert.equal(await asked, 'tokens');
    tab.worker().say(piece(again.id, ['a']));
    tab.worker().say(piece(again.id, ['b', 'c']));
    tab.worker().say(piece(again.id, ['d']));
    assert.deepEqual(request.texts, [['a', 'b', 'c', 'd'], []]);
    assert.deepEqual(request.failures, []);
  });

  test('requests that ended, failed or were never sent are not repeated', async (t) => {
    const { open } = openTabs(t);
    const [leader, tab] = [open(), open()];
    await Promise.all([leader.ready, tab.ready]);
    const request = generate(tab, {}, 2);
    const { id } = await nth(leader, 'generate');
    const end = /** @type {any} */ ({ finish: 'stop' });
    for (const one of [id, id + 1]) leader.worker().say(piece(one, ['a'], end));
    await waitFor(() => request.texts[1].length === 1);
    const failed = generate(tab, {}, 2);
    const lost = await nth(leader, 'generate', 1);
    const error = { code: 'ARG', message: 'no', cause: undefined };
    for (const one of [lost.id, lost.id + 1])
      leader.worker().say({ type: 'error', id: one, error });
    await waitFor(() => failed.failures.length === 2);
    assert.equal(failed.failures[0].code, 'ARG');
    assert.throws(() => generate(tab, { stop: [() => {}] }, 2), { code: 'ARG' });
    const answer = tab.connection.call('tokenize', ['text']);
    leader.worker().say({ type: 'result', id: (await nth(leader, 'call')).id, value: 1 });
    await answer;
    await leader.connection.close();
    await waitFor(() => tab.again.length);
    await turns();
    assert.deepEqual([...tab.worker().got('generate'), ...tab.worker().got('call')], []);
    assert.deepEqual([...tab.worker().got('ack'), ...tab.worker().got('cancel')], []);
    const next = tab.connection.call('stats', []);
    tab.worker().say({ type: 'result', id: (await nth(tab, 'call')).id, value: 2 });
    assert.equal(await next, 2);
  });

  test('waiting requests are repeated once, each completion from its position', async (t) => {
    const { open } = openTabs(t);
    const [leader, tab] = [open(), open()];
    await Promise.all([leader.ready, tab.ready]);
    const request = generate(tab, {}, 3);
    const { id } = await nth(leader, 'generate');
    leader.worker().say(piece(id + 1, ['a', 'b', 'c']));
    leader.worker().say(piece(id + 2, ['x']));
    await waitFor(() => request.texts[2].length === 1);
    request.running[1].acknowledge(2);
    request.running[1].acknowledge(1);
    const answer = tab.connection.call('tokenize', ['text']);
    await nth(leader, 'call');
    await leader.connection.close();
    const call = await nth(tab, 'call');
    await nth(tab, 'ack', 2);
    await turns();
    assert.deepEqual(
      [tab.worker().got('generate').length, tab.worker().got('call').length],
      [1, 1],
    );
    const again = tab.worker().got('generate')[0];
    const acks = tab
      .worker()
      .got('ack')
      .map((/** @type {any} */ one) => [one.id - again.id, one.count]);
    assert.deepEqual(acks, [
      [0, 0],
      [1, 3],
      [2, 0],
    ]);
    assert.deepEqual(tab.worker().got('cancel'), []);
    tab.worker().say({ type: 'result', id: call.id, value: 1 });
    assert.equal(await answer, 1);
    tab.worker().say(piece(again.id, ['k']));
    tab.worker().say(piece(again.id + 1, ['a', 'b', 'c', 'd']));
    tab.worker().say(piece(again.id + 2, ['x', 'y']));
    await waitFor(() => request.texts[2].length === 2);
    assert.deepEqual(request.texts, [['k'], ['a', 'b', 'c', 'd'], ['x', 'y']]);
  });

  test('its sessions are lost', async (t) => {
    const { open } = openTabs(t);
    const [leader, tab] = [open(), open()];
    await Promise.all([leader.ready, tab.ready]);
    const made = tab.connection.call('createSession', []);
    leader.worker().say({ type: 'result', id: (await nth(leader, 'call')).id, value: 5 });
    const session = await made;
    const request = generate(tab, { session });
    await nth(leader, 'generate');
    await leader.connection.close();
    await waitFor(() => request.failures.length);
    assert.equal(request.failures[0].code, 'LEADER_GONE');
    await waitFor(() => tab.again.length);
    await assert.rejects(tab.connection.call('closeSession', [session]), { code: 'LEADER_GONE' });
    assert.deepEqual(tab.worker().got('generate'), []);
  });

  test('a different model in the new leader fails requests, but not calls', async (t) => {
    const { open } = openTabs(t);
    const [leader, tab] = [open('a'), open('b')];
    await Promise.all([leader.ready, tab.ready]);
    const asked = tab.connection.call('tokenize', ['text']);
    const request = generate(tab);
    await nth(leader, 'generate');
    await leader.connection.close();
    await waitFor(() => request.failures.length);
    assert.equal(request.failures[0].code, 'LEADER_GONE');
    assert.match(request.failures[0].message, /the model has changed/);
    tab.worker().say({ type: 'result', id: (await nth(tab, 'call')).id, value: 1 });
    assert.equal(await asked, 1);
    assert.deepEqual(tab.worker().got('generate'), []);
  });

  test('a third tab follows the new leader', async (t) => {
    const { open } = openTabs(t);
    const [leader, tab, other] = [open(), open(), open()];
    await Promise.all([leader.ready, tab.ready, other.ready]);
    const request = generate(other);
    await nth(leader, 'generate');
    await leader.connection.close();
    await waitFor(() => tab.worker() ?? other.worker());
    const next = tab.worker() ? tab : other;
    const { id } = await nth(next, 'generate');
    next.worker().say(piece(id, ['x']));
    await waitFor(() => request.texts[0].length === 1);
  });
});
