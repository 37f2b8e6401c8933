// A component in operation: when it loads its model, its output on stderr, and the counters of /metrics.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startWasmtime } from '../support/component_servers.mjs';
import { ask, readEvents } from '../support/example_servers.mjs';
import { built, locate, root } from '../support/locate.mjs';
import { modelPath, temporaryFolder, waitUntil } from '../support/package.mjs';
import { serveRanges } from '../support/range_server.mjs';

const skip = locate('wasmtimeCommand').skip;
const CHAT = '/v1/chat/completions';
const COMPLETIONS = '/v1/completions';
const prompt = { prompt: 'Once upon a', temperature: 0, max_tokens: 8 };
const messages = [{ role: 'user', content: 'Tell me a story about a fox.' }];
const names = ['p2', 'p3'];

/** The documented flags that keep instances alive, so that the model stays loaded. */
const kept = ['--idle-instance-timeout', '3600s', '--max-instance-reuse-count', '1000000'];

/** @typedef {import('../support/example_servers.mjs').Started} Started */

/** @type {Awaited<ReturnType<typeof serveRanges>>} */
let models;
before(async () => {
  models = await serveRanges(readFileSync(modelPath), '/fox-1m.gguf?key=secret');
});
after(() => models.close());

/** @param {import('node:test').TestContext} t @param {string} name @param {string[]} [args] @param {string[]} [flags] */
async function startWithUrl(t, name, args = [], flags = kept) {
  const component = built(`edge/wick-${name}.wasm`);
  const env = ['--env', `WICK_MODEL_URL=${models.url}`];
  Object.assign(models.asked, { first: 0, any: 0 });
  const server = await startWasmtime(name, { component, args: [...env, ...args], flags });
  t.after(() => server.close());
  return server;
}

/** @param {Started} server @param {string} event @param {number} [count] @returns {Promise<any[]>} its lines on stderr */
async function linesOf(server, event, count = 1) {
  const found = () =>
    server
      .output()
      .split('\n')
      .flatMap((line) => /\{"time".*\}$/.exec(line)?.[0] ?? [])
      .map((line) => JSON.parse(line))
      .filter((line) => line['event.name'] === event);
  await waitUntil(() => found().length >= count, `${count} lines of ${event}`);
  return found();
}

const pause = (/** @type {number} */ ms) => new Promise((settle) => setTimeout(settle, ms));

/** @param {string} page @returns {Map<string, number>} values by name and labels */
const samplesOf = (page) =>
  new Map(
    page
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  );

for (const name of names) {
  describe(`operation of ${name}`, { skip }, () => {
    test('health, models and metrics do not load the model', async (t) => {
      const server = await startWithUrl(t, name, [], []);
      const get = async (/** @type {string} */ path) => fetch(`${server.origin}${path}`);
      for (const path of ['/health', '/v1/models', '/v1/models/fox-1m', '/metrics', '/nothing']) {
        assert.equal((await get(path)).status, path === '/nothing' ? 404 : 200, path);
      }
      assert.equal((await (await get('/v1/models')).json()).data[0].id, 'fox-1m');
      assert.equal((await ask(server.origin, CHAT, 'x', { method: 'PUT' })).status, 405);
      const headers = { 'content-type': 'text/plain' };
      assert.equal((await ask(server.origin, CHAT, 'x', { headers })).status, 415);
      assert.equal(models.asked.any, 0);
    });

    test('a reused instance loads the model once and logs it', async (t) => {
      const server = await startWithUrl(t, name, ['--no-logging-prefix']);
      for (let round = 0; round < 2; round++) {
        const answer = await (await ask(server.origin, COMPLETIONS, prompt)).json();
        assert.equal(answer.model, 'fox-1m');
        await pause(600); // wait until the instance is free, because a request without a free instance starts another one
        assert.equal((await fetch(`${server.origin}/health`)).status, 200);
        await pause(1200); // longer than wasmtime keeps an idle instance by default
      }
      assert.equal(models.asked.first, 1);
      const [loaded, ...more] = await linesOf(server, 'wick.model.loaded');
      assert.deepEqual(more, []);
      assert.equal(loaded.level, 'warn');
      assert.equal(loaded['wick.model.source'], models.url.replace(/\?.*/, ''));
      assert.match(loaded.message, /--idle-instance-timeout/);
    });

    test('each instance that loads the model again writes a warning', async (t) => {
      const server = await startWithUrl(t, name, [], ['--max-instance-reuse-count', '1']);
      for (let round = 0; round < 2; round++) await ask(server.origin, COMPLETIONS, prompt);
      assert.equal(models.asked.first, 2);
      const lines = await linesOf(server, 'wick.model.loaded', 2);
      assert.notEqual(lines[0]['service.instance.id'], lines[1]['service.instance.id']);
    });

    test('a failed model load is logged on stderr', async (t) => {
      const model = `${temporaryFolder()}/missing.gguf`;
      const server = await startWasmtime(name, { model, flags: kept });
      t.after(() => server.close());
      assert.equal((await fetch(`${server.origin}/health`)).status, 200);
      assert.equal((await ask(server.origin, CHAT, { messages })).status, 503);
      const [failed] = await linesOf(server, 'wick.model.failed');
      assert.equal(failed.level, 'error');
      assert.match(failed['error.message'], /cannot open .*missing\.gguf/);
      if (name === 'p3') assert.equal((await fetch(`${server.origin}/health`)).status, 503);
    });

    test('each request is logged as a JSON line whose token counts match the metrics', async (t) => {
      const server = await startWasmtime(name, { flags: kept });
      t.after(() => server.close());
      const usages = [];
      const stream_options = { include_usage: true };
      for (const [path, body] of /** @type {[string, object][]} */ ([
        [CHAT, { messages, temperature: 0, max_tokens: 12, n: 2 }],
        [COMPLETIONS, { ...prompt, stream: true, stream_options }],
        [COMPLETIONS, { ...prompt, stream: true }],
        ['/v1/responses', { input: 'A fox', temperature: 0, max_output_tokens: 16 }],
      ])) {
        const text = await (await ask(server.origin, path, body)).text();
        const isStream = text.startsWith('data:');
        usages.push(isStream ? readEvents(text).chunks.at(-1).usage : JSON.parse(text).usage);
      }
      assert.equal((await ask(server.origin, CHAT, { messages: 1 })).status, 400);
      await fetch(`${server.origin}/health`);
      const page = await (await fetch(`${server.origin}/metrics`)).text();
      const lines = await linesOf(server, 'http.request', 7);
      const of = (/** @type {string} */ path, status = 200) =>
        lines.filter(
          (line) => line['http.route'] === path && line['http.response.status_code'] === status,
        );
      const [[chat], [streamed, silent], [response]] = [
        of(CHAT),
        of(COMPLETIONS),
        of('/v1/responses'),
      ];
      const [[refused], [health], [metrics]] = [of(CHAT, 400), of('/health'), of('/metrics')];
      const tokensOf = (/** @type {any} */ line) => [
        line['gen_ai.usage.input_tokens'],
        line['gen_ai.usage.output_tokens'],
      ];
      for (const [line, usage] of [
        [chat, usages[0]],
        [streamed, usages[1]],
        [silent, usages[1]],
      ]) {
        assert.deepEqual(tokensOf(line), [usage.prompt_tokens, usage.completion_tokens]);
        const total = line['http.server.request.duration'];
        const first = line['gen_ai.server.time_to_first_token'];
        assert.ok(first > 0 && first <= total && total < 60, JSON.stringify(line));
      }
      assert.deepEqual(tokensOf(response), [usages[3].input_tokens, usages[3].output_tokens]);
      assert.deepEqual(chat['gen_ai.response.finish_reasons'], ['length', 'length']);
      assert.equal(chat['gen_ai.operation.name'], 'chat');
      assert.equal(streamed['gen_ai.operation.name'], 'text_completion');
      assert.equal(refused['error.type'], 'invalid_value');
      assert.equal(health['gen_ai.operation.name'], undefined);
      assert.match(chat.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

      // the host may have started several instances; each counts its own requests
      const samples = samplesOf(page);
      const instance = metrics['service.instance.id'];
      const label = `wick_instance="${instance}"`;
      for (const sample of samples.keys()) assert.ok(sample.includes(`{${label}`), sample);
      const own = lines.filter((line) => line['service.instance.id'] === instance);
      const countOf = (/** @type {any[]} */ list) =>
        list.filter((line) => own.includes(line)).length;
      const responses = `wick_http_responses_total{${label},route="${COMPLETIONS}",status="200"}`;
      assert.equal(samples.get(responses) ?? 0, countOf(of(COMPLETIONS)));
      const duration = 'gen_ai_server_request_duration_seconds_count';
      const chats = `${duration}{${label},gen_ai_operation_name="chat",route="${CHAT}"}`;
      assert.equal(samples.get(chats), countOf(of(CHAT)));
      const written = own.reduce((sum, line) => sum + (tokensOf(line)[1] ?? 0), 0);
      assert.equal(samples.get(`wick_tokens_total{${label},kind="out"}`) ?? 0, written);
      const loads = samples.get(`wick_model_loads_total{${label}}`) ?? 0;
      // the rejected request may have loaded the model as well
      assert.ok(
        loads >= Number(written > 0) && loads <= Number(own.includes(refused) || written > 0),
      );
    });

    test('a disconnected client is logged with the tokens it received', async (t) => {
      const server = await startWasmtime(name, { flags: kept });
      t.after(() => server.close());
      const leaves = new AbortController();
      const body = { messages, temperature: 0, max_tokens: 3000, stream: true };
      const response = await ask(server.origin, CHAT, body, { signal: leaves.signal });
      const reader = /** @type {ReadableStream} */ (response.body).getReader();
      await reader.read();
      await reader.read();
      leaves.abort();
      const [line] = await linesOf(server, 'http.request');
      assert.equal(line['error.type'], 'client_gone');
      assert.deepEqual(line['gen_ai.response.finish_reasons'], ['abort']);
      assert.ok(line['gen_ai.usage.output_tokens'] > 0);
    });

    test('bodies that do not arrive time out and do not block other clients', async (t) => {
      const args = ['--env', 'WICK_BODY_TIMEOUT_MS=700', '--env', 'WICK_KEYS=one'];
      const server = await startWasmtime(name, {
        args,
        flags: [...kept, '--max-concurrent-requests', '2'],
      });
      t.after(() => server.close());
      const { hostname, port } = new URL(server.origin);
      const idle = ['one', 'one', 'wrong'].map(async (key) => {
        const socket = connect(Number(port), hostname);
        t.after(() => socket.destroy());
        const length = 'Content-Type: application/json\r\nContent-Length: 1000\r\n';
        socket.write(`POST ${CHAT} HTTP/1.1\r\nHost: a\r\nX-Api-Key: ${key}\r\n${length}\r\n{`);
        let text = '';
        for await (const piece of socket) {
          text += piece;
          if (/"code":"\w+"\}\}/.test(text)) break;
        }
        return [/^HTTP\/1.1 (\d+)/.exec(text)?.[1], /"code":"(\w+)"/.exec(text)?.[1]];
      });
      const headers = { 'content-type': 'application/json', 'x-api-key': 'one' };
      const signal = AbortSignal.timeout(60_000); // without a time limit for bodies, the request is never answered
      const answer = await ask(server.origin, COMPLETIONS, prompt, { headers, signal });
      assert.equal(answer.status, 200);
      assert.deepEqual(await Promise.all(idle), [
        ['408', 'body_timeout'],
        ['408', 'body_timeout'],
        ['401', 'invalid_api_key'],
      ]);
    });

    test('a stream has comment lines during prefill', async (t) => {
      const server = await startWasmtime(name, { args: ['--env', 'WICK_SILENCE_MS=1'] });
      t.after(() => server.close());
      const long = [{ role: 'user', content: 'The fox ran over the hill. '.repeat(240) }];
      const body = { messages: long, temperature: 0, max_tokens: 4, stream: true };
      const events = (await (await ask(server.origin, CHAT, body)).text()).split('\n\n');
      const comments = events.filter((event) => event === ': waiting').length;
      assert.ok(comments >= 16, `${comments} in many passes over the prompt`);
      assert.match(events[0], /"role":"assistant"/);
      assert.deepEqual(events.slice(1, 1 + comments), Array(comments).fill(': waiting'));
      assert.equal(events.at(-2), 'data: [DONE]');
    });

    test('WICK_LOG=0 turns off request logs; an invalid value is rejected, an unknown name reported', async (t) => {
      const args = ['WICK_LOG=0', 'WICK_KEY=one', 'OTHER=1'].flatMap((one) => ['--env', one]);
      const server = await startWasmtime(name, { args });
      t.after(() => server.close());
      await (await ask(server.origin, COMPLETIONS, prompt)).text();
      await linesOf(server, 'wick.model.loaded');
      assert.doesNotMatch(server.output(), /http\.request/);
      const unknown = await linesOf(server, 'wick.settings.unknown');
      assert.deepEqual(
        unknown.map((line) => [line.level, line['wick.settings.variable']]),
        [['warn', 'WICK_KEY']],
      );
      for (const wrong of [
        'WICK_LOG=yes',
        'WICK_CONTEXT_TOKENS=many',
        'WICK_MODEL_URL=ftp://a/b',
      ]) {
        const other = await startWasmtime(name, { args: ['--env', wrong] });
        t.after(() => other.close());
        const response = await fetch(`${other.origin}/health`);
        assert.equal(response.status, 500);
        assert.match(await response.text(), new RegExp(wrong.replace(/=.*/, '')));
      }
    });
  });
}

test('the documented wasmtime serve commands keep instances alive', () => {
  const commands = ['docs/components.md', 'examples/fleet/README.md', 'docs/deploy.md'].flatMap(
    (path) =>
      readFileSync(`${root}/${path}`, 'utf8')
        .replaceAll(/ \\\n\s*/g, ' ')
        .split('\n')
        .filter((line) => /^\s*wasmtime serve /.test(line)),
  );
  assert.ok(commands.length > 0);
  for (const command of commands) {
    assert.match(command, /--idle-instance-timeout \d{3,}s/, command);
    assert.match(command, /--max-instance-reuse-count \d{5,}/, command);
  }
});

test('no variable that a component reads is reported as unknown', () => {
  const read = (/** @type {string} */ name) => readFileSync(join(root, 'component', name), 'utf8');
  /** @param {string} name @returns {string[]} */
  const namesIn = (name) => read(name).match(/"WICK_[A-Z_]+"/g) ?? [];
  const sources = readdirSync(join(root, 'component')).filter((name) => /\.[ch]$/.test(name));
  const used = sources.filter((name) => name !== 'settings.c').flatMap(namesIn);
  assert.ok(used.length > 10, `${used}`);
  for (const name of used) assert.ok(namesIn('settings.c').includes(name), name);
});
