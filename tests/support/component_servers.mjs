// Starts the components built by `make edge` in their servers.

import { once } from 'node:events';
import { createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { startServer } from './example_servers.mjs';
import { built, locate } from './locate.mjs';
import { modelPath } from './package.mjs';
import { run } from './process.mjs';

/** @typedef {import('./example_servers.mjs').Started} Started */

/** @param {string} line */
const printedOrigin = (line) => /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];

/** @type {Record<string, string[]>} options of `wasmtime serve` for each component */
const hostFlags = {
  p2: ['-Scli'],
  p3: ['-Scli', '-Sp3', '-Wcomponent-model-async'],
};
/** Flags to handle all requests in one instance, if the component supports it. */
const reuse = [
  ...['--idle-instance-timeout', '600s', '--max-instance-reuse-count', '100000'],
  ...['--max-instance-concurrent-reuse-count', '256'],
];
/** @param {string} name @param {boolean} isReused @returns {string[]} */
const instancesOf = (name, isReused) => {
  if (!isReused) return ['--max-instance-reuse-count', '1'];
  return name === 'p3' ? reuse : [];
};

/** @param {string} model */
const folderOf = (model) => [
  ...['--dir', `${dirname(model)}::/models`],
  ...['--env', `WICK_MODEL=/models/${basename(model)}`],
];

/**
 * Starts `wasmtime serve`, with the model in a preopened directory or in the component.
 * @param {string} name p2 or p3
 * @param {{args?: string[], model?: string, component?: string, isReused?: boolean, flags?: string[]}} [options]
 *   `args`: arguments of the command; `component`: a component with its model, used instead of the
 *   built one; `isReused` false: one instance per request; `flags`: used instead of the flags that
 *   keep one instance
 * @returns {Promise<Started>}
 */
export function startWasmtime(name, options = {}) {
  const { args = [], model = modelPath, component, isReused = true } = options;
  const { flags = instancesOf(name, isReused) } = options;
  const program = component ? [component] : [...folderOf(model), built(`edge/wick-${name}.wasm`)];
  return startServer(
    locate('wasmtimeCommand').path,
    [...['serve', ...hostFlags[name], ...flags], ...['--addr', '127.0.0.1:0', ...args, ...program]],
    printedOrigin,
  );
}

/**
 * @param {string} name p2 or p3
 * @param {string} folder for the component
 * @param {string} [model]
 * @returns {Promise<string>} the component with an embedded model
 */
export async function embedModel(name, folder, model = modelPath) {
  const out = join(folder, `${name}.wasm`);
  const args = [
    'embed-component',
    model,
    '--component',
    built(`edge/wick-${name}.wasm`),
    '-o',
    out,
  ];
  await runWell(built('native/wick'), args);
  return out;
}

/**
 * @param {string} name p2 or p3
 * @param {string} folder for the component
 * @param {string} [model]
 * @returns {Promise<string>} a component whose instances start with the model loaded
 */
export async function snapshotOf(name, folder, model = modelPath) {
  const out = join(folder, `${name}-snapshot.wasm`);
  const wizer = ['wizer', ...hostFlags[name].filter((flag) => /^-[SW]/.test(flag)), '-Shttp'];
  const component = await embedModel(name, folder, model);
  await runWell(locate('wasmtimeCommand').path, [
    ...wizer,
    '-f',
    'preload()',
    component,
    '-o',
    out,
  ]);
  return out;
}

/** @param {string} program @param {string[]} args */
async function runWell(program, args) {
  const { code, stderr } = await run(program, args);
  if (code !== 0) throw new Error(`${program} ${args[0]}: ${stderr}`);
}

/** @returns {Promise<number>} a port that currently has no listener */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * Starts `jco serve`. It does not accept port 0, and another program may take a free port first.
 * @param {string} component a component with its model
 * @param {string} folder for jco's output
 * @returns {Promise<Started>}
 */
export async function startJco(component, folder) {
  for (let tries = 1; ; tries++) {
    const port = await freePort();
    const made = { TMPDIR: folder }; // for jco's files
    const options = ['--isolate-requests', 'instance', '--host', '127.0.0.1', '--port', `${port}`];
    const args = [locate('jco').path, 'serve', ...options, component];
    const originOf = (/** @type {string} */ line) =>
      /Server listening/.test(line) ? `http://127.0.0.1:${port}` : undefined;
    try {
      return await startServer(locate('node24').path, args, originOf, made, true);
    } catch (error) {
      if (tries === 5) throw error;
    }
  }
}
