// Several instances of examples/workers or of `wick serve` behind HAProxy, by examples/fleet/haproxy.cfg.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startBucket, startNodeServer, startWorkerdAt } from './example_servers.mjs';
import { locate, root } from './locate.mjs';
import { modelPath, waitUntil } from './package.mjs';

/** @typedef {import('./example_servers.mjs').Started} Started */
/** @typedef {'workerd' | 'node'} Kind */
/** @typedef {'hash' | 'roundrobin'} Routing */

/** @returns {Promise<number>} a port that nobody listens at */
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
  if (kind === 'node') {
    const instances = await Promise.all(each.map(() => startNodeServer(model)));
    return { instances, closeMore: async () => {} };
  }
  const bucket = await startBucket(model);
  const instances = await Promise.all(each.map(() => startWorkerdAt(bucket.origin)));
  return { instances, closeMore: bucket.close };
}

/** @param {string} path of HAProxy's socket @param {string} line @returns {Promise<string>} its answer */
async function command(path, line) {
  const socket = connect(path);
  socket.end(`${line}\n`);
  let answer = '';
  for await (const bytes of socket) answer += bytes;
  return answer.trim();
}

/**
 * @param {{count: number, kind?: Kind, routing?: Routing, model?: string}} options
 */
export async function startFleet({ count, kind = 'workerd', routing = 'hash', model = modelPath }) {
  const folder = mkdtempSync(join(tmpdir(), 'wick-fleet-'));
  const path = join(folder, 'socket');
  const { instances, closeMore } = await startInstances(kind, count, model);
  const address = `127.0.0.1:${await freePort()}`;
  const env = { FLEET_ADDRESS: address, FLEET_SOCKET: path, FLEET_ROUTING: routing };
  const places = instances.map(({ origin }, i) => [`INSTANCE_${i + 1}`, new URL(origin).host]);
  const proxy = spawn(locate('haproxy').path, ['-db', '-f', 'examples/fleet/haproxy.cfg'], {
    ...{ cwd: root, stdio: ['ignore', 'ignore', 'pipe'] },
    env: { ...process.env, ...env, ...Object.fromEntries(places) },
  });
  let output = '';
  proxy.stderr?.on('data', (bytes) => {
    output += bytes;
  });
  const origin = `http://${address}`;
  const answers = () =>
    fetch(`${origin}/health`)
      .then(({ ok }) => ok)
      .catch(() => false);
  const exited = once(proxy, 'exit');
  await waitUntil(() => {
    if (proxy.exitCode !== null) throw new Error(`HAProxy did not start: ${output}`);
    return answers();
  }, 'the fleet');
  return {
    ...{ origin, instances },
    /** @param {string} line of HAProxy's runtime interface */
    command: (line) => command(path, line),
    async close() {
      proxy.kill('SIGKILL');
      await exited;
      await Promise.all(instances.map(({ close }) => close()));
      await closeMore();
      rmSync(folder, { recursive: true });
    },
  };
}
