// Several instances with HAProxy (examples/fleet): sessions stay where their prefixes are cached, an
// instance can be drained, and streams and sessions survive or fail as documented when one is killed or hangs.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { ask, readEvents } from '../support/example_servers.mjs';
import { startFleet } from '../support/fleet.mjs';
import { locate } from '../support/locate.mjs';

const haproxy = locate('haproxy').skip;
const CHAT = '/v1/chat/completions';
const sessions = Array.from({ length: 8 }, (_, index) => `session ${index}`);
const greedy = { temperature: 0, max_tokens: 8 };
/**
 * The minimum share of a session's requests that find its prefix in the cache. If requests arrived together on a busy
 * machine, wasmtime may have created a second instance, and passes requests to either.
 */
const PREFIX_SHARE_MIN = { node: 1, workerd: 1, wasmtime: 0.5 };
/** Suppresses the end token. */
const endless = { max_tokens: 3000, logit_bias: { 0: -100, 2: -100 }, stream: true };

/** Returns whether the error is that of a broken stream. @param {any} error */
const isCut = (error) => error.name === 'TypeError' && error.cause.code === 'UND_ERR_SOCKET';

/** @param {string} session */
const questionOf = (session) => [
  { role: 'system', content: `You tell stories to the guests of ${session}, and nobody else.` },
  { role: 'user', content: 'Tell me a story about a fox.' },
];

describe('two instances of workerd', { skip: haproxy || locate('workerd').skip }, () =>
  describeFleet('workerd'),
);
describe(
  'two instances of wasmtime serve',
  {
    skip: haproxy || locate('wasmtimeCommand').skip,
  },
  () => describeFleet('wasmtime'),
);

/** @param {import('../support/fleet.mjs').Kind} kind */
function describeFleet(kind) {
  /** @type {Awaited<ReturnType<typeof startFleet>>} */
  let fleet;
  before(async () => {
    fleet = await startFleet({ count: 2, kind });
  });
  after(() => fleet.close());

  /** @param {string} session @param {object} body @param {Record<string, string>} [headers] */
  const post = (session, body, headers = { 'x-session-id': session }) =>
    ask(
      fleet.origin,
      CHAT,
      { messages: questionOf(session), ...body },
      { headers: { 'content-type': 'application/json', ...headers } },
    );
  /** Returns the instance that serves each session. @returns {Promise<string[]>} */
  const placesOf = () =>
    Promise.all(
      sessions.map(async (session) => {
        const response = await post(session, greedy);
        assert.equal(response.status, 200);
        await response.text();
        return String(response.headers.get('x-instance'));
      }),
    );
  /** @param {string} session */
  async function openStream(session) {
    const response = await post(session, endless);
    assert.equal(response.status, 200);
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    const decoder = new TextDecoder();
    let events = decoder.decode((await reader.read()).value, { stream: true });
    return {
      place: String(response.headers.get('x-instance')),
      /** @param {number} chunks */
      async read(chunks) {
        while (events.split('\n\n').length <= chunks) {
          const { done, value } = await reader.read();
          if (done) break;
          events += decoder.decode(value, { stream: true });
        }
        return readEvents(events);
      },
      leave: () => reader.cancel(),
    };
  }

  test('a session is routed to its cached prefix by a header or its body', async () => {
    const places = await placesOf();
    assert.deepEqual([...new Set(places)].sort(), ['i1', 'i2']);
    assert.deepEqual(await placesOf(), places);
    let found = 0;
    for (const [index, session] of sessions.entries()) {
      const body = { ...greedy, prompt_cache_key: session };
      for (const [more, headers] of /** @type {[object, Record<string, string>][]} */ ([
        [{}, { 'x-session-id': session }],
        [{ prompt_cache_key: session }, {}],
      ])) {
        const response = await post(session, { ...body, ...more }, headers);
        assert.equal(response.headers.get('x-instance'), places[index]);
        const { usage } = /** @type {any} */ (await response.json());
        found += Number(usage.prompt_tokens_details.cached_tokens >= 16);
      }
    }
    assert.ok(found >= sessions.length * 2 * PREFIX_SHARE_MIN[kind], `${found}`);
    const salted = await Promise.all(
      sessions.flatMap((salt) => [salt, salt]).map((salt) => post(salt, { ...greedy, salt }, {})),
    );
    const met = salted.map(({ headers }) => headers.get('x-instance'));
    for (let i = 0; i < met.length; i += 2) assert.equal(met[i], met[i + 1]);
    assert.equal(new Set(met).size, 2);
    for (const response of salted) await response.text();
  });

  test('a drained instance finishes its requests, and its sessions return to it later', async () => {
    const places = await placesOf();
    const session = sessions[places.indexOf('i1')];
    const stream = await openStream(session);
    assert.equal(stream.place, 'i1');
    assert.equal(await fleet.command('set server wick/i1 state drain'), '');
    assert.deepEqual(new Set(await placesOf()), new Set(['i2']));
    const { chunks } = await stream.read(60);
    assert.ok(chunks.length >= 59, `${chunks.length}`);
    await stream.leave();
    assert.equal(await fleet.command('set server wick/i1 state ready'), '');
    assert.deepEqual(await placesOf(), places);
  });

  test('when an instance is killed, its streams end with an error and its sessions move', async () => {
    const places = await placesOf();
    const [here, there] = ['i1', 'i2'].map((name) => sessions[places.indexOf(name)]);
    const client = new OpenAI({
      ...{ baseURL: `${fleet.origin}/v1`, apiKey: 'none', maxRetries: 0 },
      defaultHeaders: { 'x-session-id': here },
    });
    const messages = /** @type {any} */ (questionOf(here));
    const body = /** @type {any} */ ({ model: 'any', messages, ...endless });
    const theirs = /** @type {any} */ (await client.chat.completions.create(body));
    const chunks = theirs[Symbol.asyncIterator]();
    await chunks.next();
    const cut = await openStream(here);
    const kept = await openStream(there);
    assert.deepEqual([cut.place, kept.place], ['i1', 'i2']);
    const whole = post(here, { ...endless, stream: false, max_tokens: 600 });
    await cut.read(8);
    await fleet.instances[0].close('SIGKILL');
    await assert.rejects(cut.read(3000), isCut);
    const drain = async () => {
      for (let next = await chunks.next(); !next.done; next = await chunks.next());
    };
    await assert.rejects(drain, isCut);
    const again = await whole;
    assert.deepEqual([again.status, again.headers.get('x-instance')], [200, 'i2']);
    const { usage } = /** @type {any} */ (await again.json());
    assert.equal(usage.completion_tokens, 600);
    assert.deepEqual(new Set(await placesOf()), new Set(['i2']));
    assert.equal((await kept.read(60)).isWhole, false);
    await kept.leave();
  });

  test('when an instance hangs, its streams and new requests end with an error', async (t) => {
    const { pid } = fleet.instances[1];
    const stream = await openStream(sessions[0]);
    assert.equal(stream.place, 'i2');
    process.kill(pid, 'SIGSTOP');
    t.after(() => process.kill(pid, 'SIGCONT'));
    await assert.rejects(stream.read(3000), isCut);
    const refused = await post(sessions[0], greedy);
    assert.equal(refused.status, 503);
    const { error } = /** @type {any} */ (await refused.json());
    assert.deepEqual([error.type, error.code], ['server_error', 'no_instance']);
  });
}
