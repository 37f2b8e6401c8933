// Runs the server as an operator would who knows only the documentation: with the commands in
// docs/components.md and a model's URL. A client sends requests with pauses of 5 s; then 40 clients
// send requests at the same time. Prints the number of model downloads, the memory next to the
// documented limit, and whether the log and /metrics agree with the clients' counts. Fails if they
// do not agree.
//   node tools/bench/operator_run.mjs [--seconds 600] [--pause 5] [--clients 40] [--model smollm2-135m:q4_0] [--context 512]

import { readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readEvents, residentOf, startServer } from '../../tests/support/example_servers.mjs';
import { locate, root } from '../../tests/support/locate.mjs';
import { sleep, waitUntil } from '../../tests/support/package.mjs';
import { serveRanges } from '../../tests/support/range_server.mjs';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { modelFile } from './models.mjs';

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    pause: { type: 'string', default: '5' },
    clients: { type: 'string', default: '40' },
    model: { type: 'string', default: 'smollm2-135m:q4_0' },
    context: { type: 'string', default: '512' },
  },
});
const [seconds, pause, clients] = [options.seconds, options.pause, options.clients].map(Number);
const model = modelFile(options.model);
const page = readFileSync(resolve(root, 'docs/components.md'), 'utf8');

const COMPLETIONS = '/v1/completions';
const CHAT = '/v1/chat/completions';
const TOKENS = 16;

/** @param {string} name p2 or p3 @returns {string[]} the arguments of the documented command that takes a model URL */
function documentedArguments(name) {
  const command = page
    .replaceAll(/ \\\n\s*/g, ' ')
    .split('\n')
    .find(
      (line) => line.startsWith('wasmtime serve ') && line.endsWith(`build/edge/wick-${name}.wasm`),
    );
  const words = command?.split(' ').slice(1) ?? [];
  if (!words.includes('WICK_MODEL_URL=$URL'))
    throw new Error(`docs/components.md has no command for ${name}`);
  return words;
}

/** @param {string} text @param {RegExp} pattern @returns {number} */
function numberIn(text, pattern) {
  const found = pattern.exec(text.replaceAll(/\s+/g, ' '));
  if (!found) throw new Error(`docs/components.md does not match ${pattern}`);
  return Number(found[1]);
}

/** @param {string} events of a stream, which may have comments while it waits */
const withoutComments = (events) => events.replaceAll(/^:.*\n\n/gm, '');

/** @typedef {{route: string, status: number, read: number, written: number}} Counted */

/** Counts the responses that the clients of a server receive. */
class Clients {
  /** @type {Counted[]} */
  counted = [];

  /** @param {string} origin */
  constructor(origin) {
    this.origin = origin;
  }

  /** @param {string} route @param {object} [body] @param {(text: string) => any} [usageOf] */
  async request(route, body, usageOf = (text) => JSON.parse(text).usage) {
    const headers = { 'content-type': 'application/json' };
    const init = body ? { method: 'POST', headers, body: JSON.stringify(body) } : {};
    const response = await fetch(this.origin + route, init);
    const text = await response.text();
    const usage = body && response.ok ? usageOf(text) : {};
    const { prompt_tokens: read = 0, completion_tokens: written = 0 } = usage;
    this.counted.push({ route, status: response.status, read, written });
    return text;
  }

  /**
   * Sends requests one after the other: one without streaming, one with streaming, an invalid one, and
   * two that need no model.
   * @param {number} turn
   */
  ask(turn) {
    const common = { temperature: 0, max_tokens: TOKENS, logit_bias: { 0: -100, 2: -100 } };
    const whole = { ...common, prompt: `Day ${turn}: once upon a` };
    const streamed = { ...whole, stream: true, stream_options: { include_usage: true } };
    const requests = [
      () => this.request(COMPLETIONS, whole),
      () =>
        this.request(
          COMPLETIONS,
          streamed,
          (text) => readEvents(withoutComments(text)).chunks.at(-1).usage,
        ),
      () => this.request(CHAT, { messages: turn }),
      () => this.request('/health'),
      () => this.request('/v1/models'),
    ];
    return requests[turn % requests.length]();
  }
}

/** @param {{route: string, status: number, read: number, written: number}[]} list */
function sumsOf(list) {
  /** @type {Record<string, number>} */
  const sums = {};
  for (const { route, status, read, written } of list) {
    sums[`${route} ${status}`] = (sums[`${route} ${status}`] ?? 0) + 1;
    sums.read = (sums.read ?? 0) + read;
    sums.written = (sums.written ?? 0) + written;
  }
  return JSON.stringify(Object.entries(sums).sort());
}

/** @param {string} output @param {string} event */
const linesOf = (output, event) =>
  output
    .split('\n')
    .filter((line) => line.startsWith('{"time"'))
    .map((line) => JSON.parse(line))
    .filter((line) => line['event.name'] === event);

/** @param {any} line @returns {Counted} */
const countedOf = (line) => ({
  route: line['http.route'],
  status: line['http.response.status_code'],
  read: line['gen_ai.usage.input_tokens'] ?? 0,
  written: line['gen_ai.usage.output_tokens'] ?? 0,
});

/**
 * Returns whether the output of /metrics agrees with the log of the instance that served it.
 * @param {string} metrics @param {any[]} lines
 */
function isInMetrics(metrics, lines) {
  const instance = /wick_instance="([^"]+)"/.exec(metrics)?.[1];
  const own = lines.filter((line) => line['service.instance.id'] === instance).map(countedOf);
  const sampled = (/** @type {string} */ name, /** @type {string} */ labels) =>
    Number(
      metrics.split(`${name}{wick_instance="${instance}",${labels}} `)[1]?.split('\n')[0] ?? 0,
    );
  const count = (/** @type {string} */ route, /** @type {number} */ status) =>
    own.filter((one) => one.route === route && one.status === status).length;
  const isSame = ([route, status] = ['', 0]) =>
    sampled('wick_http_responses_total', `route="${route}",status="${status}"`) ===
    count(`${route}`, Number(status));
  return (
    [
      [COMPLETIONS, 200],
      [CHAT, 400],
      ['/health', 200],
    ].every((one) => isSame(/** @type {any} */ (one))) &&
    sampled('wick_tokens_total', 'kind="out"') === own.reduce((sum, one) => sum + one.written, 0)
  );
}

/** @type {string[]} */
const problems = [];
/** @param {string} name @param {boolean} isRight @param {string} words */
function check(name, isRight, words) {
  console.log(`${name}: ${words}: ${isRight ? 'yes' : 'NO'}`);
  if (!isRight) problems.push(`${name}: ${words}`);
}

/** @param {string} name */
async function start(name) {
  const models = await serveRanges(readFileSync(model), `/${basename(model)}`);
  const args = documentedArguments(name).map((word) => word.replace('$URL', models.url));
  const more = ['--env', `WICK_CONTEXT_TOKENS=${options.context}`, '--addr', '127.0.0.1:0'];
  const server = await startServer(
    locate('wasmtimeCommand').path,
    [...args.slice(0, -1), ...more, String(args.at(-1))],
    (line) => /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0],
  );
  const limit = Number(args[args.indexOf('--max-concurrent-requests') + 1]);
  const instancesMax = name === 'p3' ? limit : Infinity; // docs/components.md: 0.2 has no limit
  return { name, server, models, instancesMax, seen: new Clients(server.origin) };
}
/** @typedef {Awaited<ReturnType<typeof start>>} Operated */

/** @param {Operated} one */
async function pace({ name, models, seen }) {
  for (const route of ['/health', '/v1/models', '/metrics']) await seen.request(route);
  check(name, models.asked.any === 0, '/health, /v1/models and /metrics do not load a model');
  let turn = 0;
  for (const end = Date.now() + seconds * 1000; Date.now() < end; turn++) {
    await seen.ask(turn);
    await sleep(pause * 1000);
  }
  const downloads = models.asked.first;
  check(
    name,
    downloads === 1,
    `${turn} requests with pauses of ${pause} s: downloads: ${downloads}`,
  );
}

/** @param {Operated} one */
async function crowd({ name, server, instancesMax, seen }) {
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let turn = 0; turn < 2; turn++) await seen.ask(client * 5 + turn);
    }),
  );
  const loads = linesOf(server.output(), 'wick.model.loaded').length;
  const capMib = hostMib + instancesMax * instanceMib;
  const peakMib = Math.round(residentOf(server.pid).peakKb / 1024);
  const words = `${clients} clients at once, ${loads} instances: ${peakMib} MiB, limit is ${capMib === Infinity ? 'set by the container' : capMib}`;
  check(name, peakMib <= capMib && loads <= instancesMax, words);
}

/** @param {Operated} one */
async function compare({ name, server, models, seen }) {
  const metrics = await seen.request('/metrics');
  const written = () => linesOf(server.output(), 'http.request');
  const { counted } = seen;
  await waitUntil(() => written().length >= counted.length, 'log lines of all requests');
  const lines = written();
  const isLogged = sumsOf(lines.map(countedOf)) === sumsOf(counted);
  const tokens = counted.reduce((sum, { read, written: out }) => sum + read + out, 0);
  check(
    name,
    isLogged,
    `the log has ${counted.length} requests and ${tokens} tokens of the clients`,
  );
  check(name, isInMetrics(metrics, lines), 'the metrics of an instance agree with its log lines');
  const loads = linesOf(server.output(), 'wick.model.loaded').length;
  const downloads = models.asked.first; // on a busy machine, a download may be repeated
  const words = `downloads: ${downloads}, log lines about a loaded model: ${loads}`;
  check(name, loads > 0 && loads <= downloads, words);
}

console.log(`${environmentLine(describeEnvironment())}, ${basename(model)}\n`);
const hostMib = numberIn(page, /(\d+) MiB for the host/);
const instanceMib = numberIn(page, /\((\d+) MiB for the first model/);
const operated = await Promise.all(['p3', 'p2'].map(start));
try {
  await Promise.all(operated.map(pace));
  for (const one of operated) {
    await crowd(one);
    await compare(one);
  }
} finally {
  for (const { server, models } of operated) {
    await server.close();
    models.close();
  }
}
console.log(problems.length === 0 ? '\nall as documented' : `\n${problems.length} checks failed`);
process.exitCode = problems.length === 0 ? 0 : 1;
