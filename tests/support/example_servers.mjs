// Starts the servers in examples/, each in its runtime, and sends requests to them.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { locate, root } from './locate.mjs';
import { modelPath } from './package.mjs';

const config = resolve(root, 'examples/workers/workerd.capnp');
const example = (/** @type {string} */ path) => resolve(root, 'examples', path);

/**
 * @typedef {object} Started
 * @property {string} origin
 * @property {number} pid
 * @property {() => string} output
 * @property {(signal?: NodeJS.Signals) => Promise<void>} close
 */

/**
 * @param {string} program
 * @param {string[]} args
 * @param {(line: string) => string | undefined} originOf
 * @param {NodeJS.ProcessEnv} [env]
 * @param {boolean} [hasChildren] whether it has child processes, which are closed with it
 * @returns {Promise<Started>}
 */
export async function startServer(program, args, originOf, env, hasChildren = false) {
  // workerd writes its port to file descriptor 3, the others print it
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
    cwd: root,
    detached: hasChildren,
  });
  let output = '';
  /** @type {string | undefined} */
  let origin;
  for (const stream of child.stdio.slice(1)) {
    const lines = createInterface(/** @type {any} */ (stream));
    lines.on('line', (line) => {
      output += `${line}\n`;
      origin ??= originOf(line);
      if (origin) child.emit('listening');
    });
  }
  const exited = once(child, 'exit');
  await Promise.race([once(child, 'listening'), exited]);
  if (origin === undefined) throw new Error(`${program} did not start: ${output}`);
  return {
    ...{ origin, pid: Number(child.pid), output: () => output },
    async close(signal) {
      if (hasChildren) process.kill(-Number(child.pid), signal);
      else child.kill(signal);
      await exited;
    },
  };
}

/** @param {string} line */
const printedOrigin = (line) => /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];

/**
 * @param {string} program
 * @param {string[]} args
 * @returns {Promise<Started>} a server that prints its URL
 */
export const startPrinting = (program, args) => startServer(program, args, printedOrigin);

/** @param {string} configuration @param {string[]} [args] @param {NodeJS.ProcessEnv} [env] @returns {Promise<Started>} */
export const startWorkerdAlone = (configuration, args = [], env = {}) =>
  startServer(
    locate('workerd').path,
    ['serve', configuration, '--socket-addr=http=127.0.0.1:0', '--control-fd=3', ...args],
    (line) => {
      const { event, port } = line.startsWith('{"event"') ? JSON.parse(line) : {};
      return event === 'listen' ? `http://127.0.0.1:${port}` : undefined;
    },
    env,
  );

/** @param {string} model @returns {Promise<Started>} a replacement for R2 */
export const startBucket = (model) =>
  startServer(process.execPath, [example('workers/local_bucket.mjs'), model, '0'], printedOrigin, {
    VERBOSE: '1',
  });

/**
 * @param {string} bucket the origin of the bucket
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<Started>} examples/workers
 */
export const startWorkerdAt = (bucket, env) =>
  startWorkerdAlone(config, [`--external-addr=bucket=${new URL(bucket).host}`], env);

/** @param {string} model @returns {Promise<Started>} `wick serve` with one thread */
export const startNodeServer = (model) =>
  startServer(
    process.execPath,
    [resolve(root, 'dist/cli.js'), 'serve', model, '--port', '0', '--threads', '1'],
    printedOrigin,
  );

/** @param {string} model @param {NodeJS.ProcessEnv} [env] @returns {Promise<Started>} workerd with its bucket */
export async function startWorkerd(model, env) {
  const bucket = await startBucket(model);
  const server = await startWorkerdAt(bucket.origin, env);
  return {
    ...server,
    output: () => bucket.output() + server.output(),
    async close() {
      await server.close();
      await bucket.close();
    },
  };
}

/**
 * @typedef {object} ExampleServer
 * @property {string | false} skip
 * @property {number} queueLimit
 * @property {boolean} hearsAtOnce whether it detects immediately that a client has disconnected;
 * workerd detects it only when it writes
 * @property {(model?: string) => Promise<Started>} start
 */

/** @type {Record<string, ExampleServer>} */
export const exampleServers = {
  'examples/workers in workerd': {
    skip: locate('workerd').skip,
    queueLimit: 16,
    hearsAtOnce: false,
    start: (model = modelPath) => startWorkerd(model),
  },
  'examples/deno in Deno': {
    skip: locate('deno').skip,
    queueLimit: 32,
    hearsAtOnce: true,
    start: (model = modelPath) =>
      startServer(
        locate('deno').path,
        ['run', '--quiet', '-A', example('deno/serve.mjs'), model, '0'],
        printedOrigin,
      ),
  },
  'examples/bun in Bun': {
    skip: locate('bun').skip,
    queueLimit: 32,
    hearsAtOnce: true,
    start: (model = modelPath) =>
      startServer(locate('bun').path, [example('bun/serve.mjs'), model, '0'], printedOrigin),
  },
  'examples/node-server in Node': {
    skip: false,
    queueLimit: 32,
    hearsAtOnce: true,
    start: (model = modelPath) =>
      startServer(process.execPath, [example('node-server/serve.mjs'), model, '0'], printedOrigin),
  },
};

/**
 * Starts a worker with one source file in workerd.
 * @param {string} name its folder in build/test
 * @param {string} source the content of worker.js
 * @param {string} [modules] more modules, in the syntax of its configuration
 */
export function startWorkerOf(name, source, modules = '') {
  const work = resolve(root, 'build/test', name);
  mkdirSync(work, { recursive: true });
  writeFileSync(resolve(work, 'worker.js'), source);
  const text = `using Workerd = import "/workerd/workerd.capnp";
    const config :Workerd.Config = (services = [(name = "main", worker = .it)],
      v8Flags = ["--max-heap-size=20"],
      sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")]);
    const it :Workerd.Worker = (compatibilityDate = "2026-11-01", modules = [
      (name = "worker.js", esModule = embed "worker.js")${modules}]);`;
  writeFileSync(resolve(work, 'config.capnp'), text);
  return startWorkerdAlone(resolve(work, 'config.capnp'));
}

/**
 * @param {number} pid
 * @returns {{nowKb: number, peakKb: number, ownKb: number}} resident memory of a process:
 * current, peak, and current without mapped files such as its program
 */
export function residentOf(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const of = (/** @type {string} */ name) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]);
  return { nowKb: of('VmRSS'), peakKb: of('VmHWM'), ownKb: of('RssAnon') };
}

/** @param {string} origin @param {string} path @param {unknown} body a string is sent unchanged @param {RequestInit} [init] */
export const ask = (origin, path, body, init) =>
  fetch(`${origin}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
  });

/**
 * @param {string} events
 * @returns {{text: string, isWhole: boolean, chunks: any[]}} the events of a stream, which may be
 * truncated
 */
export function readEvents(events) {
  const whole = events.split('\n\n').slice(0, -1);
  const isWhole = whole.at(-1) === 'data: [DONE]';
  const chunks = whole.slice(0, isWhole ? -1 : undefined).map((one) => JSON.parse(one.slice(6)));
  const text = chunks
    .map(({ choices: [choice] }) => choice?.delta?.content ?? choice?.text ?? '')
    .join('');
  return { text, isWhole, chunks };
}
