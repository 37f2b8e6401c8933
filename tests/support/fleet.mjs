// Starts several instances of examples/workers, `wick serve` or `wasmtime serve`, with HAProxy as a
// load balancer (examples/fleet/haproxy.cfg).

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startWasmtime } from './component_servers.mjs';
import { startBucket, startNodeServer, startWorkerdAt } from './example_servers.mjs';
import { locate, root } from './locate.mjs';
import { modelPath, waitUntil } from './package.mjs';

/** @typedef {import('./example_servers.mjs').Started} Started */
/** @typedef {'workerd' | 'node' | 'wasmtime'} Kind */
/** @typedef {'hash' | 'roundrobin'} Routing */

/** @returns {Promise<number>} a port without a listener */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * @param {Kind} kind @param {number} count @param {string} model
 * @returns {Promise<{instances: Started[], closeMore: () => Promise<void>}>}
 */
async function startInstances(kind, count, model) {
  const each = Array.from({ length: count });
  if (kind !== 'workerd') {
    const start = () => (kind === 'node' ? startNodeServer(model) : startWasmtime('p3', { model }));
    return { instances: await Promise.all(each.map(start)), closeMore: async () => {} };
  }
  const bucket = await startBucket(model);
  const instances = await Promise.all(each.map(() => startWorkerdAt(bucket.origin)));
  return { instances, closeMore: bucket.close };
}

/** @param {string} path of HAProxy's socket @param {string} line @returns {Promise<string>} the response */
async function command(path, line) {
  const socket = connect(path);
  socket.end(`${line}\n`);
  let answer = '';
  for await (const bytes of socket) answer += bytes;
  return answer.trim();
}

/**
 * Starts HAProxy on a port that was free just before.
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<{origin: string, end: () => Promise<void>} | undefined>} undefined if it exited
 * immediately
 */
async function startProxy(env) {
  const address = `127.0.0.1:${await freePort()}`;
  const proxy = spawn(locate('haproxy').path, ['-db', '-f', 'examples/fleet/haproxy.cfg'], {
    ...{ cwd: root, stdio: 'ignore' },
    env: { ...process.env, ...env, FLEET_ADDRESS: address },
  });
  const exited = once(proxy, 'exit');
  const origin = `http://${address}`;
  const answers = () =>
    fetch(`${origin}/health`)
      .then(({ ok }) => ok)
      .catch(() => false);
  await waitUntil(async () => proxy.exitCode !== null || (await answers()), 'the fleet to respond');
  if (proxy.exitCode !== null) return undefined;
  const end = async () => {
    proxy.kill('SIGKILL');
    await exited;
  };
  return { origin, end };
}

/**
 * @param {{count: number, kind?: Kind, routing?: Routing, model?: string}} options
 */
export async function startFleet({ count, kind = 'workerd', routing = 'hash', model = modelPath }) {
  const folder = mkdtempSync(join(tmpdir(), 'wick-fleet-'));
  const path = join(folder, 'socket');
  const { instances, closeMore } = await startInstances(kind, count, model);
  const places = instances.map(({ origin }, i) => [`INSTANCE_${i + 1}`, new URL(origin).host]);
  const env = {
    ...{ FLEET_SOCKET: path, FLEET_ROUTING: routing },
    ...Object.fromEntries(places),
  };
  // another program may have taken the port
  const proxy = (await startProxy(env)) ?? (await startProxy(env)) ?? (await startProxy(env));
  if (!proxy) throw new Error('HAProxy did not start');
  return {
    ...{ origin: proxy.origin, instances },
    /** @param {string} line of HAProxy's runtime interface */
    command: (line) => command(path, line),
    async close() {
      await proxy.end();
      await Promise.all(instances.map(({ close }) => close()));
      await closeMore();
      rmSync(folder, { recursive: true });
    },
  };
}
